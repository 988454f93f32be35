package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A hand-over that one request cannot carry is none: the release deletes its leases, and
// the waiter takes its own.
func TestSemaphoreHandOverTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const n = 6000
		s := r.semaphore(r.Connect("a"), n)
		held := r.lease(s, n)
		waits := r.inLine(r.Ctx, s, n, 1)[0]
		r.Srv.ResetCounts()
		r.Check(held.Release(r.Ctx))
		if deletes := r.Srv.Count(zktest.OpDelete); deletes != 0 {
			r.Errorf("%d leases were deleted one by one", deletes)
		}
		got := <-waits
		r.Check(got.err)
		r.wantLeases(n)
		r.Check(got.lease.Close())
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A hand-over that is refused makes no room: its waiter is granted only after the release
// has deleted the leases.
func TestSemaphoreHandOverRefusedMakesNoRoom(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 2)
		other := r.lease(r.semaphore(r.Connect("b"), 2), 1)
		held := r.lease(s, 1)
		waits := r.inLine(r.Ctx, s, 1, 1)[0]
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			// A request to release in its node: the transaction deletes another version.
			r.Check(r.Srv.SetData(poolQueue+"/"+r.named(poolQueue, queueName)[0], []byte("__REVOKE__")))
		})
		busy := r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, Path: held.Path(), Times: 1 << 20}, zktest.CodeThrottledOp)
		released := make(chan error, 1)
		go func() { released <- held.Release(r.Ctx) }()
		r.Check(busy.Wait(r.Ctx, 1))
		r.wantWaiting(waits)
		r.wantLeases(2)
		busy.Remove()
		r.Check(<-released)
		got := <-waits
		r.Check(got.err)
		r.Check(other.Err())
		r.wantLeases(2)
		select {
		case <-got.lease.Revoked():
		case <-time.After(time.Second):
			r.Error("the request to release is lost")
		}
		r.Check(got.lease.Close())
		r.Check(other.Close())
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
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
				s := r.semaphore(r.Connect("a"), 1)
				held := r.lease(s, 1)
				line := r.inLine(r.Ctx, s, 1, behind)
				r.Check(r.Srv.Create(byHand, nil))
				late := r.inLine(r.Ctx, s, 1, 1)[0]
				for _, waits := range line { // they were the first before
					r.Check(held.Release(r.Ctx))
					got := <-waits
					r.Check(got.err)
					held = got.lease
				}
				r.Check(held.Release(r.Ctx))
				r.wantWaiting(late)
				r.Check(r.Srv.Delete(byHand))
				got := <-late
				r.Check(got.err)
				r.Check(got.lease.Close())
				r.drained()
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}
