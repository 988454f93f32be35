package nodes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// The ghost ephemeral (dubbo 5125, kratos 2245, CURATOR-258): the client has given its
// session up, the server keeps it. The node is not taken for ours: it is replaced in
// one transaction, and readers see no moment without it.
func TestGhostEphemeral(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]nodes.Option{nil, {nodes.WithProtection()}} {
		for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.EphemeralSequential} {
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				n := r.node(c, mode, opts...)
				old := r.SessionID(c)
				vacancy := r.vacancy()
				// Pings arrive and no answer comes back: the server keeps the session.
				r.Srv.Client("a").PartitionReplies()
				lost, err := c.Session(r.Ctx)
				r.Check(err)
				<-lost.Context().Done()
				synctest.Wait()
				if n.Status().State != nodes.Absent {
					r.Errorf("%+v in a lost session", n.Status())
				}
				r.Srv.Client("a").Heal()
				r.Check(n.Wait(r.Within(testrig.SessionTimeout)))
				stat := r.wantOurs(c, n, "one")
				if stat.EphemeralOwner == old || stat.Version != 0 {
					r.Errorf("%v: %+v", mode, stat)
				}
				time.Sleep(2 * testrig.SessionTimeout) // the ghost's session is over
				if after := r.wantOurs(c, n, "one"); after != stat {
					r.Errorf("%v: %+v, was %+v", mode, after, stat)
				}
				if d := vacancy(); d != 0 {
					r.Errorf("%v: readers saw no node for %v", mode, d)
				}
				r.closed(n)
			})
		}
	}
}

// Another session's node at the path is left alone, and nothing is written into it
// (TestPersistentEphemeralNode.testRecreatesNodeWhenEphemeralOwnerSessionExpires, where
// Curator sets its data). When it goes, ours comes. With TakeOver it is replaced.
func TestForeignNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		_, err := a.Create(r.Ctx, nodePath, []byte("foreign"), client.Ephemeral(), client.WithParents())
		r.Check(err)
		n := r.started(b, nodes.Ephemeral)
		time.Sleep(time.Second)
		err = n.Set(r.Within(time.Second), []byte("two"))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		r.Srv.CutAll()
		time.Sleep(5 * time.Second)
		if data, stat := r.data(nodePath); data != "foreign" || stat.Version != 0 || n.Status().State != nodes.Foreign {
			r.Errorf("%q, %+v, %+v", data, stat, n.Status())
		}
		r.Check(a.Delete(r.Ctx, nodePath, client.AnyVersion))
		r.Check(n.Wait(r.Within(time.Second)))
		r.wantOurs(b, n, "two")

		vacancy := r.vacancy()
		taken := r.node(a, nodes.Ephemeral, nodes.TakeOver())
		if data, stat := r.data(nodePath); data != "one" || stat.EphemeralOwner != r.SessionID(a) {
			r.Errorf("not taken over: %q, %+v", data, stat)
		}
		time.Sleep(5 * time.Second)
		if n.Status().State != nodes.Foreign || vacancy() != 0 {
			r.Errorf("%+v, vacant for %v", n.Status(), vacancy())
		}
		r.Check(n.CloseContext(r.Ctx)) // leaves the other's node
		r.wantOurs(a, taken, "one")
		r.closed(taken)
	})
}

// Another client deletes the node and makes its own at the moment of a set: nothing is
// written into that.
func TestSetMeetsForeignNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		n := r.node(a, nodes.Ephemeral)
		r.Check(n.Set(r.Ctx, []byte("two")))
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a"}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(nodePath))
			_, err := b.Create(r.Ctx, nodePath, []byte("foreign"), client.Ephemeral())
			r.Check(err)
		})
		testrig.WantErr(t, n.Set(r.Within(5*time.Second), []byte("three")), context.DeadlineExceeded)
		if data, _ := r.data(nodePath); data != "foreign" || n.Status().State != nodes.Foreign {
			r.Errorf("%q, %+v", data, n.Status())
		}
		r.Check(b.Delete(r.Ctx, nodePath, client.AnyVersion))
		r.Check(n.Wait(r.Within(5 * time.Second)))
		r.wantOurs(a, n, "three")
		r.closed(n)
	})
}

// Of two objects of one client with one path, the second waits for the first.
func TestTwoObjectsOfOneClient(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		first, second := r.node(c, nodes.Ephemeral), r.started(c, nodes.Ephemeral)
		time.Sleep(5 * time.Second)
		if second.Status().State != nodes.Foreign {
			r.Errorf("%+v", second.Status())
		}
		r.Check(first.CloseContext(r.Ctx))
		r.Check(second.Wait(r.Within(time.Second)))
		r.wantOurs(c, second, "one")
		r.closed(second)
	})
}

// Two that take over from each other do so at a bounded pace.
func TestTakeOverRivals(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.started(r.Connect("a"), nodes.Ephemeral, nodes.TakeOver())
		b := r.started(r.Connect("b"), nodes.Ephemeral, nodes.TakeOver())
		time.Sleep(10 * time.Second)
		r.Srv.ResetCounts()
		time.Sleep(100 * time.Second)
		if n := r.Srv.Count(zktest.OpMulti); n > 400 {
			r.Errorf("%d replacements in 100 s", n)
		}
		r.Check(a.CloseContext(r.Ctx))
		time.Sleep(5 * time.Second)
		r.closed(b)
	})
}

// A node of another kind stays, whatever the options.
func TestNodeOfAnotherKind(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/workers", nil))
		r.Check(r.Srv.Create(nodePath, []byte("other")))
		n := r.started(c, nodes.Ephemeral, nodes.TakeOver())
		time.Sleep(time.Second)
		if data, _ := r.data(nodePath); data != "other" || n.Status().State != nodes.Foreign {
			r.Errorf("%q, %+v", data, n.Status())
		}
		r.Check(n.CloseContext(r.Ctx))
		if data, _ := r.data(nodePath); data != "other" {
			r.Errorf("%q", data)
		}
	})
}

// A persistent node that stood before is adopted: its data is set, and Close leaves
// it. With TakeOver Close deletes it (TestPersistentNode.testQuickCloseNodeExists).
func TestPersistentNodeAdopted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/workers", nil))
		r.Check(r.Srv.Create(nodePath, []byte("old")))
		n := r.node(c, nodes.Persistent)
		r.wantOurs(c, n, "one")
		r.Check(n.CloseContext(r.Ctx))
		r.data(nodePath)
		n = r.node(c, nodes.Persistent, nodes.TakeOver())
		r.Check(n.CloseContext(r.Ctx))
		if _, there := r.Srv.Node(nodePath); there {
			r.Error("not deleted")
		}
	})
}
