// Command ratelimit calls a service from three processes, which together keep to its
// limit of calls within any second. Without -servers it runs on an in-process server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

const (
	path   = "/limits/geocoder"
	calls  = 4 // within any window
	window = 500 * time.Millisecond
)

func main() {
	servers := flag.String("servers", "", "connect string; empty: an in-process server")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, *servers, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1) //nolint:gocritic // the deferred cancel was called
	}
}

func run(ctx context.Context, servers string, out io.Writer, opts ...client.Option) error {
	if servers == "" {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		servers = srv.Addr()
	}
	service := &service{}
	const processes, each = 3, 4
	errs := make([]error, processes)
	var all sync.WaitGroup
	for i := range processes { // in a real fleet each is a process
		all.Go(func() { errs[i] = use(ctx, servers, service, each, opts...) })
	}
	all.Wait()
	_, err := fmt.Fprintf(out, "%d calls, at most %d within %v\n", len(service.called), service.most(window), window)
	return errors.Join(append(errs, err)...)
}

// use is one process, which would like to make all its calls at once.
func use(ctx context.Context, servers string, s *service, n int, opts ...client.Option) error {
	c, err := client.Connect(ctx, servers, append(opts, client.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	l, err := newLimiter(c, path, calls, window)
	if err != nil {
		return err
	}
	defer l.wait()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = l.do(ctx, s.call) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// service has a limit, and notes when it was called.
type service struct {
	mu     sync.Mutex
	called []time.Time
}

func (s *service) call(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = append(s.called, time.Now())
	return ctx.Err()
}

// most is how many calls came within the busiest window.
func (s *service) most(window time.Duration) int {
	most, first := 0, 0
	for i, now := range s.called {
		for now.Sub(s.called[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
