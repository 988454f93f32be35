package recipes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The leases are listed together with the queue, and behind it. A contender ahead
// may take a permit and leave the queue just before the list that finds the next
// one first.
func TestSemaphoreStaleLeases(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		ahead, err := r.connect("ahead").Session(r.ctx)
		r.check(err)
		s := r.semaphore(r.connect("behind"), 1)
		r.check(r.lease(s, 1).Close()) // later only what is counted here
		first, err := inner.CreateAndList(r.ctx, ahead, newNode{Dir: poolQueue, Prefix: "lock-"})
		r.check(err)
		var lease inside.Entry
		rule := r.srv.BeforeApply(zktest.Match{Client: "behind", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1},
			func(ctx context.Context, _ zktest.Request) {
				var err error
				lease, err = inner.CreateAndList(ctx, ahead, newNode{Dir: poolLeases, Prefix: "lease-"})
				r.check(err)
				r.check(ahead.Delete(ctx, first.Path, client.AnyVersion))
			})
		begun := len(r.srv.Log())
		waits := acquireLease(r.ctx, s, 1)
		r.check(rule.Wait(r.ctx, 1))
		time.Sleep(time.Second)
		if len(waits) > 0 {
			r.Fatalf("two permits of one: %+v", <-waits)
		}
		asked := slices.DeleteFunc(r.srv.Log()[begun:], func(q zktest.Request) bool {
			return q.Client != "behind" || q.Op != zktest.OpGetChildren2
		})
		if len(asked) < 2 || asked[0].Path != poolQueue || asked[1].Path != poolLeases {
			t.Errorf("lists %v", asked)
		}
		r.check(ahead.Delete(r.ctx, lease.Path, client.AnyVersion))
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Close())
		r.drained()
	})
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
