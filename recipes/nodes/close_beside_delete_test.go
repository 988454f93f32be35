package nodes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// An operator deletes the node in the same moment as Close. Close has nothing to complain of:
// its error "says why the node could not be removed".
func TestCloseBesideDelete(t *testing.T) {
	t.Parallel()
	for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.Persistent} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.connect("a")
				n := r.fresh(c, mode)
				r.check(n.Start(r.ctx))
				r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpDelete, Path: nodePath}, func(context.Context, zktest.Request) {
					r.check(r.srv.Delete(nodePath))
				})
				if err := n.Close(); err != nil {
					r.Errorf("Close: %v", err)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// The connection is cut behind the delete of Close, before its answer.
func TestCloseAnswerLost(t *testing.T) {
	t.Parallel()
	for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.Persistent} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.connect("a")
				n := r.fresh(c, mode)
				r.check(n.Start(r.ctx))
				r.srv.DropAfter(zktest.Match{Client: "a", Op: zktest.OpDelete, Path: nodePath})
				if err := n.Close(); err != nil {
					r.Errorf("Close: %v", err)
				}
				time.Sleep(time.Second)
			})
		})
	}
}
