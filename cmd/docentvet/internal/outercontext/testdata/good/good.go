// Package good uses the outer context under a lock where that is right.
package good

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/docent-go/docent/recipes"
)

func sell(ctx context.Context, token int64) error { return ctx.Err() }

func own(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		slog.InfoContext(ctx, "held")
		return sell(ctx, hold.FencingToken())
	})
}

func reenter(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(held context.Context, _ *recipes.Hold) error {
		return lock.Do(held, func(ctx context.Context, hold *recipes.Hold) error { return sell(ctx, hold.FencingToken()) })
	})
}

func cleanUp(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		slog.InfoContext(ctx, "begins")
		err := sell(held, hold.FencingToken())
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if ctx.Err() != nil {
			return errors.Join(err, sell(late, 0), context.Cause(ctx))
		}
		return err
	})
}

// The term goes on when the process is told to stop, until another participant stands in line.
func handOver(told context.Context, latch *recipes.LeaderLatch) error {
	return latch.Run(told, func(ctx context.Context, term *recipes.Term) error {
		<-ctx.Done()
		end, cancel := context.WithTimeout(told, time.Minute)
		defer cancel()
		return errors.Join(term.AwaitSuccessor(end), term.Release(told))
	})
}

func either(ctx context.Context, latch *recipes.LeaderLatch) error {
	return latch.Run(ctx, func(leading context.Context, _ *recipes.Term) error {
		select {
		case <-ctx.Done():
			return nil // told to stop
		case <-leading.Done():
			return context.Cause(leading)
		}
	})
}

func probe(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error {
		_, err := lock.TryAcquire(ctx)
		if !errors.Is(err, recipes.ErrBusy) {
			return errors.New("the lock is free while it is held")
		}
		return nil
	})
}

func after(ctx context.Context, lock *recipes.InterProcessMutex) error {
	if err := lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { return sell(ctx, 0) }); err != nil {
		return err
	}
	return sell(ctx, 0)
}

func meant(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error {
		return sell(ctx, 0) //docentvet:ignore the sale is idempotent
	})
}

func unrelated(ctx, shutdown context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return sell(shutdown, 0) })
}
