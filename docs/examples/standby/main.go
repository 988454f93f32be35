// Command standby is a service that works on one machine at a time and stands by on the
// others. It holds a lock until SIGTERM, finishes its job, and releases. Without -servers
// two machines run on an in-process server, and the active one is told to stop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func main() {
	servers := flag.String("servers", "", "connect string; empty: an in-process server and two machines")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	if *servers == "" {
		err = demo(ctx, os.Stdout)
	} else {
		err = one(ctx, *servers, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1) //nolint:gocritic // the deferred cancel was called
	}
}

// newService connects a service, whose client the caller closes.
func newService(ctx context.Context, servers string, jobs <-chan job, opts ...client.Option) (*service, *client.Client, error) {
	c, err := client.Connect(ctx, servers, append(opts, client.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return nil, nil, err
	}
	lock, err := recipes.NewInterProcessMutex(c, "/examples/standby")
	return &service{lock: lock, jobs: jobs, grace: 20 * time.Second}, c, err
}

// one is a process of its own, with a job each second. Start two, and stop the first.
func one(ctx context.Context, servers string, out io.Writer) error {
	jobs := make(chan job)
	go func() {
		for ctx.Err() == nil {
			select {
			case jobs <- func(_ context.Context, token int64) error {
				_, err := fmt.Fprintln(out, "a job, with token", token)
				time.Sleep(time.Second)
				return err
			}:
			case <-ctx.Done():
			}
		}
	}()
	s, c, err := newService(ctx, servers, jobs, client.WithName("standby"))
	if err != nil {
		return err
	}
	err = s.run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil // it was told to stop while it stood by
	}
	return errors.Join(err, c.Close())
}

// demo lets a work while b stands by, and tells a to stop in the middle of a job.
func demo(ctx context.Context, out io.Writer) error {
	srv, err := zktest.Start()
	if err != nil {
		return err
	}
	defer func() { _ = srv.Close() }()
	jobs := make(chan job)
	machine := func(ctx context.Context, name string, ended chan<- error) error {
		s, c, err := newService(ctx, "zk:2181", jobs, client.WithDialer(srv.Client(name).DialContext))
		if err != nil {
			return err
		}
		go func() { ended <- errors.Join(s.run(ctx), c.Close()) }()
		return nil
	}
	sigterm, tell := context.WithCancel(ctx) // what signal.NotifyContext returns in a's process
	defer tell()
	end, stop := context.WithCancel(ctx)
	defer stop()
	aEnded, bEnded := make(chan error, 1), make(chan error, 1)
	if err := machine(sigterm, "a", aEnded); err != nil {
		return err
	}
	jobs <- func(ctx context.Context, _ int64) error { // a holds the lock
		queued := srv.BeforeReply(zktest.Match{Client: "b", Op: zktest.OpCreate}, func(context.Context, zktest.Request) {})
		if err := errors.Join(machine(end, "b", bEnded), queued.Wait(ctx, 1)); err != nil {
			return err
		}
		tell()
		_, err := fmt.Fprintln(out, "a is told to stop, and finishes its job:", ctx.Err() == nil)
		return err
	}
	if err := <-aEnded; err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "a has ended")
	jobs <- func(context.Context, int64) error {
		stop()
		_, err := fmt.Fprintln(out, "b works")
		return err
	}
	return <-bEnded
}
