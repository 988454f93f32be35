package nodes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// Data that no request can carry is refused at once, and the node keeps the data before.
func TestSetTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral)
		begun := time.Now()
		testrig.WantErr(t, n.Set(r.Within(time.Minute), make([]byte, 2<<20)), client.ErrTooLarge)
		if took := time.Since(begun); took != 0 {
			r.Errorf("refused after %v", took)
		}
		r.Srv.ExpireSession(r.SessionID(c))
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n, "one")
		_, err := nodes.NewPersistentNode(c, nodes.Ephemeral, nodePath, make([]byte, 2<<20))
		testrig.WantErr(t, err, client.ErrTooLarge)
		r.closed(n)
	})
}

// A round that fails hides no node that stands: the state stays, and the error says why
// the data is not written.
func TestFailedRoundKeepsOurs(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		g := r.member(c, "w1")
		r.Check(g.Wait(r.Ctx))
		rule := r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, Client: "a", Times: zktest.Always}, zktest.CodeNoAuth)
		testrig.WantErr(t, g.Set(r.Within(5*time.Second), []byte("two")), client.ErrNoAuth)
		if now := g.Status(); now.State != nodes.Ours || now.Czxid == 0 {
			r.Errorf("%+v", now)
		}
		testrig.WantErr(t, g.Status().Err, client.ErrNoAuth)
		r.wantMembers(g, "w1=of w1")
		rule.Remove()
		r.Check(g.Wait(r.Within(5 * time.Second)))
		if now := g.Status(); now.State != nodes.Ours || now.Err != nil {
			r.Errorf("%+v", now)
		}
		r.wantMembers(g, "w1=two")
		r.closed(g.PersistentNode)
	})
}

// Of two objects of one client the second does not take the first one's node of a lost
// session for its own.
func TestSecondObjectLeavesGhostOfFirst(t *testing.T) {
	t.Parallel()
	for range 10 {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			first, second := r.node(c, nodes.Ephemeral), r.started(c, nodes.Ephemeral)
			time.Sleep(time.Second)
			s, err := c.Session(r.Ctx)
			r.Check(err)
			r.Srv.Client("a").PartitionReplies() // the servers keep the session
			<-s.Context().Done()
			r.Srv.Client("a").Heal()
			time.Sleep(testrig.SessionTimeout / 2)
			if first.Status().State != nodes.Ours || second.Status().State != nodes.Foreign {
				r.Errorf("first %+v, second %+v", first.Status(), second.Status())
			}
			r.Check(second.CloseContext(r.Ctx))
			r.closed(first)
		})
	}
}

// An object that no constructor has made says so, and a missing context is named.
func TestZeroValue(t *testing.T) {
	t.Parallel()
	for _, n := range []*nodes.PersistentNode{nil, {}, new(nodes.GroupMember).PersistentNode} {
		for _, err := range []error{n.Start(t.Context()), n.Wait(t.Context()), n.Set(t.Context(), nil), n.Status().Err} {
			wantText(t, err, "NewPersistentNode")
		}
		if n.Data() != nil || n.Close() != nil || n.CloseContext(t.Context()) != nil {
			t.Error("Data or Close of a zero value")
		}
		count := 0
		for range n.Changes(t.Context()) {
			count++
		}
		if count != 1 {
			t.Errorf("%d changes", count)
		}
	}
	if _, err := new(nodes.Group).Members(t.Context()); err == nil {
		t.Error("Members of a zero value")
	}
	for _, err := range new(nodes.GroupMember).MemberChanges(t.Context()) {
		wantText(t, err, "NewGroup")
	}
	defer func() {
		if recover() == nil {
			t.Error("Changes of a nil context does not panic")
		}
	}()
	new(nodes.PersistentNode).Changes(nil) //nolint:staticcheck // on purpose
}

// A node that another client has replaced is absent at once, also while TakeOver pauses
// before it replaces that in turn.
func TestReplacedNodeIsAbsent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		n := r.node(a, nodes.Ephemeral, nodes.TakeOver())
		ctx, cancel := context.WithCancel(r.Ctx)
		told := make(chan []nodes.State, 1)
		go func() {
			var all []nodes.State
			for now := range n.Changes(ctx) {
				all = append(all, now.State)
			}
			told <- all
		}()
		_, err := b.Multi(r.Ctx, client.DeleteOp(nodePath, client.AnyVersion), client.CreateOp(nodePath, nil, client.Ephemeral()))
		r.Check(err)
		time.Sleep(3 * time.Second)
		r.wantOurs(a, n, "one")
		cancel()
		if all := <-told; !slices.Equal(all, []nodes.State{nodes.Ours, nodes.Absent, nodes.Ours}) {
			r.Errorf("told %v", all)
		}
		r.closed(n)
	})
}
