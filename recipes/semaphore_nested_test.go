package recipes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
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
		s := r.semaphore(r.Connect("a"), 3)
		one := r.lease(s, 1)
		within, err := s.Acquire(one.Context(), 2)
		r.Check(err)
		r.Check(within.Close())
		ctx, cancel := contextWithin(one, 10*time.Minute)
		defer cancel()
		_, err = s.Acquire(ctx, 3) // of three, one of which is the caller's
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)

		waits := acquireLease(r.Ctx, r.semaphore(r.Connect("b"), 3), 3)
		r.wantWaiting(waits)
		r.Srv.ResetCounts()
		begun := time.Now()
		_, err = s.Acquire(ctx, 1) // two are free
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("refused after %v", took)
		}
		time.Sleep(time.Second)
		if in := r.named(poolQueue, queueName); len(in) != 1 {
			t.Errorf("in the queue: %v", in)
		}
		r.Srv.ResetCounts()
		begun = time.Now()
		_, err = s.Acquire(ctx, 3) // more than the caller's own leave
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > 0 || len(r.Srv.Counts()) != 0 {
			t.Errorf("refused after %v and %v", took, r.Srv.Counts())
		}
		r.Check(one.Close())
		got := <-waits
		r.Check(got.err)
		r.Check(got.lease.Close())
		r.drained()
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// The refusal names a lease of somebody else: the caller knows its own.
func TestSemaphoreWithinALeaseNamesAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 2)
		own := r.lease(s, 1)
		other := r.lease(r.semaphore(r.Connect("b"), 2), 1)
		_, err := s.Acquire(own.Context(), 1)
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		if !strings.Contains(err.Error(), other.Path()) || strings.Contains(err.Error(), own.Path()) {
			t.Errorf("%v", err)
		}
		r.Check(other.Close())
		r.Check(own.Close())
		r.drained()
	})
}

// A waiter that comes while the acquire within a lease makes its leases is not waited for.
func TestSemaphoreWithinALeaseLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, other := r.semaphore(r.Connect("a"), 3), r.semaphore(r.Connect("b"), 3)
		one := r.lease(s, 1)
		ctx, cancel := contextWithin(one, 10*time.Minute)
		defer cancel()
		var waits <-chan leased
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, Times: 1},
			func(context.Context, zktest.Request) {
				waits = acquireLease(r.Ctx, other, 3)
				time.Sleep(100 * time.Millisecond)
			})
		begun := time.Now()
		_, err := s.Acquire(ctx, 1)
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("refused after %v", took)
		}
		r.Check(one.Close())
		got := <-waits
		r.Check(got.err)
		r.Check(got.lease.Close())
		r.drained()
	})
}

// An acquire within a lease waits for no other acquire in the queue: it is refused at once.
func TestSemaphoreWithinALeaseBehindOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 4)
		one := r.lease(s, 1)
		queue, err := recipes.NewInterProcessMutex(r.Connect("curator"), poolQueue) // what Curator waits in
		r.Check(err)
		two, err := s.Acquire(one.Context(), 2)
		r.Check(err)
		first := r.held(queue)
		begun := time.Now()
		_, err = s.Acquire(one.Context(), 1) // one is free
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > 20*time.Millisecond {
			t.Errorf("refused after %v", took)
		}
		r.Check(first.Close())
		three, err := s.Acquire(one.Context(), 1)
		r.Check(err)
		r.Check(three.Close())
		r.Check(two.Close())
		r.Check(one.Close())
		r.drained()
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// TryAcquire within a lease names the holder if others have the permits: to try again
// may help. It does not if the caller itself has them.
func TestSemaphoreTryWithinALease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 3)
		one := r.lease(s, 1)
		others := r.lease(r.semaphore(r.Connect("b"), 3), 1)
		_, err := s.TryAcquire(one.Context(), 2)
		testrig.WantErr(t, err, recipes.ErrBusy)
		testrig.WantNoErr(t, err, recipes.ErrWouldDeadlock)
		_, err = s.TryAcquire(one.Context(), 3)
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		testrig.WantNoErr(t, err, recipes.ErrBusy)
		r.Check(others.Close())
		more, err := s.TryAcquire(one.Context(), 2)
		r.Check(err)
		r.Check(more.Close())
		r.Check(one.Close())
		r.drained()
	})
}
