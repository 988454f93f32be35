package bad

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes"
)

func again(ctx context.Context, lock *recipes.InterProcessMutex) error {
retry:
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close() // want `hold is released when the function ends`
	if sell(hold.Context()) != nil {
		goto retry
	}
	return nil
}

func forever(ctx context.Context, latch *recipes.LeaderLatch) error {
	for ctx.Err() == nil {
		term, err := latch.Campaign(ctx)
		switch {
		case errors.Is(err, recipes.ErrBusy):
			continue
		case err != nil:
			return err
		}
		defer term.Close() // want `term is released when the function ends`
		if err := sell(term.Context()); err == nil {
			return nil
		}
	}
	return nil
}

// One path of the round releases, and another does not.
func half(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int) error {
	for _, job := range jobs {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		defer hold.Close() // want `hold is released when the function ends`
		if job == 0 {
			continue
		}
		hold.Close()
	}
	return nil
}

func outside(ctx context.Context, s *recipes.InterProcessSemaphoreV2) error {
	var lease *recipes.Lease
	var err error
	for range 3 {
		if lease, err = s.Acquire(ctx, 1); err != nil {
			return err
		}
		defer lease.Close() // want `lease is released when the function ends`
	}
	return nil
}

func literal(ctx context.Context, lock *recipes.InterProcessMutex) func() {
	return func() {
		for {
			hold, err := lock.TryAcquire(ctx)
			if err != nil {
				return
			}
			defer hold.Close() // want `hold is released when the function ends`
		}
	}
}
