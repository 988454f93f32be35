package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/zktest"
)

func newServe() *cobra.Command {
	var listen, version string
	var tick time.Duration
	var ttl bool
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
			if ttl {
				opts = append(opts, zktest.WithExtendedTypes())
			}
			return serve(cmd, opts...)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:2181", "`address` for clients; port 0 takes a free one")
	cmd.Flags().DurationVar(&tick, "tick", 2*time.Second, "ZooKeeper's unit of time; sessions last 2 to 20 ticks")
	cmd.Flags().StringVar(&version, "version", zktest.ZooKeeper39.String(), "`release` of ZooKeeper to behave like, 3.5 to 3.9; the nearest that is known counts")
	cmd.Flags().BoolVar(&ttl, "ttl-nodes", true, "allow TTL nodes, which ZooKeeper does with extendedTypesEnabled alone")
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
