package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/zktest"
)

func newServe() *cobra.Command {
	var listen, version, super string
	var tick, least, greatest, sweep, latency, writes time.Duration
	var frame int
	var ttl, keeper bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a ZooKeeper server for development, in memory",
		Long: `Serve runs a ZooKeeper server for development until it gets a signal. It keeps
everything in memory and forgets it at its end.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			release, err := zktest.ParseVersion(version)
			switch {
			case err != nil:
				return usageError("--version: %v", err)
			case tick <= 0:
				return usageError("--tick %v is not positive", tick)
			}
			opts := []zktest.Option{zktest.WithListen(listen), zktest.WithTick(tick), zktest.WithVersion(release)}
			opts = append(opts, zktest.WithSessionTimeouts(least, greatest), zktest.WithContainerInterval(sweep),
				zktest.WithLatency(latency, latency), zktest.WithCommitDelay(writes), zktest.WithMaxFrame(frame), zktest.WithSuperDigest(super))
			if ttl {
				opts = append(opts, zktest.WithExtendedTypes())
			}
			if keeper {
				opts = append(opts, zktest.WithProfile(zktest.ClickHouseKeeper))
			}
			return serve(cmd, opts...)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:2181", "`address` for clients; port 0 takes a free one")
	cmd.Flags().DurationVar(&tick, "tick", 2*time.Second, "ZooKeeper's unit of time; sessions last 2 to 20 ticks")
	cmd.Flags().StringVar(&version, "version", zktest.ZooKeeper39.String(), "`release` of ZooKeeper to behave like, 3.5 to 3.9; the nearest that is known counts")
	cmd.Flags().BoolVar(&ttl, "ttl-nodes", true, "allow TTL nodes, which ZooKeeper does with extendedTypesEnabled alone")
	cmd.Flags().DurationVar(&least, "min-session-timeout", 0, "shortest session timeout that is granted; 0 is 2 ticks")
	cmd.Flags().DurationVar(&greatest, "max-session-timeout", 0, "longest session timeout that is granted; 0 is 20 ticks")
	cmd.Flags().DurationVar(&sweep, "container-interval", time.Minute, "how often empty containers and expired TTL nodes are deleted")
	cmd.Flags().DurationVar(&latency, "latency", 0, "how long each frame takes, each way")
	cmd.Flags().DurationVar(&writes, "write-delay", 0, "how long each write takes, as on a slow disk")
	cmd.Flags().IntVar(&frame, "max-buffer", 1048575, "longest request in `bytes`, as jute.maxbuffer")
	cmd.Flags().StringVar(&super, "super-digest", "", "`digest` user:base64 of a superuser, as superDigest")
	cmd.Flags().BoolVar(&keeper, "keeper", false, "behave like ClickHouse Keeper")
	return cmd
}

// serve runs a development server until the command's context ends.
func serve(cmd *cobra.Command, opts ...zktest.Option) error {
	srv, err := zktest.Start(opts...)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "ZooKeeper for development on %s. Everything is in memory and is lost when this ends (Ctrl-C).\n", srv.Addr())
	if err == nil {
		<-cmd.Context().Done()
	}
	if closeErr := srv.Close(); err == nil {
		err = closeErr
	}
	return err
}
