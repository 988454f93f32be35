// Package good releases each hold of a loop before the next round.
package good

import (
	"context"

	"github.com/docent-go/docent/recipes"
)

func sell(ctx context.Context) error { return ctx.Err() }

func function(ctx context.Context, lock *recipes.InterProcessMutex) error {
	for range 10 {
		err := func() error {
			hold, err := lock.Acquire(ctx)
			if err != nil {
				return err
			}
			defer hold.Close()
			return sell(hold.Context())
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

func once(ctx context.Context, lock *recipes.InterProcessMutex) error {
	for {
		hold, err := lock.TryAcquire(ctx)
		if err != nil {
			continue
		}
		defer hold.Close()
		return sell(hold.Context())
	}
}

func before(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	for range 10 {
		if err := sell(hold.Context()); err != nil {
			return err
		}
	}
	return nil
}
