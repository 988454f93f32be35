package recipes_test

import (
	"context"
	"testing"
	"time"

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
				a := r.calm(r.semaphore(r.connect("a"), tt.permits))
				b := r.semaphore(r.connect("b"), tt.permits)
				r.check(r.lease(b, 1).Close())
				begun, grant := make(chan struct{}), make(chan struct{})
				r.srv.BeforeApply(zktest.Match{Client: "b", Op: zktest.OpMulti, Times: 1}, func(context.Context, zktest.Request) {
					close(begun) // it has joined the queue and has seen room
					<-grant
				})
				second := acquireLease(r.ctx, b, tt.theirs)
				<-begun
				var theirs *recipes.Lease
				r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1}, func(context.Context, zktest.Request) {
					close(grant) // the leases of a stand
					got := <-second
					r.check(got.err)
					r.check(got.lease.Err())
					theirs = got.lease
					r.check(theirs.Release(r.ctx))
				})
				ours := r.lease(a, tt.n)
				if ours.FencingToken() <= theirs.FencingToken() {
					t.Errorf("token %d after %d", ours.FencingToken(), theirs.FencingToken())
				}
				r.check(ours.Close())
				r.drained()
				wantNoGoroutine(t)
			})
		})
	}
}

// The same with a hand-over, which counts no leases that came after its list.
func TestSemaphoreMutexTokensGrow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m, err := recipes.NewInterProcessSemaphoreMutex(r.connect("a"), pool)
		r.check(err)
		for range 2 {
			h, err := m.Acquire(r.ctx)
			r.check(err)
			r.check(h.Close())
		}
		b := r.semaphore(r.connect("b"), 1)
		held := r.lease(b, 1)
		waits := r.inLine(r.ctx, b, 1, 1)[0]
		var theirs int64
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1}, func(context.Context, zktest.Request) {
			r.check(held.Release(r.ctx))
			got := <-waits
			r.check(got.err)
			theirs = got.lease.FencingToken()
			r.check(got.lease.Release(r.ctx))
		})
		ours, err := m.Acquire(r.ctx)
		r.check(err)
		if !ours.Exclusive() || ours.FencingToken() <= theirs {
			t.Errorf("token %d after %d", ours.FencingToken(), theirs)
		}
		r.check(ours.Close())
		r.drained()
		time.Sleep(time.Second)
		wantNoGoroutine(t)
	})
}
