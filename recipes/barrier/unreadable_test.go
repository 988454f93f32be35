package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// hidden is an ACL without READ, as nodes of another user have it.
var hidden = []zk.ACL{{Perms: zk.PermAll &^ zk.PermRead, Scheme: "world", ID: "anyone"}}

// Servers keep back the events of nodes that a client may not read (CVE-2024-23944). All
// pass all the same: a waiter, and members in Enter and Leave.
func TestUnreadableNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		op := r.Connect("op")
		_, err := op.Create(r.Ctx, path, nil, client.WithParents())
		r.Check(err)
		_, err = op.Create(r.Ctx, gate, nil, client.ACL(hidden...), client.WithParents())
		r.Check(err)
		b := r.gate(r.Connect("a"))
		one := r.wait(r.Ctx, b)
		waiting(r, one)
		r.Check(b.Remove(r.Ctx))
		r.gone(one)

		for range 3 { // each may be the lowest
			first := r.enter(r.Ctx, r.double(op, 3, barrier.WithNodeACL(hidden...)))
			r.standing(1)
			time.Sleep(time.Second) // another makes the ready node
			ms := r.inside(first, r.enter(r.Ctx, r.double(op, 3)), r.enter(r.Ctx, r.double(r.Connect("b"), 3)))
			var left []<-chan error
			for _, m := range ms {
				left = append(left, r.leave(r.Ctx, m))
			}
			r.gone(left...)
			r.clean()
		}
	}, zktest.WithVersion(zktest.ZooKeeper380))
}

// Since 3.8.4 and 3.9.2 servers refuse to tell of such nodes (ZOOKEEPER-2590): the calls say
// so, and View still lists them.
func TestUnreadableNodesRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		_, err := r.Connect("op").Create(r.Ctx, path, nil, client.WithParents())
		r.Check(err)
		b := r.double(r.Connect("a"), 1, barrier.WithNodeACL(hidden...))
		_, err = b.Enter(r.Ctx)
		testrig.WantErr(t, err, client.ErrNoAuth)
		r.clean()
		r.Check(r.Srv.Create(path+"/"+high, nil))
		_, err = r.Connect("b").SetACL(r.Ctx, path+"/"+high, hidden, client.AnyVersion)
		r.Check(err)
		v, err := b.View(r.Ctx)
		r.Check(err)
		if len(v.Members) != 1 || v.Members[0].Path != path+"/"+high {
			r.Errorf("%+v", v)
		}
	})
}

// A member comes into an open round whose members it may not read: it withdraws, and comes
// again when the round is over.
func TestWithdrawalAmongUnreadable(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		rounds := barrier.WithRounds()
		op := r.Connect("op")
		a, b, c := r.double(r.Connect("a"), 2, rounds), r.double(r.Connect("b"), 2, rounds), r.double(r.Connect("c"), 2, rounds)
		until := make(chan struct{})
		r.Srv.BeforeApply(zktest.Match{Client: "c", Op: zktest.OpCreate, PathPrefix: path}, func(context.Context, zktest.Request) { <-until })
		late := r.enter(r.Ctx, c)
		time.Sleep(time.Second)
		ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
		for _, m := range ms {
			_, err := op.SetACL(r.Ctx, m.Path(), hidden, client.AnyVersion)
			r.Check(err)
		}
		close(until)
		waiting(r, late)
		r.standing(2) // it has withdrawn
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		ms = r.inside(late, r.enter(r.Ctx, a))
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		r.clean()
	}, zktest.WithVersion(zktest.ZooKeeper380)) // before ZOOKEEPER-2590
}

// A member comes into an open round whose ready node it may not read. An operator deletes that
// before the member asks again, for the error. Seed 483 of the schedules did so.
func TestUnreadableReadyIsGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b, c := r.double(r.Connect("a"), 2), r.double(r.Connect("b"), 2), r.double(r.Connect("c"), 2)
		ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
		_, err := r.Connect("op").SetACL(r.Ctx, ready, hidden, client.AnyVersion)
		r.Check(err)
		until, asked := make(chan struct{}), 0
		rule := r.Srv.BeforeApply(zktest.Match{Client: "c", Op: zktest.OpGetData, Path: ready, Times: 2}, func(context.Context, zktest.Request) {
			if asked++; asked == 2 {
				<-until
			}
		})
		late := r.enter(r.Ctx, c)
		r.Check(rule.Wait(r.Within(time.Minute), 2))
		r.Check(r.Srv.Delete(ready))
		close(until)
		ms = append(ms, r.inside(late)...) // two others stand, so the member opens a round
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]), r.leave(r.Ctx, ms[2]))
		r.clean()
	}, zktest.WithVersion(zktest.ZooKeeper380))
}
