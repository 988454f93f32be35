package good

import (
	"context"
	"testing"

	"github.com/docent-go/docent/recipes"
)

// Several have a semaphore, or a read lock, at once.
func TestShared(t *testing.T) {
	var s *recipes.InterProcessSemaphoreV2
	var rw *recipes.InterProcessReadWriteLock
	ctx := t.Context()
	_ = s.Do(ctx, 1, func(context.Context, *recipes.Lease) error {
		lease, err := s.Acquire(ctx, 1)
		if err != nil {
			return err
		}
		return lease.Close()
	})
	_ = rw.ReadLock().Do(ctx, func(context.Context, *recipes.Hold) error {
		hold, err := rw.ReadLock().Acquire(ctx)
		if err != nil {
			return err
		}
		return hold.Close()
	})
}
