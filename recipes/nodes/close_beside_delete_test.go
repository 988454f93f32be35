package nodes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
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
				c := r.Connect("a")
				n := r.fresh(c, mode)
				r.Check(n.Start(r.Ctx))
				r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, Path: nodePath}, func(context.Context, zktest.Request) {
					r.Check(r.Srv.Delete(nodePath))
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
				c := r.Connect("a")
				n := r.fresh(c, mode)
				r.Check(n.Start(r.Ctx))
				r.Srv.DropAfter(zktest.Match{Client: "a", Op: zktest.OpMulti, Path: nodePath})
				if err := n.Close(); err != nil {
					r.Errorf("Close: %v", err)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// The answer to the delete of Close is lost, and the object that waited for the name makes
// its node. Close does not delete that one.
func TestCloseAnswerLostBesideSuccessor(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		first := r.node(a, nodes.Ephemeral)
		next := r.started(b, nodes.Ephemeral, nodes.StopWhenRemoved())
		time.Sleep(time.Second) // it watches the node of the first
		r.Srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpMulti, Path: nodePath}, func(context.Context, zktest.Request) {
			r.Srv.Client("a").Refuse()
			r.Srv.Client("a").Cut()
		})
		r.Srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpMulti, Path: nodePath}, func(context.Context, zktest.Request) {
			r.Srv.Client("a").Refuse()
			r.Srv.Client("a").Cut()
		})
		closed := make(chan error, 1)
		go func() { closed <- first.CloseContext(r.Ctx) }() // ends when the node is deleted
		r.Check(next.Wait(r.Within(time.Minute)))
		r.Srv.Client("a").Accept()
		r.Check(<-closed)
		time.Sleep(time.Second)
		r.wantOurs(b, next, "one")
	})
}

// The request of a Set is lost, and meanwhile another client's node takes the place of this
// object's. Its data stays.
func TestSetLostBesideSuccessor(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		first := r.node(a, nodes.Ephemeral)
		cut := func(context.Context, zktest.Request) {
			r.Srv.Client("a").Refuse()
			r.Srv.Client("a").Cut()
		}
		for _, op := range []zktest.Op{zktest.OpSetData, zktest.OpMulti} {
			r.Srv.BeforeReply(zktest.Match{Client: "a", Op: op, Path: nodePath}, cut)
		}
		set := make(chan error, 1)
		go func() { set <- first.Set(r.Within(5*time.Second), []byte("two")) }() // ends with the time
		time.Sleep(time.Second)
		next, err := nodes.NewPersistentNode(b, nodes.Ephemeral, nodePath, []byte("three"), nodes.TakeOver())
		r.Check(errors.Join(err, next.Start(r.Ctx)))
		r.Srv.Client("a").Accept()
		testrig.WantErr(t, <-set, context.DeadlineExceeded)
		r.wantOurs(b, next, "three")
	})
}
