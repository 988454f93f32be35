package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/docent-go/docent/docs/examples/flashsale/internal/crowd"
)

// trial is one sale of the experiment.
type trial struct {
	token   string // what the buyers do with theirs
	unlucky bool   // the late write lands after the next holder has read, and before it has written
	right   bool   // the books must be
	says    string
}

var trials = []trial{
	{noToken, false, false, "the lock alone; the late write comes after others have sold"},
	{tokenFirst, false, true, "the token raised first; the late write comes after others have sold"},
	{tokenAtWrite, true, false, "the token only checked by each write; the late write comes after the next holder has read"},
	{tokenFirst, true, true, "the token raised first; the late write comes after the next holder has read"},
}

// experiment sells the stock several times, with a process that is stopped
// while it holds the lock.
func experiment(ctx context.Context, cfg config) error {
	if cfg.workers < 2 {
		return errors.New("-pause-holder needs two workers")
	}
	cfg.pause = true
	for i, trial := range trials {
		cfg.token, cfg.unlucky = trial.token, trial.unlucky
		fmt.Printf("\n%d. %s (session timeout %v)\n", i+1, trial.says, cfg.session)
		books, err := stoppedHolder(ctx, cfg)
		if err != nil {
			return err
		}
		switch right := books.Err() == nil; {
		case trial.right && !right:
			return fmt.Errorf("fencing did not help: %w", books.Err())
		case !trial.right && right:
			return errors.New("the books are right all the same: the experiment shows nothing; try more -stock")
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
	fmt.Printf("  %s; updates lost: %d\n", books.Verdict(time.Since(s.began)), books.Lost())
	return books, nil
}

// watch waits until the first worker has stopped and another one has the lock.
// Then it lets the first go on. It leaves no process stopped.
func (s *sale) watch(ctx context.Context) error {
	first := s.workers[0].Process
	defer func() {
		for _, worker := range s.workers {
			_ = goOn(worker.Process) // it could not end either
		}
	}()
	if err := poll(ctx, func() (bool, error) { return stopped(first) }); err != nil {
		return fmt.Errorf("no process stopped: %w", err)
	}
	began := time.Now()
	before, err := s.sold(ctx)
	if err != nil {
		return err
	}
	next := s.others
	if s.cfg.unlucky {
		next = s.reader
	}
	if err := next(ctx, before); err != nil {
		return fmt.Errorf("no other process got the lock: %w", err)
	}
	n, err := s.sold(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("  %d items were sold until, after %v, the first was let go on\n", n-before, time.Since(began).Round(10*time.Millisecond))
	if err := goOn(first); err != nil {
		return err
	}
	if !s.cfg.unlucky {
		return nil
	}
	return poll(ctx, s.shop.at(ctx, wroteLate))
}

// more is how many items others sell before the stopped process goes on.
const more = 10

// others waits until others have sold more items.
func (s *sale) others(ctx context.Context, before int) error {
	return poll(ctx, func() (bool, error) {
		n, err := s.sold(ctx)
		return n >= min(before+more, s.cfg.stock), err
	})
}

// reader waits until the next holder has read the stock and is stopped too.
func (s *sale) reader(ctx context.Context, _ int) error {
	if _, err := s.shop.advance(ctx, holderStopped); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		for _, worker := range s.workers[1:] {
			if yes, err := stopped(worker.Process); yes || err != nil {
				return yes, err
			}
		}
		return false, nil
	})
}

func (s *sale) sold(ctx context.Context) (n int, err error) {
	err = s.shop.DB.QueryRowContext(ctx, "SELECT count(*) FROM flashsale_ledger").Scan(&n)
	return n, err
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
