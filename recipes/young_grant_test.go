package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// Another client deletes the node of an acquire whose turn has come, before the
// lease is known to stand. The servers have not said yet what they are. The
// acquire fails with ErrNodeDeleted and not with ErrLost, which would be the loss
// of an outer hold. A campaign stands in line again.
func TestNodeDeletedBeforeTheHold(t *testing.T) {
	t.Parallel()
	late := func(r *rig, path string, acquire func(context.Context) error) error {
		for _, p := range []string{"/leaders", leaders, "/locks", dir} {
			_ = r.Srv.Create(p, nil) // with its parents
		}
		unknown := r.Srv.Fail(zktest.Match{Client: "a", Op: zktest.OpGetData, PathPrefix: "/keeper", Times: zktest.Always}, zktest.CodeSessionMoved)
		done := make(chan error, 1)
		go func() { done <- acquire(r.Ctx) }()
		time.Sleep(100 * time.Millisecond) // the node is watched
		r.Check(r.Srv.Delete(path + "/" + r.Srv.Children(path)[0]))
		time.Sleep(100 * time.Millisecond)
		unknown.Remove()
		return <-done
	}
	bubble(t, func(r *rig) {
		r.Check(late(r, leaders, func(ctx context.Context) error {
			return r.latch(r.Connect("a"), "a").Do(ctx, func(context.Context, *recipes.Term) error { return nil })
		}))
	})
	bubble(t, func(r *rig) {
		err := late(r, dir, func(ctx context.Context) error {
			_, err := r.mutex(r.Connect("a")).Acquire(ctx)
			return err
		})
		testrig.WantErr(t, err, recipes.ErrNodeDeleted)
		testrig.WantNoErr(t, err, recipes.ErrLost)
	})
}
