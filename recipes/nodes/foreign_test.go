package nodes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
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
				c := r.connect("a")
				n := r.node(c, mode, opts...)
				old := r.session(c)
				vacancy := r.vacancy()
				// Pings arrive and no answer comes back: the server keeps the session.
				r.srv.Client("a").PartitionReplies()
				lost, err := c.Session(r.ctx)
				r.check(err)
				<-lost.Context().Done()
				synctest.Wait()
				if n.Status().State != nodes.Absent {
					r.Errorf("%+v in a lost session", n.Status())
				}
				r.srv.Client("a").Heal()
				r.check(n.Wait(r.within(sessionTimeout)))
				stat := r.wantOurs(c, n, "one")
				if stat.EphemeralOwner == old || stat.Version != 0 {
					r.Errorf("%v: %+v", mode, stat)
				}
				time.Sleep(2 * sessionTimeout) // the ghost's session is over
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
		a, b := r.connect("a"), r.connect("b")
		_, err := a.Create(r.ctx, nodePath, []byte("foreign"), client.Ephemeral(), client.WithParents())
		r.check(err)
		n := r.started(b, nodes.Ephemeral)
		time.Sleep(time.Second)
		err = n.Set(r.within(time.Second), []byte("two"))
		wantErr(t, err, context.DeadlineExceeded)
		r.srv.CutAll()
		time.Sleep(5 * time.Second)
		if data, stat := r.data(nodePath); data != "foreign" || stat.Version != 0 || n.Status().State != nodes.Foreign {
			r.Errorf("%q, %+v, %+v", data, stat, n.Status())
		}
		r.check(a.Delete(r.ctx, nodePath, client.AnyVersion))
		r.check(n.Wait(r.within(time.Second)))
		r.wantOurs(b, n, "two")

		vacancy := r.vacancy()
		taken := r.node(a, nodes.Ephemeral, nodes.TakeOver())
		if data, stat := r.data(nodePath); data != "one" || stat.EphemeralOwner != r.session(a) {
			r.Errorf("not taken over: %q, %+v", data, stat)
		}
		time.Sleep(5 * time.Second)
		if n.Status().State != nodes.Foreign || vacancy() != 0 {
			r.Errorf("%+v, vacant for %v", n.Status(), vacancy())
		}
		r.check(n.CloseContext(r.ctx)) // leaves the other's node
		r.wantOurs(a, taken, "one")
		r.closed(taken)
	})
}

// Another client deletes the node and makes its own at the moment of a set: nothing is
// written into that.
func TestSetMeetsForeignNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		n := r.node(a, nodes.Ephemeral)
		r.check(n.Set(r.ctx, []byte("two")))
		r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a"}, func(context.Context, zktest.Request) {
			r.check(r.srv.Delete(nodePath))
			_, err := b.Create(r.ctx, nodePath, []byte("foreign"), client.Ephemeral())
			r.check(err)
		})
		wantErr(t, n.Set(r.within(5*time.Second), []byte("three")), context.DeadlineExceeded)
		if data, _ := r.data(nodePath); data != "foreign" || n.Status().State != nodes.Foreign {
			r.Errorf("%q, %+v", data, n.Status())
		}
		r.check(b.Delete(r.ctx, nodePath, client.AnyVersion))
		r.check(n.Wait(r.within(5 * time.Second)))
		r.wantOurs(a, n, "three")
		r.closed(n)
	})
}

// Of two objects of one client with one path, the second waits for the first.
func TestTwoObjectsOfOneClient(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		first, second := r.node(c, nodes.Ephemeral), r.started(c, nodes.Ephemeral)
		time.Sleep(5 * time.Second)
		if second.Status().State != nodes.Foreign {
			r.Errorf("%+v", second.Status())
		}
		r.check(first.CloseContext(r.ctx))
		r.check(second.Wait(r.within(time.Second)))
		r.wantOurs(c, second, "one")
		r.closed(second)
	})
}

// Two that take over from each other do so at a bounded pace.
func TestTakeOverRivals(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.started(r.connect("a"), nodes.Ephemeral, nodes.TakeOver())
		b := r.started(r.connect("b"), nodes.Ephemeral, nodes.TakeOver())
		time.Sleep(10 * time.Second)
		r.srv.ResetCounts()
		time.Sleep(100 * time.Second)
		if n := r.srv.Count(zktest.OpMulti); n > 400 {
			r.Errorf("%d replacements in 100 s", n)
		}
		r.check(a.CloseContext(r.ctx))
		time.Sleep(5 * time.Second)
		r.closed(b)
	})
}

// A node of another kind stays, whatever the options.
func TestNodeOfAnotherKind(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.check(r.srv.Create("/workers", nil))
		r.check(r.srv.Create(nodePath, []byte("other")))
		n := r.started(c, nodes.Ephemeral, nodes.TakeOver())
		time.Sleep(time.Second)
		if data, _ := r.data(nodePath); data != "other" || n.Status().State != nodes.Foreign {
			r.Errorf("%q, %+v", data, n.Status())
		}
		r.check(n.CloseContext(r.ctx))
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
		c := r.connect("a")
		r.check(r.srv.Create("/workers", nil))
		r.check(r.srv.Create(nodePath, []byte("old")))
		n := r.node(c, nodes.Persistent)
		r.wantOurs(c, n, "one")
		r.check(n.CloseContext(r.ctx))
		r.data(nodePath)
		n = r.node(c, nodes.Persistent, nodes.TakeOver())
		r.check(n.CloseContext(r.ctx))
		if _, there := r.srv.Node(nodePath); there {
			r.Error("not deleted")
		}
	})
}
