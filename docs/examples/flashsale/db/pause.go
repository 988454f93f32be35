package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/docent-go/docent/docs/examples/flashsale/internal/crowd"
	"github.com/docent-go/docent/fence"
)

// more is how many items others sell before the stopped process goes on.
const more = 10

// stop stops this process, which holds the lock and is about to write, until
// the experiment lets it go on. The context that it returns is the one of a
// write that was under way when the process stopped, in a driver's buffer or
// at a service: the end of the hold no longer calls it back. What carries the
// token still carries it.
func (s *shop) stop(ctx context.Context, entry crowd.Sale) (context.Context, error) {
	fmt.Printf("  process %d is stopped; it holds the lock with token %d, has read that %d are left, and is about to write that\n", entry.Worker, entry.Token, entry.Item)
	_ = os.Stdout.Sync()
	under := fence.WithToken(context.WithoutCancel(ctx), entry.Token)
	return under, stopSelf()
}

// experiment sells the stock twice, with a process that is stopped while it
// holds the lock: once with nothing but the lock, once with the token checked.
func experiment(ctx context.Context, cfg config) error {
	if cfg.workers < 2 {
		return errors.New("-pause-holder needs two workers")
	}
	cfg.pause = true
	for _, fenced := range []bool{false, true} {
		cfg.fenced = fenced
		fmt.Printf("\nstopped holder, fenced: %v (session timeout %v)\n", fenced, cfg.session)
		books, err := stoppedHolder(ctx, cfg)
		if err != nil {
			return err
		}
		right := books.Err() == nil
		switch {
		case fenced && !right:
			return fmt.Errorf("fencing did not help: %w", books.Err())
		case !fenced && right:
			return errors.New("the books are right without fencing: the experiment shows nothing; try more -stock")
		}
	}
	return nil
}

// stoppedHolder is one sale of the experiment.
func stoppedHolder(ctx context.Context, cfg config) (*crowd.Books, error) {
	s, books, err := newSale(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	err = s.start(ctx, os.Stdout)
	if err == nil {
		err = s.watch(ctx)
	}
	if err := errors.Join(err, s.workers.Wait()); err != nil {
		return nil, err
	}
	if err := s.shop.audit(ctx, books); err != nil {
		return nil, err
	}
	fmt.Printf("  %s\n", books.Verdict(time.Since(s.began)))
	return books, nil
}

// watch waits until the first worker has stopped and others have sold more
// items since, and lets it go on.
func (s *sale) watch(ctx context.Context) error {
	first := s.workers[0].Process
	defer func() { _ = goOn(first) }() // it could not end either
	if err := poll(ctx, func() (bool, error) { return stopped(first) }); err != nil {
		return fmt.Errorf("no process stopped: %w", err)
	}
	began := time.Now()
	sold := func() (n int, err error) {
		err = s.shop.DB.QueryRowContext(ctx, "SELECT count(*) FROM flashsale_ledger").Scan(&n)
		return n, err
	}
	before, err := sold()
	if err != nil {
		return err
	}
	var taken time.Duration // until another process wrote
	after := func(items int) func() (bool, error) {
		return func() (bool, error) {
			n, err := sold()
			return n >= min(before+items, s.cfg.stock), err
		}
	}
	if err := poll(ctx, after(1)); err != nil {
		return fmt.Errorf("nobody else got the lock: %w", err)
	}
	taken = time.Since(began)
	if err := poll(ctx, after(more)); err != nil {
		return err
	}
	n, err := sold()
	fmt.Printf("  %v later another process had the lock; %d items were sold until, after %v, the first was let go on\n",
		taken.Round(10*time.Millisecond), n-before, time.Since(began).Round(10*time.Millisecond))
	return err
}

// poll asks until the answer is yes. Neither a process nor a database tells by
// itself.
func poll(ctx context.Context, ask func() (bool, error)) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}
