// Command startup is a start-up barrier of five workers: none begins before all five are
// ready, and none ends before all have finished. Whoever waits too long sees who is
// missing. Without -servers it runs on an in-process server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
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

const path = "/jobs/night/start"

var names = []string{"w1", "w2", "w3", "w4", "w5"}

func run(ctx context.Context, servers string, out io.Writer) error {
	if servers == "" {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		servers = srv.Addr()
	}
	board := &board{out: out}
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names[:4] { // in a real fleet every worker is a process
		all.Go(func() { errs[i] = work(ctx, servers, name, board) })
	}
	errs[4] = lookout(ctx, servers, board)
	if errs[4] == nil {
		errs[4] = work(ctx, servers, names[4], board)
	}
	all.Wait()
	return errors.Join(errs...)
}

// lookout waits until four have come, and says who is missing.
func lookout(ctx context.Context, servers string, board *board) error {
	c, b, err := join(ctx, servers, "lookout")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for {
		v, err := b.View(ctx)
		if err != nil {
			return err
		}
		if len(v.Members) == len(names)-1 {
			board.say("%d of %d are ready, missing: %s", len(v.Members), v.Needed, strings.Join(v.Missing(names...), ", "))
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// work waits for the others, works, and waits for the others again.
func work(ctx context.Context, servers, name string, board *board) error {
	c, b, err := join(ctx, servers, name)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	member, err := b.Enter(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = member.Close() }()
	board.count("begins")
	if err := member.Err(); err != nil { // a long job looks at member.Context()
		return err
	}
	if err := member.Leave(ctx); err != nil {
		return err
	}
	board.count("ends")
	return nil
}

func join(ctx context.Context, servers, name string) (*client.Client, *barrier.DistributedDoubleBarrier, error) {
	c, err := client.Connect(ctx, servers, client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, err
	}
	b, err := barrier.NewDistributedDoubleBarrier(c, path, len(names), barrier.WithMemberName(name), barrier.WithRounds())
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, b, nil
}

// board is what the workers write to.
type board struct {
	mu   sync.Mutex // guards the rest
	out  io.Writer
	seen map[string]int
}

func (b *board) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = fmt.Fprintf(b.out, format+"\n", args...)
}

func (b *board) count(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]int{}
	}
	b.seen[what]++
	_, _ = fmt.Fprintf(b.out, "%d of %d %s\n", b.seen[what], len(names), what)
}
