package good

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes"
)

// The deferred Close is for panics: each round releases what it has.
func safe(ctx context.Context, lock *recipes.InterProcessMutex) error {
	for range 10 {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		defer hold.Close()
		if err := sell(hold.Context()); err != nil {
			return err
		}
		if err := hold.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// There is no loop.
func twice(ctx context.Context, first, second *recipes.InterProcessMutex) error {
	hold, err := first.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	hold, err = second.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return sell(hold.Context())
}

func retried(ctx context.Context, lock *recipes.InterProcessMutex) error {
	var hold *recipes.Hold
	for {
		var err error
		if hold, err = lock.TryAcquire(ctx); err == nil {
			break
		}
		if !errors.Is(err, recipes.ErrBusy) {
			return err
		}
	}
	defer hold.Close()
	return sell(hold.Context())
}

func labelled(ctx context.Context, lock *recipes.InterProcessMutex, jobs <-chan int) error {
work:
	for {
		select {
		case <-jobs:
			hold, err := lock.TryAcquire(ctx)
			if err != nil {
				continue work
			}
			defer hold.Close()
			break work
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func beside(ctx context.Context, lock *recipes.InterProcessMutex, jobs <-chan int, run func(func() error)) {
	for range jobs {
		run(func() error {
			hold, err := lock.Acquire(ctx)
			if err != nil {
				return err
			}
			defer hold.Close()
			return sell(hold.Context())
		})
		go func() {
			hold, err := lock.Acquire(ctx)
			if err != nil {
				return
			}
			defer func() { _ = hold.Release(ctx) }()
		}()
	}
}
