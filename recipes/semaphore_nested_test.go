package recipes_test

import (
	"context"
	"strings"
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
		if took := time.Since(begun); took > time.Second {
			t.Errorf("refused after %v", took)
		}
		time.Sleep(time.Second)
		if in := r.named(poolQueue, queueName); len(in) != 1 {
			t.Errorf("in the queue: %v", in)
		}
		r.srv.ResetCounts()
		begun = time.Now()
		_, err = s.Acquire(ctx, 3) // more than the caller's own leave
		wantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > 0 || len(r.srv.Counts()) != 0 {
			t.Errorf("refused after %v and %v", took, r.srv.Counts())
		}
		r.check(one.Close())
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Close())
		r.drained()
		wantNoGoroutine(t)
	})
}

// The refusal names a lease of somebody else: the caller knows its own.
func TestSemaphoreWithinALeaseNamesAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 2)
		own := r.lease(s, 1)
		other := r.lease(r.semaphore(r.connect("b"), 2), 1)
		_, err := s.Acquire(own.Context(), 1)
		wantErr(t, err, recipes.ErrWouldDeadlock)
		if !strings.Contains(err.Error(), other.Path()) || strings.Contains(err.Error(), own.Path()) {
			t.Errorf("%v", err)
		}
		r.check(other.Close())
		r.check(own.Close())
		r.drained()
	})
}

// A waiter that comes while the acquire within a lease makes its leases is not waited for.
func TestSemaphoreWithinALeaseLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, other := r.semaphore(r.connect("a"), 3), r.semaphore(r.connect("b"), 3)
		one := r.lease(s, 1)
		ctx, cancel := contextWithin(one, 10*time.Minute)
		defer cancel()
		var waits <-chan leased
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, Times: 1},
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

// An acquire within a lease waits for no other acquire in the queue: it is refused at once.
func TestSemaphoreWithinALeaseBehindOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 4)
		one := r.lease(s, 1)
		queue, err := recipes.NewInterProcessMutex(r.connect("curator"), poolQueue) // what Curator waits in
		r.check(err)
		two, err := s.Acquire(one.Context(), 2)
		r.check(err)
		first := r.held(queue)
		begun := time.Now()
		_, err = s.Acquire(one.Context(), 1) // one is free
		wantErr(t, err, recipes.ErrWouldDeadlock)
		if took := time.Since(begun); took > 20*time.Millisecond {
			t.Errorf("refused after %v", took)
		}
		r.check(first.Close())
		three, err := s.Acquire(one.Context(), 1)
		r.check(err)
		r.check(three.Close())
		r.check(two.Close())
		r.check(one.Close())
		r.drained()
		wantNoGoroutine(t)
	})
}

// TryAcquire within a lease names the holder if others have the permits: to try again
// may help. It does not if the caller itself has them.
func TestSemaphoreTryWithinALease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 3)
		one := r.lease(s, 1)
		others := r.lease(r.semaphore(r.connect("b"), 3), 1)
		_, err := s.TryAcquire(one.Context(), 2)
		wantErr(t, err, recipes.ErrBusy)
		wantNoErr(t, err, recipes.ErrWouldDeadlock)
		_, err = s.TryAcquire(one.Context(), 3)
		wantErr(t, err, recipes.ErrWouldDeadlock)
		wantNoErr(t, err, recipes.ErrBusy)
		r.check(others.Close())
		more, err := s.TryAcquire(one.Context(), 2)
		r.check(err)
		r.check(more.Close())
		r.check(one.Close())
		r.drained()
	})
}
