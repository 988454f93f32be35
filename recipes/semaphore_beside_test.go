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
		ahead, err := r.Connect("ahead").Session(r.Ctx)
		r.Check(err)
		s := r.semaphore(r.Connect("behind"), 1)
		r.Check(r.lease(s, 1).Close()) // later only what is counted here
		first, err := inner.CreateAndList(r.Ctx, ahead, newNode{Dir: poolQueue, Prefix: "lock-"})
		r.Check(err)
		var lease inside.Entry
		rule := r.Srv.BeforeApply(zktest.Match{Client: "behind", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1},
			func(ctx context.Context, _ zktest.Request) {
				var err error
				lease, err = inner.CreateAndList(ctx, ahead, newNode{Dir: poolLeases, Prefix: "lease-"})
				r.Check(err)
				r.Check(ahead.Delete(ctx, first.Path, client.AnyVersion))
			})
		begun := len(r.Srv.Log())
		waits := acquireLease(r.Ctx, s, 1)
		r.Check(rule.Wait(r.Ctx, 1))
		time.Sleep(time.Second)
		if len(waits) > 0 {
			r.Fatalf("two permits of one: %+v", <-waits)
		}
		asked := slices.DeleteFunc(r.Srv.Log()[begun:], func(q zktest.Request) bool {
			return q.Client != "behind" || q.Op != zktest.OpGetChildren2
		})
		if len(asked) < 2 || asked[0].Path != poolQueue || asked[1].Path != poolLeases {
			t.Errorf("lists %v", asked)
		}
		r.Check(ahead.Delete(r.Ctx, lease.Path, client.AnyVersion))
		got := <-waits
		r.Check(got.err)
		r.Check(got.lease.Close())
		r.drained()
	})
}

// Permits that are free cost two round trips, and no more beside other locks.
func TestSemaphoreRoundTrips(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const trips = 2 * 2 * time.Millisecond // at most a millisecond each way
		c := r.Connect("a")
		s := r.semaphore(c, 3)
		mutex, err := recipes.NewInterProcessMutex(c, "/m")
		r.Check(err)
		both, err := recipes.NewInterProcessMultiLock(mutex, s.Permits(2))
		r.Check(err)
		for _, known := range []bool{false, true} { // the first time directories are made
			began := time.Now()
			l := r.lease(s, 2)
			if took := time.Since(began); known && took > trips {
				r.Errorf("permits took %v", took)
			}
			r.Check(l.Close())
			began = time.Now()
			h, err := both.Acquire(r.Ctx)
			r.Check(err)
			if took := time.Since(began); known && took > trips {
				r.Errorf("permits and a mutex took %v", took)
			}
			r.Check(h.Close())
		}
		r.drained()
	})
}
