package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// Leases that are made at once are older than a hold that came and went before their
// acquire has looked. They are not granted: the token of the later hold would be smaller.
func TestSemaphoreAtOnceTokensGrow(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct{ permits, n, theirs int }{
		"one of one": {1, 1, 1}, "all": {3, 3, 3}, "all, after one": {3, 3, 1}, "one, after all": {3, 1, 3},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				a := r.calm(r.semaphore(r.Connect("a"), tt.permits))
				b := r.semaphore(r.Connect("b"), tt.permits)
				r.Check(r.lease(b, 1).Close())
				begun, grant := make(chan struct{}), make(chan struct{})
				r.Srv.BeforeApply(zktest.Match{Client: "b", Op: zktest.OpMulti, Times: 1}, func(context.Context, zktest.Request) {
					close(begun) // it has joined the queue and has seen room
					<-grant
				})
				second := acquireLease(r.Ctx, b, tt.theirs)
				<-begun
				var theirs *recipes.Lease
				r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1}, func(context.Context, zktest.Request) {
					close(grant) // the leases of a stand
					got := <-second
					r.Check(got.err)
					r.Check(got.lease.Err())
					theirs = got.lease
					r.Check(theirs.Release(r.Ctx))
				})
				ours := r.lease(a, tt.n)
				if ours.FencingToken() <= theirs.FencingToken() {
					t.Errorf("token %d after %d", ours.FencingToken(), theirs.FencingToken())
				}
				r.Check(ours.Close())
				r.drained()
				testrig.WantNoGoroutine(t, ourFrames)
			})
		})
	}
}

// The same with a hand-over, which counts no leases that came after its list.
func TestSemaphoreMutexTokensGrow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m, err := recipes.NewInterProcessSemaphoreMutex(r.Connect("a"), pool)
		r.Check(err)
		for range 2 {
			h, err := m.Acquire(r.Ctx)
			r.Check(err)
			r.Check(h.Close())
		}
		b := r.semaphore(r.Connect("b"), 1)
		held := r.lease(b, 1)
		waits := r.inLine(r.Ctx, b, 1, 1)[0]
		var theirs int64
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1}, func(context.Context, zktest.Request) {
			r.Check(held.Release(r.Ctx))
			got := <-waits
			r.Check(got.err)
			theirs = got.lease.FencingToken()
			r.Check(got.lease.Release(r.Ctx))
		})
		ours, err := m.Acquire(r.Ctx)
		r.Check(err)
		if !ours.Exclusive() || ours.FencingToken() <= theirs {
			t.Errorf("token %d after %d", ours.FencingToken(), theirs)
		}
		r.Check(ours.Close())
		r.drained()
		time.Sleep(time.Second)
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
