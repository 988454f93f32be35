package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/docent-go/docent/docs/examples/flashsale/internal/crowd"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

// The stages of an unlucky schedule, in the table flashsale_stage.
const (
	holderStopped = 1 + iota // the first worker has read, and is stopped before it writes
	nextRead                 // the next holder has read, and is stopped before it writes
	wroteLate                // the first worker went on, and tried to write
)

// advance sets the stage, if it is the one before, and reports whether it did.
func (s *shop) advance(ctx context.Context, stage int) (bool, error) {
	res, err := s.DB.ExecContext(ctx, s.query("UPDATE flashsale_stage SET stage = ? WHERE stage = ?"), stage, stage-1)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// at asks whether the stage has come.
func (s *shop) at(ctx context.Context, stage int) func() (bool, error) {
	return func() (bool, error) {
		var now int
		err := s.DB.QueryRowContext(ctx, "SELECT stage FROM flashsale_stage").Scan(&now)
		return now >= stage, err
	}
}

// stopAfterRead stops this process if it has the lock next after the first
// worker was stopped. It goes on when that worker has tried to write.
func (s *shop) stopAfterRead(ctx context.Context, entry crowd.Sale) error {
	if !s.cfg.unlucky {
		return nil
	}
	next, err := s.advance(ctx, nextRead)
	if err != nil || !next {
		return err
	}
	say("process %d has the lock now, with token %d, has read that %d are left, and has written nothing yet", entry.Worker, entry.Token, entry.Item)
	return stopSelf()
}

// writeLate stops this process, which holds the lock and is about to write,
// until the experiment lets it go on. Then it writes. The write stands for one
// that was under way when the process stopped, in a driver's buffer or at a
// service. Neither the end of the hold nor its context calls that back.
func (s *shop) writeLate(ctx context.Context, hold *recipes.Hold, entry crowd.Sale) error {
	if err := hold.Err(); err != nil {
		return err
	}
	say("process %d is stopped; it holds the lock with token %d, has read that %d are left, and is about to write that", entry.Worker, entry.Token, entry.Item)
	if err := stopSelf(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err := s.writeAlone(ctx, entry)
	switch {
	case hold.Err() == nil:
		say("the process went on, and still held the lock: it was not stopped for long enough")
	case errors.Is(err, fence.ErrStale):
		say("the process went on, and its write was refused: %v", err)
	case err != nil:
		say("the process went on, and its write failed: %v", err)
	default:
		say("the process went on, and its write was accepted")
	}
	if s.cfg.unlucky {
		if _, err := s.advance(ctx, wroteLate); err != nil {
			return err
		}
	}
	return crowd.ErrLate
}

// say prints a line at once, because a process may stop after it.
func say(format string, args ...any) {
	fmt.Printf("  "+format+"\n", args...)
	_ = os.Stdout.Sync()
}
