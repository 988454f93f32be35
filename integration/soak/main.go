// Command soak runs every recipe at once for hours, through faults, and writes what that
// costs over time: soak.csv and soak.svg. It fails if something grows.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

const (
	sessionTimeout = 4 * time.Second
	opTimeout      = 20 * time.Second // of one piece of work
	containers     = 5 * time.Second  // from one look for empty containers to the next

	rests    = 16        // how often everything rests in a run
	shortest = time.Hour // a shorter run does not rest, and is too short to tell
)

// config is what the flags say.
type config struct {
	length, every time.Duration
	servers, dir  string
	clients       int
	pause         time.Duration // at most, between two pieces of work of one kind
	curator       bool
	memory        bool // no socket: what a bubble's clock needs
}

func main() { os.Exit(status()) }

// status is 0 if nothing has grown, 1 if something has, and 2 if the run failed.
func status() int {
	var c config
	flag.DurationVar(&c.length, "length", 8*time.Hour, "how long to run")
	flag.DurationVar(&c.every, "every", 10*time.Second, "how long from sample to sample")
	flag.StringVar(&c.servers, "servers", "", "host:port of a ZooKeeper server that may be written to and that answers mntr; by default zktest in this process")
	flag.StringVar(&c.dir, "dir", ".", "where to write soak.csv and soak.svg")
	flag.IntVar(&c.clients, "clients", 5, "how many clients")
	flag.DurationVar(&c.pause, "pause", 100*time.Millisecond, "how long to pause at most between two pieces of work")
	flag.BoolVar(&c.curator, "curator", true, "let Curator work on the same paths, where Java and Debian's jars are there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	grown, err := run(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 2
	}
	for _, g := range grown {
		fmt.Fprintln(os.Stderr, "soak: grows:", g)
	}
	return min(len(grown), 1)
}

// run soaks until the time is up or ctx ends. It returns what has grown.
func run(ctx context.Context, c config) (grown []string, err error) {
	var srv *zktest.Server
	connect := new(net.Dialer).DialContext
	if c.servers == "" {
		if srv, err = zktest.Start(zktest.WithLogSize(1000), zktest.WithContainerInterval(containers)); err != nil {
			return nil, err
		}
		defer func() { _ = srv.Close() }()
		if c.memory {
			c.servers, connect = "memory:2181", srv.DialContext
		} else {
			c.servers = srv.Addr()
		}
	}
	file, err := os.Create(filepath.Join(c.dir, "soak.csv"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	table := csv.NewWriter(file)
	if err := table.Write(columns()); err != nil {
		return nil, err
	}

	stop := func() error { return nil }
	if c.curator {
		if stop, err = startCurator(context.WithoutCancel(ctx), c.servers); err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, stop()) }()
	ctx, cancel := context.WithTimeout(ctx, c.length)
	defer cancel()
	links := make([]*link, c.clients)
	var done, failed atomic.Int64
	var all sync.WaitGroup
	kinds := len(works(nil, 0, c.clients))
	free := newTurns(c.clients*kinds + 1)
	for i := range links {
		links[i] = &link{connect: connect}
		one, err := client.Connect(ctx, c.servers,
			client.WithDialer(links[i].dial),
			client.WithSessionTimeout(sessionTimeout),
			client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		defer func() { _ = one.Close() }()
		for kind, work := range works(one, i, c.clients) {
			all.Go(func() { repeat(ctx, c.pause, kind, work, free, &done, &failed) })
		}
	}
	all.Go(func() { disturb(ctx, links, srv, free) })

	var samples, rested []sample
	settle := containers + opTimeout
	if srv == nil {
		settle = 2 * time.Minute // ZooKeeper looks for empty containers once a minute
	}
	begun := time.Now()
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			continue
		}
		s, err := measure(ctx, srv, c.servers, time.Since(begun), done.Load(), failed.Load())
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
		if due := c.length / rests * time.Duration(len(rested)+1); c.length >= shortest && time.Since(begun) >= due {
			if !free.rest(ctx, settle, func() { s, err = measure(ctx, srv, c.servers, time.Since(begun), done.Load(), failed.Load()) }) {
				continue
			}
			if err != nil {
				return nil, err
			}
			rested = append(rested, s)
			fmt.Println("at rest:", s.row())
		}
		if err := table.Write(s.row()); err != nil {
			return nil, err
		}
		table.Flush()
	}
	all.Wait()
	if err := os.WriteFile(filepath.Join(c.dir, "soak.svg"), plot(samples), 0o600); err != nil {
		return nil, err
	}
	fmt.Printf("%d pieces of work, %d ended by a fault, %d samples in %v\n", done.Load(), failed.Load(), len(samples), time.Since(begun).Round(time.Second))
	if len(rested) < rests-1 {
		fmt.Println("too short to tell whether something grows")
	}
	return growth(rested), table.Error()
}
