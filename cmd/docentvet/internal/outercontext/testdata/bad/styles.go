package bad

import (
	"context"

	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func generic[H recipes.AnyHold](ctx context.Context, lock interface {
	Do(ctx context.Context, fn func(ctx context.Context, hold H) error) error
}) error {
	return lock.Do(ctx, func(held context.Context, hold H) error {
		return sell(ctx, hold.FencingToken()) // want `ctx does not end when the lock is lost`
	})
}

func nestedLiteral(ctx context.Context, lock *recipes.InterProcessMutex, run func(func() error) error) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		return run(func() error { return sell(ctx, hold.FencingToken()) }) // want `ctx does not end when the lock is lost`
	})
}

func deferred(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.TryDo(ctx, func(held context.Context, hold *recipes.Hold) error {
		defer sell(ctx, 1) // want `ctx does not end when the lock is lost`
		return sell(held, hold.FencingToken())
	})
}

// A permit more is no re-entry, and its context is that from outside.
func permit(ctx context.Context, s *recipes.InterProcessSemaphoreV2) error {
	return s.Do(ctx, 1, func(held context.Context, _ *recipes.Lease) error {
		lease, err := s.Acquire(ctx, 1) // want `ctx does not end when the lock is lost, so s.Acquire goes on`
		if err != nil {
			return err
		}
		return lease.Close()
	})
}

// Another lock is lost without the first.
func another(ctx context.Context, a, b *recipes.InterProcessMutex, at fence.Checker) error {
	return a.Do(ctx, func(first context.Context, one *recipes.Hold) error {
		return b.Do(first, func(second context.Context, two *recipes.Hold) error {
			return fence.Under(first, two, at, "stock", func(third context.Context) error {
				return sell(first, 1) // want `first does not end when the lock is lost`
			})
		})
	})
}

// The function is called at once.
func here(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		work := func() error { return sell(ctx, 1) } // want `ctx does not end when the lock is lost`
		return work()
	})
}
