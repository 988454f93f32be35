package bad

import (
	"context"

	"github.com/docent-go/docent/recipes"
)

// A deferred Close would end these too early, or too late.

func jumps(ctx context.Context, lock *recipes.InterProcessMutex) error {
again:
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	if sell(hold.FencingToken()) != nil {
		goto again
	}
	return nil
}

func held(ctx context.Context, lock *recipes.InterProcessMutex) (context.Context, error) {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return nil, err
	}
	return hold.Context(), nil
}

func background(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	go func() {
		for hold.Err() == nil {
			_ = sell(hold.FencingToken())
		}
	}()
	return nil
}
