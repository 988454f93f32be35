// Package bad defers the release of a loop's holds.
package bad

import (
	"context"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

func sell(ctx context.Context) error { return ctx.Err() }

func same(ctx context.Context, lock *recipes.InterProcessMutex) error {
	for range 10 {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		defer hold.Close() // want `hold is released when the function ends, and the loop acquires again before that`
		if err := sell(hold.Context()); err != nil {
			return err
		}
	}
	return nil
}

func each(ctx context.Context, c *client.Client, paths []string) error {
	for _, path := range paths {
		lock, err := recipes.NewInterProcessMutex(c, path)
		if err != nil {
			return err
		}
		hold, err := lock.Acquire(ctx)
		if err != nil {
			continue
		}
		defer func() { _ = hold.Release(ctx) }() // want `use InterProcessMultiLock`
	}
	return nil
}
