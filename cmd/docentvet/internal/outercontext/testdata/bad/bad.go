// Package bad uses the outer context under a lock.
package bad

import (
	"context"
	"database/sql"
	"net/http"
	"time"

	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

type shop struct {
	db   *sql.DB
	lock *recipes.InterProcessMutex
	rw   *recipes.InterProcessReadWriteLock
	ctx  context.Context
}

func sell(ctx context.Context, token int64) error { return ctx.Err() }

func (s *shop) nested(ctx context.Context) error {
	return s.lock.Do(ctx, func(_ context.Context, _ *recipes.Hold) error {
		hold, err := s.lock.Acquire(ctx) // want `s.lock is held here, so taking it with ctx waits for itself.*name the context`
		if err != nil {
			return err
		}
		return hold.Close()
	})
}

func (s *shop) writers(ctx context.Context) error {
	return s.rw.WriteLock().Do(ctx, func(held context.Context, _ *recipes.WriteHold) error {
		return s.rw.WriteLock().Do(ctx, func(ctx context.Context, hold *recipes.WriteHold) error { // want `s.rw.WriteLock\(\) is held here.*use held`
			return sell(ctx, hold.FencingToken())
		})
	})
}

func (s *shop) work(ctx context.Context) error {
	return s.lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		return sell(ctx, hold.FencingToken()) // want `ctx does not end when the lock is lost, so sell goes on while another holds it; use held, the context of the function`
	})
}

func (s *shop) deadline(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.lock.Do(wait, func(held context.Context, _ *recipes.Hold) error {
		_, err := s.db.ExecContext(ctx, "UPDATE stock") // want `ctx does not end when the lock is lost, so s.db.ExecContext goes on`
		return err
	})
}

func (s *shop) later(ctx context.Context) error {
	return s.lock.Do(ctx, func(held context.Context, _ *recipes.Hold) error {
		short, cancel := context.WithTimeout(ctx, time.Second) // want `so context.WithTimeout goes on`
		defer cancel()
		return sell(short, 0)
	})
}

func (s *shop) field() error {
	return s.lock.TryDo(s.ctx, func(held context.Context, _ *recipes.Hold) error {
		return sell(s.ctx, 0) // want `s.ctx does not end when the lock is lost`
	})
}

func (s *shop) handler(_ http.ResponseWriter, r *http.Request) {
	_ = s.lock.Do(r.Context(), func(held context.Context, _ *recipes.Hold) error {
		return sell(r.Context(), 0) // want `r.Context\(\) does not end when the lock is lost`
	})
}

func lead(ctx context.Context, latch *recipes.LeaderLatch) error {
	return latch.Run(ctx, func(context.Context, *recipes.Term) error {
		<-ctx.Done() // want `ctx does not end when the lock is lost, so this waits on while another holds it; name the context of the function`
		return nil
	})
}

func tick(ctx context.Context, latch *recipes.LeaderLatch, ticks <-chan time.Time) error {
	return latch.Run(ctx, func(leading context.Context, _ *recipes.Term) error {
		for ctx.Err() == nil { // want `so this loop goes on while another holds it; use leading`
			select {
			case <-ticks:
			case <-ctx.Done(): // want `so this waits on`
			}
		}
		return nil
	})
}

func (s *shop) fenced(ctx context.Context, at fence.Database) error {
	return fence.Do(ctx, s.lock, at, "stock", func(held context.Context) error {
		go sell(ctx, 0)                                                                 // want `so sell goes on`
		return at.Tx(ctx, "stock", func(context.Context, *sql.Tx) error { return nil }) // want `so at.Tx goes on`
	})
}

func two(ctx context.Context, first, second *recipes.InterProcessMutex) error {
	return first.Do(ctx, func(one context.Context, _ *recipes.Hold) error {
		return second.Do(one, func(two context.Context, _ *recipes.Hold) error {
			return sell(one, 0) // want `one does not end when the lock is lost.*use two`
		})
	})
}

func permits(ctx context.Context, s *recipes.InterProcessSemaphoreV2) error {
	return s.Do(ctx, 2, func(held context.Context, _ *recipes.Lease) error {
		return sell(ctx, 0) // want `use held`
	})
}
