// Command scheduler is a scheduler that must have one leader: of several processes one
// schedules, and when that one dies another takes over. Without -servers it runs three
// schedulers on an in-process server, and kills the one that leads.
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
	"sync"
	"syscall"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

const election = "/examples/scheduler"

func main() {
	servers := flag.String("servers", "", "connect string; empty: an in-process server and three schedulers")
	id := flag.String("id", self(), "of this scheduler, with -servers")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	if *servers == "" {
		err = demo(ctx, os.Stdout)
	} else {
		err = one(ctx, *servers, *id, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1) //nolint:gocritic // the deferred cancel was called
	}
}

// self tells this process from the others.
func self() string {
	host, _ := os.Hostname() // without one, the process ids of one host still differ
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// one is a scheduler as a process of its own, until ctx ends. Start several, and kill the
// leader.
func one(ctx context.Context, servers, id string, out io.Writer) error {
	c, err := connect(ctx, servers, id)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	s, err := newScheduler(c, id, out)
	if err != nil {
		return err
	}
	if err := s.latch.Run(ctx, s.schedule); ctx.Err() == nil {
		return err
	}
	return nil
}

func connect(ctx context.Context, servers, name string) (*client.Client, error) {
	return client.Connect(ctx, servers, client.WithName(name), client.WithSessionTimeout(4*time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler)))
}

// scheduler is one participant.
type scheduler struct {
	latch *recipes.LeaderLatch
	id    string
	out   io.Writer
}

func newScheduler(c *client.Client, id string, out io.Writer) (*scheduler, error) {
	latch, err := recipes.NewLeaderLatch(c, election, recipes.WithID(id))
	return &scheduler{latch, id, out}, err
}

// schedule runs for each term. ctx ends before another scheduler can lead.
func (s *scheduler) schedule(ctx context.Context, term *recipes.Term) error {
	_, _ = fmt.Fprintln(s.out, s.id, "schedules")
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C: // a job goes out with term.FencingToken(), and its receiver refuses older ones
		case <-ctx.Done():
			return nil
		}
	}
}

// demo lets three schedulers contend on an in-process server, and kills the session of
// the first two leaders.
func demo(ctx context.Context, out io.Writer) error {
	srv, err := zktest.Start()
	if err != nil {
		return err
	}
	defer func() { _ = srv.Close() }()
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	lines := &lines{out: out}
	watcher, err := connect(ctx, srv.Addr(), "watcher")
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Close() }()
	clients := map[string]*client.Client{}
	for _, id := range []string{"s1", "s2", "s3"} {
		c, err := connect(ctx, srv.Addr(), id) // in a real fleet each is a process
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		s, err := newScheduler(c, id, lines)
		if err != nil {
			return err
		}
		clients[id] = c
		all.Go(func() {
			if err := s.latch.Run(running, s.schedule); !errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrClosed) {
				_, _ = fmt.Fprintln(lines, err)
			}
		})
	}
	latch, err := recipes.NewLeaderLatch(watcher, election)
	if err != nil {
		return err
	}
	return follow(ctx, srv, latch, clients, lines)
}

// follow observes the election, kills two leaders and returns when a third one leads.
func follow(ctx context.Context, srv *zktest.Server, latch *recipes.LeaderLatch, clients map[string]*client.Client, out io.Writer) error {
	led, killed := 0, int64(0)
	for now, err := range latch.Observe(ctx) {
		if err != nil {
			return err
		}
		c := clients[now.Leader.ID]
		if now.Vacant || now.InDoubt || c == nil || now.Term == killed { // that one is seen again after a doubt
			continue
		}
		if led++; led == 3 {
			_, _ = fmt.Fprintln(out, "the third leader leads")
			return nil
		}
		_, _ = fmt.Fprintf(out, "leader %d is killed\n", led)
		killed = now.Term
		srv.ExpireSession(now.Leader.Session)
		if err := c.Close(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// lines writes one line at a time.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
