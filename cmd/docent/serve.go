package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/docent-go/docent/zktest"
)

// serve runs a development server until ctx ends.
func serve(ctx context.Context, args []string, out, usage io.Writer) (err error) {
	flags := flag.NewFlagSet("docent serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // a mistake is said once, by the caller
	listen := flags.String("listen", "127.0.0.1:2181", "address for clients; port 0 takes a free one")
	tick := flags.Duration("tick", 2*time.Second, "ZooKeeper's unit of time; sessions last 2 to 20 ticks")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(usage)
		flags.Usage()
		return err
	case err != nil:
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; %w", flags.Arg(0), errUsage)
	}
	if *tick <= 0 {
		return fmt.Errorf("-tick %v is not positive; %w", *tick, errUsage)
	}
	srv, err := zktest.Start(zktest.WithListen(*listen), zktest.WithTick(*tick), zktest.WithExtendedTypes())
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	_, err = fmt.Fprintf(out, "ZooKeeper for development on %s. Everything is in memory and is lost when this ends (Ctrl-C).\n", srv.Addr())
	if err == nil {
		<-ctx.Done()
	}
	if closeErr := srv.Close(); err == nil {
		err = closeErr
	}
	return err
}
