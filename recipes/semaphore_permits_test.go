package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// mixed is a multi-lock of a mutex, two of three permits and a semaphore mutex,
// in either order.
func (r *rig) mixed(c *client.Client, backwards bool) *recipes.InterProcessMultiLock {
	r.Helper()
	single, err := recipes.NewInterProcessSemaphoreMutex(c, "/single")
	r.check(err)
	locks := []recipes.Lock{r.mutex(c), r.semaphore(c, 3).Permits(2), single}
	if backwards {
		locks[0], locks[2] = locks[2], locks[0]
	}
	m, err := recipes.NewInterProcessMultiLock(locks...)
	r.check(err)
	return m
}

// Permits are held together with other locks, all or none, in either order, while
// there is no other client.
func TestSemaphorePermitsInMultiLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.semaphore(c, 3)
		h, err := r.mixed(c, false).Acquire(r.ctx)
		r.check(err)
		r.wantLeases(2)
		if n := len(h.Holds()); n != 3 {
			r.Errorf("%d holds", n)
		}
		other := r.mixed(r.connect("b"), true)
		_, err = other.TryAcquire(r.ctx)
		wantErr(t, err, recipes.ErrBusy)
		_, err = r.mixed(c, true).Acquire(h.Context()) // re-enters the mutex, and would wait for the rest
		wantErr(t, err, recipes.ErrWouldDeadlock)
		waits := acquireLease(r.ctx, s, 2)
		r.wantWaiting(waits)
		_, err = other.Acquire(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		r.check(h.Err())
		r.check(h.Close())
		got := <-waits
		r.check(got.err)
		// The mutex is free, the permits are not: none is held.
		_, err = other.TryAcquire(r.ctx)
		wantErr(t, err, recipes.ErrBusy)
		_, err = other.Acquire(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		r.empty()
		r.wantLeases(2)
		r.check(got.lease.Close())
		many, err := recipes.NewInterProcessMultiLock(r.mutex(c), s.Permits(4))
		r.check(err)
		_, err = many.Acquire(r.ctx)
		wantErr(t, err, recipes.ErrTooManyPermits)
		r.drained()
		r.empty()
		wantNoGoroutine(r.T)
	})
}

// Permits in multi-locks of one order, and single acquires in between, never deadlock.
func TestSemaphorePermitsInManyMultiLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 4 {
			c := r.connect(name(i))
			m, s := r.mixed(c, true), r.semaphore(c, 3)
			wg.Go(func() {
				for range 50 {
					h, err := m.Acquire(r.within(time.Minute))
					if err != nil {
						r.Errorf("stuck: %v", err)
						return
					}
					r.check(h.Close())
					l, err := s.Acquire(r.within(time.Minute), 1)
					if errors.Is(err, context.DeadlineExceeded) {
						r.Errorf("stuck: %v", err)
						return
					}
					r.check(err)
					r.check(l.Close())
				}
			})
		}
		wg.Wait()
		r.drained()
		r.empty()
		wantNoGoroutine(r.T)
	})
}
