// Db is the flash sale with its stock in a database, and the experiment that
// shows what a fencing token is for.
//
//	go run -C docs/examples/flashsale/db .                 # SQLite, and a ZooKeeper server in this process
//	go run -C docs/examples/flashsale/db . -pause-holder   # a process is stopped while it holds the lock, and writes late
//	go run -C docs/examples/flashsale/db . -db postgres://user@host/shop
//	go run -C docs/examples/flashsale/db . -db 'user:password@tcp(host:3306)/shop'
//
// It is a module of its own, because the library depends on no driver.
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
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/docs/examples/flashsale/internal/crowd"
	"github.com/docent-go/docent/zktest"
)

type config struct {
	zk          string // connect string
	path        string // of the lock
	db          string // data source
	stock       int    // items for sale
	workers     int    // processes
	buyers      int    // goroutines in each
	timeout     time.Duration
	session     time.Duration
	pauseHolder bool
	verbose     bool

	// Of the workers only.
	worker   int    // number of this process
	resource string // name of the stock behind the fence
	token    string // what is done with the fencing token: noToken, tokenAtWrite, tokenFirst
	pause    bool   // this process is to be stopped
	unlucky  bool   // the process that has the lock next is stopped too
}

// What buyers do with the token of their hold.
const (
	noToken      = "none"
	tokenAtWrite = "write" // checked by the transaction that writes
	tokenFirst   = "first" // raised before the stock is read
)

func main() {
	var cfg config
	flag.StringVar(&cfg.zk, "servers", "", "connect string of ZooKeeper, host:port[,host:port]; empty starts a server in this process")
	flag.StringVar(&cfg.path, "path", "/docent/flashsale-db", "path of the lock")
	flag.StringVar(&cfg.db, "db", "", "database: postgres://..., user:password@tcp(host:3306)/name for MySQL and MariaDB, file:... for SQLite; empty is SQLite in a temporary file")
	flag.IntVar(&cfg.stock, "stock", 60, "items for sale")
	flag.IntVar(&cfg.workers, "workers", 3, "worker processes")
	flag.IntVar(&cfg.buyers, "buyers", 2, "buyers (goroutines) in each worker")
	flag.DurationVar(&cfg.timeout, "timeout", 2*time.Minute, "give up after this time")
	flag.DurationVar(&cfg.session, "session", 6*time.Second, "session timeout to ask for")
	flag.BoolVar(&cfg.pauseHolder, "pause-holder", false, "stop a process past its session while it holds the lock, and see what becomes of its late write: without a token, with a token that is checked too late, and with the token raised first")
	flag.BoolVar(&cfg.verbose, "v", false, "say what the client does")
	flag.IntVar(&cfg.worker, "worker", 0, "internal: number of the worker process")
	flag.StringVar(&cfg.resource, "resource", "", "internal: name of the stock")
	flag.StringVar(&cfg.token, "token", tokenFirst, "internal: what is done with the token")
	flag.BoolVar(&cfg.pause, "pause", false, "internal: stop while holding the lock")
	flag.BoolVar(&cfg.unlucky, "unlucky", false, "internal: stop after reading as the next holder")
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
		return runWorker(ctx, cfg)
	}
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
	if cfg.db == "" {
		dir, err := os.MkdirTemp("", "flashsale-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		cfg.db = "file:" + filepath.Join(dir, "shop")
	}
	fmt.Printf("%d items, %d processes x %d buyers, lock %s on %s\n", cfg.stock, cfg.workers, cfg.buyers, cfg.path, where)
	if cfg.pauseHolder {
		return experiment(ctx, cfg)
	}
	s, books, err := newSale(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	if err := errors.Join(s.start(ctx, os.Stdout), s.workers.Wait()); err != nil {
		return err
	}
	if err := s.shop.audit(ctx, books); err != nil {
		return err
	}
	books.Print(os.Stdout, time.Since(s.began))
	return books.Err()
}

func runWorker(ctx context.Context, cfg config) error {
	shop, err := openShop(cfg)
	if err != nil {
		return err
	}
	defer shop.close()
	w := crowd.Worker{
		ZK: cfg.zk, Path: cfg.path, Number: cfg.worker, Buyers: cfg.buyers,
		Client: []client.Option{client.WithSessionTimeout(cfg.session)},
	}
	return w.Run(ctx, shop.buy)
}

// sale is one sale from an open shop to its audit.
type sale struct {
	cfg     config
	shop    *shop
	began   time.Time
	workers crowd.Processes
}

// newSale stocks a shop.
func newSale(ctx context.Context, cfg config) (*sale, *crowd.Books, error) {
	// Tokens that were stored under another ensemble say nothing about this one.
	cfg.resource = fmt.Sprintf("flashsale %d.%d", time.Now().UnixNano(), os.Getpid())
	shop, err := openShop(cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := shop.open(ctx, cfg.stock); err != nil {
		shop.close()
		return nil, nil, err
	}
	return &sale{cfg: cfg, shop: shop}, &crowd.Books{Stock: cfg.stock}, nil
}

// start starts the workers; the first is the one to be stopped, if one is.
func (s *sale) start(ctx context.Context, out io.Writer) (err error) {
	s.began = time.Now()
	cfg := s.cfg
	s.workers, err = crowd.Start(ctx, cfg.workers, out, func(worker int) []string {
		return []string{
			"-servers", cfg.zk, "-path", cfg.path, "-db", cfg.db, "-resource", cfg.resource,
			"-buyers", strconv.Itoa(cfg.buyers), "-timeout", cfg.timeout.String(), "-session", cfg.session.String(),
			"-worker", strconv.Itoa(worker), "-v=" + strconv.FormatBool(cfg.verbose),
			"-token", cfg.token, "-unlucky=" + strconv.FormatBool(cfg.unlucky), "-pause=" + strconv.FormatBool(cfg.pause && worker == 1),
		}
	})
	return err
}

func (s *sale) close(ctx context.Context) {
	if err := s.shop.remove(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "flashsale: tables are left behind:", err)
	}
	s.shop.close()
}
