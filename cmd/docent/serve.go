package main

import (
	"crypto/sha1" //nolint:gosec // the scheme digest of ZooKeeper is made of it
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/docent-go/docent/zktest"
)

func newServe(t *target) *cobra.Command {
	var listen, version, super string
	var tick, least, greatest, sweep, latency, writes time.Duration
	var frame int
	var ttl, keeper, quotas, reconfig bool
	var required []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a ZooKeeper server for development, in memory",
		Long: `Serve runs a ZooKeeper server for development until it gets a signal. It keeps
everything in memory and forgets it at its end. With --sasl-user and --sasl-password
clients can log in as this user by DIGEST-MD5.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			release, err := parseRelease(version)
			switch {
			case err != nil:
				return usageError("--version: %v", err)
			case super != "" && !isSuperDigest(super):
				return usageError("--super-digest is not user:hash with the base64 of a SHA-1, as DigestAuthenticationProvider prints it")
			case tick <= 0:
				return usageError("--tick %v is not positive", tick)
			}
			if t.sasl.principal+t.sasl.keytab+t.sasl.cache != "" {
				return usageError("serve knows no Kerberos; --sasl-user and --sasl-password let clients log in by DIGEST-MD5")
			}
			if _, err := t.sasl.mechanism(); err != nil {
				return err
			}
			opts := []zktest.Option{zktest.WithListen(listen), zktest.WithZxid(zxidAt(time.Now())), zktest.WithTick(tick), zktest.WithVersion(release)}
			opts = append(opts, zktest.WithSessionTimeouts(least, greatest), zktest.WithContainerInterval(sweep),
				zktest.WithLatency(latency, latency), zktest.WithCommitDelay(writes), zktest.WithMaxFrame(frame), zktest.WithSuperDigest(super))
			if len(required) > 0 {
				opts = append(opts, zktest.WithRequiredAuth(required...))
			}
			if quotas {
				opts = append(opts, zktest.WithEnforcedQuotas())
			}
			if reconfig {
				opts = append(opts, zktest.WithReconfig())
			}
			if t.sasl.user != "" {
				opts = append(opts, zktest.WithSASLUser(t.sasl.user, t.sasl.password))
			}
			if ttl {
				opts = append(opts, zktest.WithExtendedTypes())
			}
			if keeper {
				opts = append(opts, zktest.WithProfile(zktest.ClickHouseKeeper))
			}
			return serve(cmd, opts...)
		},
	}
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) { // without the flags of clients
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			f.Hidden = !slices.Contains([]string{"config", "sasl-user", "sasl-password"}, f.Name)
		})
		help(cmd, args)
	})
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
	cmd.Flags().StringSliceVar(&required, "require-auth", nil, "refuse clients without an identity of one of these `schemes`, as enforce.auth.schemes: sasl, digest, ...")
	cmd.Flags().BoolVar(&quotas, "enforce-quotas", false, "refuse writes over the hard limits of quotas, as enforceQuota")
	cmd.Flags().BoolVar(&reconfig, "reconfig", false, "answer reconfig as with reconfigEnabled")
	cmd.Flags().BoolVar(&keeper, "keeper", false, "behave like ClickHouse Keeper")
	return cmd
}

// parseRelease takes a release with two parts for the newest of them.
func parseRelease(text string) (zktest.Version, error) {
	if strings.Count(text, ".") == 1 {
		text += ".99"
	}
	return zktest.ParseVersion(text)
}

// isSuperDigest reports whether a client could prove it. A password in its place would be in vain.
func isSuperDigest(digest string) bool {
	_, hash, ok := strings.Cut(digest, ":")
	sum, err := base64.StdEncoding.DecodeString(hash)
	return ok && err == nil && len(sum) == sha1.Size
}

// zxidAt is where a server counts from that starts at t: 4096 transactions per millisecond since 2025.
// What it had is lost, but its clients come back at once and fencing tokens grow. Until 2094 programs
// that read JSON numbers as floats, as jq does, get tokens exactly.
func zxidAt(t time.Time) int64 {
	return max(0, t.Sub(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds()) << 12
}

// serve runs a development server until the command's context ends.
func serve(cmd *cobra.Command, opts ...zktest.Option) error {
	srv, err := zktest.Start(opts...)
	var in *net.OpError
	switch {
	case errors.As(err, &in):
		return fmt.Errorf("serve: %w (--listen takes another address)", err)
	case err != nil:
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
