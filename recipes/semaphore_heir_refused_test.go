package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// A hand-over that one request cannot carry is none: the release deletes its leases, and
// the waiter takes its own.
func TestSemaphoreHandOverTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const n = 6000
		s := r.semaphore(r.connect("a"), n)
		held := r.lease(s, n)
		waits := r.inLine(r.ctx, s, n, 1)[0]
		r.srv.ResetCounts()
		r.check(held.Release(r.ctx))
		if deletes := r.srv.Count(zktest.OpDelete); deletes != 0 {
			r.Errorf("%d leases were deleted one by one", deletes)
		}
		got := <-waits
		r.check(got.err)
		r.wantLeases(n)
		r.check(got.lease.Close())
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// A hand-over that is refused makes no room: its waiter is granted only after the release
// has deleted the leases.
func TestSemaphoreHandOverRefusedMakesNoRoom(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 2)
		other := r.lease(r.semaphore(r.connect("b"), 2), 1)
		held := r.lease(s, 1)
		waits := r.inLine(r.ctx, s, 1, 1)[0]
		r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			// A request to release in its node: the transaction deletes another version.
			r.check(r.srv.SetData(poolQueue+"/"+r.named(poolQueue, queueName)[0], []byte("__REVOKE__")))
		})
		busy := r.srv.Fail(zktest.Match{Op: zktest.OpDelete, Path: held.Path(), Times: 1 << 20}, zktest.CodeThrottledOp)
		released := make(chan error, 1)
		go func() { released <- held.Release(r.ctx) }()
		r.check(busy.Wait(r.ctx, 1))
		r.wantWaiting(waits)
		r.wantLeases(2)
		busy.Remove()
		r.check(<-released)
		got := <-waits
		r.check(got.err)
		r.check(other.Err())
		r.wantLeases(2)
		select {
		case <-got.lease.Revoked():
		case <-time.After(time.Second):
			r.Error("the request to release is lost")
		}
		r.check(got.lease.Close())
		r.check(other.Close())
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// A contender whose number was made by hand stands before waiters that came after it. No
// hand-over passes it, also none to a waiter further back.
func TestSemaphoreHandOverBehindNodeMadeByHand(t *testing.T) {
	t.Parallel()
	for _, behind := range []int{1, 2} {
		t.Run(fmt.Sprint(behind), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				const byHand = poolQueue + "/_c_00000000-0000-0000-0000-000000000000-lock-0000000000"
				s := r.semaphore(r.connect("a"), 1)
				held := r.lease(s, 1)
				line := r.inLine(r.ctx, s, 1, behind)
				r.check(r.srv.Create(byHand, nil))
				late := r.inLine(r.ctx, s, 1, 1)[0]
				for _, waits := range line { // they were the first before
					r.check(held.Release(r.ctx))
					got := <-waits
					r.check(got.err)
					held = got.lease
				}
				r.check(held.Release(r.ctx))
				r.wantWaiting(late)
				r.check(r.srv.Delete(byHand))
				got := <-late
				r.check(got.err)
				r.check(got.lease.Close())
				r.drained()
				wantNoGoroutine(r.T)
			})
		})
	}
}
