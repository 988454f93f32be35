// Flashsale sells a small stock to a large crowd: several worker processes,
// each with many goroutines, take one item at a time from a plain file that
// nothing but a distributed lock protects. At the end it checks the books:
// sold exactly what there was, never below zero, no item twice. It tells which
// processes held the lock and how long buyers waited.
//
//	go run ./docs/examples/flashsale                     # on a server in this process
//	go run ./docs/examples/flashsale -servers 127.0.0.1:2181  # on yours
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/docent-go/docent/docs/examples/flashsale/internal/crowd"
	"github.com/docent-go/docent/zktest"
)

type config struct {
	zk      string        // connect string
	path    string        // of the lock
	stock   int           // items for sale
	workers int           // processes
	buyers  int           // goroutines in each
	timeout time.Duration // of the whole sale
	worker  int           // number of this process; 0 is the one that was started by hand
	dir     string        // where shop and ledger are
	verbose bool
}

func main() {
	var cfg config
	flag.StringVar(&cfg.zk, "servers", "", "connect string of ZooKeeper, host:port[,host:port]; empty starts a server in this process")
	flag.StringVar(&cfg.path, "path", "/docent/flashsale", "path of the lock")
	flag.IntVar(&cfg.stock, "stock", 300, "items for sale")
	flag.IntVar(&cfg.workers, "workers", 4, "worker processes")
	flag.IntVar(&cfg.buyers, "buyers", 8, "buyers (goroutines) in each worker")
	flag.DurationVar(&cfg.timeout, "timeout", 2*time.Minute, "give up after this time")
	flag.BoolVar(&cfg.verbose, "v", false, "say what the client does")
	flag.IntVar(&cfg.worker, "worker", 0, "internal: number of the worker process")
	flag.StringVar(&cfg.dir, "dir", "", "internal: directory of the shop")
	flag.Parse()

	if !cfg.verbose {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, "flashsale:", err)
		os.Exit(1)
	}
}

func run(cfg config) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, cfg.timeout)
	defer cancel()
	if cfg.worker > 0 {
		w := crowd.Worker{ZK: cfg.zk, Path: cfg.path, Number: cfg.worker, Buyers: cfg.buyers}
		return w.Run(ctx, newShop(cfg.dir).buy)
	}
	return runSale(ctx, cfg)
}

// runSale opens the shop, starts the workers and checks the books.
func runSale(ctx context.Context, cfg config) error {
	if cfg.stock < 1 || cfg.workers < 1 || cfg.buyers < 1 {
		return errors.New("-stock, -workers and -buyers must be at least 1")
	}
	where := cfg.zk
	if cfg.zk == "" {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		cfg.zk = srv.Addr()
		where = "an in-process server at " + cfg.zk
	}
	dir, err := os.MkdirTemp("", "flashsale-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cfg.dir = dir
	shop := newShop(dir)
	if err := shop.open(cfg.stock); err != nil {
		return err
	}
	fmt.Printf("%d items, %d processes x %d buyers, lock %s on %s\n", cfg.stock, cfg.workers, cfg.buyers, cfg.path, where)
	began := time.Now()
	if err := sell(ctx, cfg); err != nil {
		return err
	}
	books, err := shop.audit(cfg.stock)
	if err != nil {
		return err
	}
	books.Print(os.Stdout, time.Since(began))
	return books.Err()
}

// sell starts the workers and waits for all.
func sell(ctx context.Context, cfg config) error {
	workers, err := crowd.Start(ctx, cfg.workers, os.Stdout, func(worker int) []string {
		args := []string{
			"-servers", cfg.zk, "-path", cfg.path, "-dir", cfg.dir,
			"-buyers", strconv.Itoa(cfg.buyers), "-timeout", cfg.timeout.String(),
			"-worker", strconv.Itoa(worker),
		}
		if cfg.verbose {
			args = append(args, "-v")
		}
		return args
	})
	return errors.Join(err, workers.Wait())
}
