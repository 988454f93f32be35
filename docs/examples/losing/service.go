// Package losing is a service that works under a lock and must stop when it
// loses it. Its tests show how to test that: docs/testing.md explains them.
package losing

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/recipes"
)

// ErrHalfWay says that the lock was lost before the work was done.
var ErrHalfWay = errors.New("lock lost half way")

// Run works through the steps of a job under the lock and returns how many it
// has done. It starts no step after the lock is lost, or ctx has ended.
func Run(ctx context.Context, lock *recipes.InterProcessMutex, steps []func(context.Context) error) (done int, err error) {
	err = lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		for _, step := range steps {
			if ctx.Err() != nil {
				return fmt.Errorf("%w: %w", ErrHalfWay, context.Cause(ctx))
			}
			if err := step(ctx); err != nil {
				return err
			}
			done++
		}
		return nil
	})
	return done, err
}
