package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func contextWithin(h interface{ Context() context.Context }, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(h.Context(), d)
}

// Within a lease an acquire gets what is free at once, and does not wait behind a
// waiter that waits for that lease.
func TestSemaphoreWithinALease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 3)
		one := r.lease(s, 1)
		within, err := s.Acquire(one.Context(), 2)
		r.check(err)
		r.check(within.Close())
		ctx, cancel := contextWithin(one, 10*time.Minute)
		defer cancel()
		_, err = s.Acquire(ctx, 3) // of three, one of which is the caller's
		wantErr(t, err, recipes.ErrWouldDeadlock)

		waits := acquireLease(r.ctx, r.semaphore(r.connect("b"), 3), 3)
		r.wantWaiting(waits)
		r.srv.ResetCounts()
		begun := time.Now()
		_, err = s.Acquire(ctx, 1) // two are free
		wantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > time.Second || r.srv.Count(zktest.OpCreate) != 0 {
			t.Errorf("refused after %v and %d creates", took, r.srv.Count(zktest.OpCreate))
		}
		r.check(one.Close())
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Close())
		r.drained()
		wantNoGoroutine(t)
	})
}

// A waiter that comes while the acquire within a lease joins the queue is not
// waited for.
func TestSemaphoreWithinALeaseLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, other := r.semaphore(r.connect("a"), 3), r.semaphore(r.connect("b"), 3)
		one := r.lease(s, 1)
		ctx, cancel := contextWithin(one, 10*time.Minute)
		defer cancel()
		var waits <-chan leased
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpCreate, PathPrefix: poolQueue, Times: 1},
			func(context.Context, zktest.Request) {
				waits = acquireLease(r.ctx, other, 3)
				time.Sleep(100 * time.Millisecond)
			})
		begun := time.Now()
		_, err := s.Acquire(ctx, 1)
		wantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("refused after %v", took)
		}
		r.check(one.Close())
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Close())
		r.drained()
	})
}
