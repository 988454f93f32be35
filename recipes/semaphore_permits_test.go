package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// mixed is a multi-lock of a mutex, two of three permits and a semaphore mutex,
// in either order.
func (r *rig) mixed(c *client.Client, backwards bool) *recipes.InterProcessMultiLock {
	r.Helper()
	single, err := recipes.NewInterProcessSemaphoreMutex(c, "/single")
	r.Check(err)
	locks := []recipes.Lock{r.mutex(c), r.semaphore(c, 3).Permits(2), single}
	if backwards {
		locks[0], locks[2] = locks[2], locks[0]
	}
	m, err := recipes.NewInterProcessMultiLock(locks...)
	r.Check(err)
	return m
}

// Permits are held together with other locks, all or none, in either order, while
// there is no other client.
func TestSemaphorePermitsInMultiLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.semaphore(c, 3)
		h, err := r.mixed(c, false).Acquire(r.Ctx)
		r.Check(err)
		r.wantLeases(2)
		if n := len(h.Holds()); n != 3 {
			r.Errorf("%d holds", n)
		}
		other := r.mixed(r.Connect("b"), true)
		_, err = other.TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		_, err = r.mixed(c, true).Acquire(h.Context()) // re-enters the mutex, and would wait for the rest
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		waits := acquireLease(r.Ctx, s, 2)
		r.wantWaiting(waits)
		_, err = other.Acquire(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		r.Check(h.Err())
		r.Check(h.Close())
		got := <-waits
		r.Check(got.err)
		// The mutex is free, the permits are not: none is held.
		_, err = other.TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		_, err = other.Acquire(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		r.empty()
		r.wantLeases(2)
		r.Check(got.lease.Close())
		many, err := recipes.NewInterProcessMultiLock(r.mutex(c), s.Permits(4))
		r.Check(err)
		_, err = many.Acquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrTooManyPermits)
		r.drained()
		r.empty()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// Permits in multi-locks of one order, and single acquires in between, never deadlock.
func TestSemaphorePermitsInManyMultiLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 4 {
			c := r.Connect(name(i))
			m, s := r.mixed(c, true), r.semaphore(c, 3)
			wg.Go(func() {
				for range 50 {
					h, err := m.Acquire(r.Within(time.Minute))
					if err != nil {
						r.Errorf("stuck: %v", err)
						return
					}
					r.Check(h.Close())
					l, err := s.Acquire(r.Within(time.Minute), 1)
					if errors.Is(err, context.DeadlineExceeded) {
						r.Errorf("stuck: %v", err)
						return
					}
					r.Check(err)
					r.Check(l.Close())
				}
			})
		}
		wg.Wait()
		r.drained()
		r.empty()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
