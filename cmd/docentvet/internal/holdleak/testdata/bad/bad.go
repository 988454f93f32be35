// Package bad does not release what it holds.
package bad

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes"
)

func sell(token int64) error { return nil }

func never(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither released nor closed on every path, and others wait for the lock: the return in line 18 is reached without`
	if err != nil {
		return err
	}
	return sell(hold.FencingToken())
}

func early(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx) // want `the return in line 27 is reached without`
	if err != nil {
		return err
	}
	if err := sell(hold.FencingToken()); err != nil {
		return err
	}
	return hold.Release(ctx)
}

func asked(ctx context.Context, rw *recipes.InterProcessReadWriteLock) {
	hold, err := rw.WriteLock().Acquire(ctx) // want `hold is neither`
	if err != nil {
		return
	}
	select {
	case <-hold.Context().Done():
	case <-hold.Jeopardy():
		hold.Close()
	}
}

func term(ctx context.Context, latch *recipes.LeaderLatch) error {
	term, err := latch.Campaign(ctx) // want `term is neither`
	switch {
	case errors.Is(err, context.Canceled):
		return nil
	case err != nil:
		return err
	case term.Err() != nil:
		return term.Err()
	}
	return term.Close()
}

func permits(ctx context.Context, s *recipes.InterProcessSemaphoreV2) {
	var lease, err = s.Acquire(ctx, 2) // want `lease is neither`
	if err == nil && lease.Permits() == 2 {
		lease.Close()
	}
}

func all(ctx context.Context, m *recipes.InterProcessMultiLock) error {
	if hold, err := m.TryAcquire(ctx); err == nil { // want `hold is neither`
		return hold.Err()
	}
	return nil
}

func again(ctx context.Context, lock *recipes.InterProcessMutex) error {
	for {
		hold, err := lock.Acquire(ctx) // want `hold is neither .* line 73 gives it another value without`
		if err != nil {
			return err
		}
		if sell(hold.FencingToken()) == nil {
			return hold.Close()
		}
	}
}

func down(ctx context.Context, rw *recipes.InterProcessReadWriteLock) error {
	w, err := rw.WriteLock().Acquire(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	r, err := w.Downgrade(ctx) // want `r is neither`
	if err != nil {
		return err
	}
	return sell(r.FencingToken())
}

func dropped(ctx context.Context, lock *recipes.InterProcessMutex) error {
	lock.TryAcquire(ctx)        // want `the hold that TryAcquire returns is dropped`
	_, err := lock.Acquire(ctx) // want `the hold that Acquire returns is dropped`
	return err
}

func literal(lock *recipes.InterProcessMutex) func(context.Context) error {
	return func(ctx context.Context) error {
		hold, err := lock.Acquire(ctx) // want `hold is neither`
		if err != nil {
			return err
		}
		return sell(hold.FencingToken())
	}
}

type locker interface {
	Acquire(ctx context.Context) (*recipes.Hold, error)
}

func any[H recipes.AnyHold](ctx context.Context, l locker) error {
	hold, err := l.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	return hold.Err()
}
