package recipes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The leases are listed together with the queue, and that list may be answered
// first: then somebody ahead may have taken a permit and left in between, which
// only the queue's own history tells.
func TestSemaphoreStaleLeases(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		stale := 0
		for round := 0; round < 100 && stale < 3; round++ {
			if r.takenBetween(round) {
				stale++
			}
		}
		if stale == 0 {
			r.Error("the leases were never listed first, so nothing was tested")
		}
		r.drained()
	})
}

// takenBetween lets somebody, as Curator does, take the only permit and leave
// the queue just before a later one lists it. It reports whether that one had
// listed the leases before.
func (r *rig) takenBetween(round int) (staleList bool) {
	r.Helper()
	ahead, err := r.connect("ahead" + name(round)).Session(r.ctx)
	r.check(err)
	behind := "behind" + name(round)
	s := r.semaphore(r.connect(behind), 1)
	r.check(r.lease(s, 1).Close()) // later only what is counted here
	first, err := ahead.CreateAndList(r.ctx, poolQueue, "lock-", nil)
	r.check(err)
	var lease client.Entry
	rule := r.srv.BeforeApply(zktest.Match{Client: behind, Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1},
		func(ctx context.Context, _ zktest.Request) {
			var err error
			lease, err = ahead.CreateAndList(ctx, poolLeases, "lease-", nil)
			r.check(err)
			r.check(ahead.Delete(ctx, first.Path, client.AnyVersion))
		})
	begun := len(r.srv.Log())
	waits := acquireLease(r.ctx, s, 1)
	r.check(rule.Wait(r.ctx, 1))
	time.Sleep(time.Second)
	if len(waits) > 0 {
		r.Fatalf("round %d: two permits of one: %+v", round, <-waits)
	}
	asked := slices.DeleteFunc(r.srv.Log()[begun:], func(q zktest.Request) bool {
		return q.Client != behind || q.Op != zktest.OpGetChildren2
	})
	r.check(ahead.Delete(r.ctx, lease.Path, client.AnyVersion))
	got := <-waits
	r.check(got.err)
	r.check(got.lease.Close())
	return len(asked) > 0 && asked[0].Path == poolLeases
}

// Permits that are free cost two round trips, and no more beside other locks.
func TestSemaphoreRoundTrips(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const trips = 2 * 2 * time.Millisecond // at most a millisecond each way
		c := r.connect("a")
		s := r.semaphore(c, 3)
		mutex, err := recipes.NewInterProcessMutex(c, "/m")
		r.check(err)
		both, err := recipes.NewInterProcessMultiLock(mutex, s.Permits(2))
		r.check(err)
		for _, known := range []bool{false, true} { // the first time directories are made
			began := time.Now()
			l := r.lease(s, 2)
			if took := time.Since(began); known && took > trips {
				r.Errorf("permits took %v", took)
			}
			r.check(l.Close())
			began = time.Now()
			h, err := both.Acquire(r.ctx)
			r.check(err)
			if took := time.Since(began); known && took > trips {
				r.Errorf("permits and a mutex took %v", took)
			}
			r.check(h.Close())
		}
		r.drained()
	})
}
