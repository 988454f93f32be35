package recipes_test

import (
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A transaction makes several nodes together, and its answer is lost. One node is
// deleted before the client looks for them. The error says so, as for a single
// node, and the other nodes are deleted.
func TestOneOfSeveralNodesDeleted(t *testing.T) {
	t.Parallel()
	type way struct {
		dirs    []string
		acquire func() (interface{ Close() error }, error)
	}
	for _, of := range []func(*rig, *client.Client) way{
		func(r *rig, c *client.Client) way {
			m := r.multi(c, "/x", "/y")
			return way{[]string{"/x", "/y"}, func() (interface{ Close() error }, error) { return m.Acquire(r.Ctx) }}
		},
		func(r *rig, c *client.Client) way {
			s, err := recipes.NewInterProcessSemaphoreV2(c, "/x", 2)
			r.Check(err)
			return way{[]string{"/x/locks", "/x/leases"}, func() (interface{ Close() error }, error) { return s.Acquire(r.Ctx, 2) }}
		},
	} {
		bubble(t, func(r *rig) {
			w := of(r, r.Connect("a"))
			h, err := w.acquire() // the directories are there
			r.Check(err)
			r.Check(h.Close())
			lost := r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti})
			r.Srv.OnCommit(func(c zktest.Commit) {
				if len(c.Created) == 2 {
					r.Check(r.Srv.Delete(c.Created[1]))
				}
			})
			_, err = w.acquire()
			testrig.WantErr(t, err, recipes.ErrNodeDeleted)
			if lost.Fired() != 1 {
				t.Errorf("%d answers were lost", lost.Fired())
			}
			r.nothingIn(w.dirs...)
			testrig.WantNoGoroutine(t, ourFrames)
		})
	}
}
