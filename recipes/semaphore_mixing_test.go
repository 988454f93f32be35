package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A lock may come to the path between the look of a semaphore's first acquire and
// its node in the queue. It is seen behind the leases. So is one that comes after
// the server has swept the directories of a semaphore that was idle.
func TestSemaphoreSeesALockThatComesLate(t *testing.T) {
	t.Parallel()
	for _, gap := range []string{"after the look", "after a sweep"} {
		t.Run(gap, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				a, b := r.Connect("a"), r.Connect("b")
				wait, try := r.acquirers(a, "semaphore")
				var held *recipes.Hold
				comes := func() { held = r.held(r.mutex(b)) }
				if gap == "after the look" {
					r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpCreate, PathPrefix: dir + "/locks", Times: 1},
						func(context.Context, zktest.Request) { comes() })
				} else {
					h, err := wait(r.Ctx)
					r.Check(err)
					r.Check(h.Close())
					for _, child := range []string{"/locks", "/leases", ""} {
						r.Check(r.Srv.Delete(dir + child))
					}
					comes()
				}
				h, err := wait(r.Ctx)
				r.wantRefused("acquire", h, err, "mutex", held.Path())
				if left := r.named(dir+"/leases", leaseName); len(left) != 0 {
					r.Errorf("left behind: %v", left)
				}
				r.Srv.ResetCounts()
				for name, again := range map[string]acquirer{"again": wait, "try": try} {
					h, err = again(r.Ctx)
					r.wantRefused(name, h, err, "mutex", held.Path())
				}
				if n := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpMulti); n != 0 {
					r.Errorf("made %d nodes before the look", n)
				}
				r.lives(held)
				r.Check(held.Close())
				time.Sleep(time.Second)
				h, err = wait(r.Ctx)
				r.Check(err)
				r.Check(h.Close())
			})
		})
	}
}

// A semaphore in constant use does not list its path with each grant. A lock that comes
// is seen all the same: while the semaphore is idle, just before the leases are made, and
// while the connection is lost.
func TestSemaphoreInUseSeesALock(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"idle", "before the leases", "no connection"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				a, b := r.Connect("a"), r.Connect("b")
				s := r.semaphore(a, 2)
				for range 5 {
					r.Check(r.lease(s, 1).Close())
				}
				node := ""
				comes := func() { // a mutex that has looked at the path before
					var err error
					node, err = b.Create(r.Ctx, pool+"/lock-", nil, client.Ephemeral(), client.Sequential(), client.Protected())
					r.Check(err)
				}
				r.Srv.ResetCounts()
				r.Check(r.lease(s, 1).Close())
				if n := r.Srv.Count(zktest.OpGetChildren2); n != 2 {
					r.Errorf("%d lists, want those of the queue and the leases", n)
				}
				switch when {
				case "idle":
					comes()
				case "before the leases":
					r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, Times: 1}, func(context.Context, zktest.Request) { comes() })
				case "no connection":
					r.Srv.CutAll()
					comes()
				}
				for range 3 {
					l, err := s.Acquire(r.Ctx, 1)
					if l != nil {
						r.Fatalf("granted beside %s", node)
					}
					testrig.WantErr(t, err, recipes.ErrForeignLock)
				}
				r.wantLeases(0)
				r.Check(b.Delete(r.Ctx, node, -1))
				for range 5 {
					r.Check(r.lease(s, 1).Close())
				}
				r.drained()
				r.WantNoWatch()
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// A lock comes behind the list of the acquire that begins to watch the path, and before that
// watch.
func TestSemaphoreSeesALockBeforeItsWatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		s := r.semaphore(a, 2)
		r.Check(r.lease(s, 1).Close())
		lists := 0
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: pool, Times: 2}, func(context.Context, zktest.Request) {
			if lists++; lists == 2 {
				_, err := b.Create(r.Ctx, pool+"/lock-", nil, client.Ephemeral(), client.Sequential(), client.Protected())
				r.Check(err)
			}
		})
		if l, err := s.Acquire(r.Ctx, 1); err == nil {
			r.Check(l.Close())
		}
		if lists != 2 {
			r.Errorf("%d lists", lists)
		}
		l, err := s.Acquire(r.Ctx, 1)
		if l != nil {
			r.Fatal("granted beside another lock")
		}
		testrig.WantErr(t, err, recipes.ErrForeignLock)
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
