// Command ids gives orders their numbers: several workers of two processes take ids of
// one sequence, one process crashes and comes back, and no id comes twice. Without
// -servers it runs on an in-process server that loses every fifth answer.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
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

// block is how many ids a process reserves at a time: so many are lost at most when it
// crashes.
const block = 10

func run(ctx context.Context, servers string, out io.Writer) error {
	if servers == "" {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		srv.LoseReply(zktest.Match{Op: zktest.OpSetData, Prob: 0.2, Times: zktest.Always})
		servers = srv.Addr()
	}
	book := &orders{}
	for process := range 3 { // the third is the first one again, after a crash
		if err := serve(ctx, servers, fmt.Sprintf("process %d", process+1), book); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d orders, %d ids taken twice\n", book.count, book.twice)
	return err
}

// serve is one process of the order service: its workers share one sequence.
func serve(ctx context.Context, servers, name string, book *orders) error {
	c, err := client.Connect(ctx, servers, client.WithName(name), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ids, err := shared.NewSequence(c, "/ids/orders", block)
	if err != nil {
		return err
	}
	const workers, each = 4, 6
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for range each {
				id, err := ids.Next(ctx)
				if err != nil {
					errs <- err
					return
				}
				book.add(id)
			}
			errs <- nil
		}()
	}
	for range workers {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return err
}

// orders is the table of orders, whose key is the id.
type orders struct {
	mu    sync.Mutex
	taken map[int64]bool
	count int
	twice int
}

func (o *orders) add(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken == nil {
		o.taken = map[int64]bool{}
	}
	if o.taken[id] {
		o.twice++
	}
	o.taken[id] = true
	o.count++
}
