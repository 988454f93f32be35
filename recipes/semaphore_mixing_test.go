package recipes_test

import (
	"context"
	"testing"
	"time"

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
				a, b := r.connect("a"), r.connect("b")
				wait, try := r.acquirers(a, "semaphore")
				var held *recipes.Hold
				comes := func() { held = r.held(r.mutex(b)) }
				if gap == "after the look" {
					r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpCreate, PathPrefix: dir + "/locks", Times: 1},
						func(context.Context, zktest.Request) { comes() })
				} else {
					h, err := wait(r.ctx)
					r.check(err)
					r.check(h.Close())
					for _, child := range []string{"/locks", "/leases", ""} {
						r.check(r.srv.Delete(dir + child))
					}
					comes()
				}
				h, err := wait(r.ctx)
				r.wantRefused("acquire", h, err, "mutex", held.Path())
				if left := r.named(dir+"/leases", leaseName); len(left) != 0 {
					r.Errorf("left behind: %v", left)
				}
				r.srv.ResetCounts()
				for name, again := range map[string]acquirer{"again": wait, "try": try} {
					h, err = again(r.ctx)
					r.wantRefused(name, h, err, "mutex", held.Path())
				}
				if n := r.srv.Count(zktest.OpCreate) + r.srv.Count(zktest.OpMulti); n != 0 {
					r.Errorf("made %d nodes before the look", n)
				}
				r.lives(held)
				r.check(held.Close())
				time.Sleep(time.Second)
				h, err = wait(r.ctx)
				r.check(err)
				r.check(h.Close())
			})
		})
	}
}
