package shared_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/zktest"
)

// An operator deletes the node with the mark below it, at every step of a TrySet: the
// node is missing, which is no error.
func TestTrySetNodeDeletedWithMark(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.Connect("a"), 1)
		for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpMulti} {
			prev := r.wantVersioned(s)
			rule := r.Srv.BeforeApply(zktest.Match{Op: op, Client: "a", Path: countPath}, func(context.Context, zktest.Request) {
				r.Check(r.Srv.Delete(countPath + "/" + r.Srv.Children(countPath)[0]))
				r.Check(r.Srv.Delete(countPath))
			})
			set, err := s.TrySet(r.Ctx, prev, 2)
			if set || err != nil || rule.Fired() != 1 {
				r.Errorf("deleted before the %v: %v, %v", op, set, err)
			}
		}
	})
}
