package nodes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// A caller that waits for a node that is closed before its start is told so.
func TestClosedBeforeStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n, err := nodes.NewPersistentNode(r.Connect("a"), nodes.Ephemeral, nodePath, nil)
		r.Check(err)
		waited := make(chan error, 1)
		go func() { waited <- n.Wait(r.Within(time.Minute)) }()
		time.Sleep(time.Second)
		r.Check(n.Close())
		time.Sleep(time.Second)
		select {
		case err := <-waited:
			testrig.WantErr(t, err, nodes.ErrClosed)
		default:
			r.Error("Wait goes on after Close")
		}
		testrig.WantErr(t, n.Wait(r.Ctx), nodes.ErrClosed)
		testrig.WantErr(t, n.Set(r.Ctx, nil), nodes.ErrClosed)
		for now := range n.Changes(r.Ctx) {
			testrig.WantErr(t, now.Err, nodes.ErrClosed)
		}
	})
}

// With StopWhenRemoved the deletion also counts if another node stands at the
// path before this client looks. It also counts right after the create.
func TestRemovedAndReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		replace := func(mode ...client.CreateOption) {
			_, err := b.Multi(r.Ctx, client.DeleteOp(nodePath, client.AnyVersion), client.CreateOp(nodePath, []byte("foreign"), mode...))
			r.Check(err)
		}
		for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.Persistent} {
			n := r.node(a, mode, nodes.StopWhenRemoved())
			if mode == nodes.Ephemeral {
				replace(client.Ephemeral())
			} else {
				replace()
			}
			time.Sleep(5 * time.Second)
			if data, _ := r.data(nodePath); data != "foreign" || n.Status().State != nodes.Removed {
				r.Errorf("%v: %q, %+v", mode, data, n.Status())
			}
			r.Check(b.Delete(r.Ctx, nodePath, client.AnyVersion))
			time.Sleep(5 * time.Second)
			if _, there := r.Srv.Node(nodePath); there {
				r.Errorf("%v: made again", mode)
			}
			r.closed(n)

			rule := r.Srv.BeforeReply(zktest.Match{Path: nodePath, Client: "a", Where: creates}, func(context.Context, zktest.Request) {
				r.Check(r.Srv.Delete(nodePath))
			})
			n = r.started(a, mode, nodes.StopWhenRemoved())
			time.Sleep(5 * time.Second)
			if _, there := r.Srv.Node(nodePath); there || n.Status().State != nodes.Removed || rule.Fired() != 1 {
				r.Errorf("%v: there: %v, %+v", mode, there, n.Status())
			}
			rule.Remove()
			r.closed(n)
		}
	})
}

// The servers delete a TTL node whose client was away for longer than its time to
// live. No client has deleted it, so it is made again, also with StopWhenRemoved.
func TestExpiredTtlNodeIsNotRemoved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, []byte("one"), nodes.StopWhenRemoved())
		r.Check(err)
		r.Check(n.Start(r.Ctx))
		for range 3 {
			time.Sleep(3 * ttl)
			r.wantOurs(c, n.PersistentNode, "one")
			r.Srv.Client("a").Partition()
			time.Sleep(5 * ttl)
			if _, there := r.Srv.Node(nodePath); there {
				r.Error("nothing was tested")
			}
			r.Srv.Client("a").Heal()
			time.Sleep(testrig.SessionTimeout)
			r.wantOurs(c, n.PersistentNode, "one")
		}
		_ = r.Srv.Delete(nodePath + "/touch")
		r.Check(r.Srv.Delete(nodePath))
		time.Sleep(5 * time.Second)
		if n.Status().State != nodes.Removed {
			r.Errorf("%+v", n.Status())
		}
		r.Check(n.Close())
	}, swept()...)
}

// Close gives up while no server answers, and the session goes on afterwards: the node
// does not stay for as long as the client lives.
func TestCloseInPartitionLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			n := r.node(c, tt.mode, tt.opts...)
			s, err := c.Session(r.Ctx)
			r.Check(err)
			r.Srv.Client("a").Partition()
			if err := n.CloseContext(r.Within(time.Second)); err == nil {
				r.Error("closed without a server")
			}
			if n.Status().State != nodes.Absent {
				r.Errorf("%+v after Close", n.Status())
			}
			testrig.WantErr(t, n.Wait(r.Within(time.Millisecond)), nodes.ErrClosed)
			time.Sleep(5 * time.Second)
			r.Srv.Client("a").Heal()
			if s.Err() != nil {
				r.Fatal("the session is over, nothing was tested")
			}
			time.Sleep(5 * time.Second)
			r.closed(n)
		})
	}
}

// The client loses the answer to the first create, and its session, while the
// servers keep that session. There is never a second node beside the ghost (etcd
// 2128).
func TestGhostOfLostAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			r.Check(r.Srv.Create("/workers", nil))
			most := r.most()
			link := r.Srv.Client("a")
			rule := r.Srv.BeforeReply(zktest.Match{
				Client: "a", PathPrefix: "/workers/",
				Where: func(q zktest.Request) bool { return q.Op != zktest.OpExists },
			}, func(context.Context, zktest.Request) { link.PartitionReplies() })
			n := r.started(c, tt.mode, tt.opts...)
			s, err := c.Session(r.Ctx)
			r.Check(err)
			<-s.Context().Done()
			link.Heal()
			r.Check(n.Wait(r.Within(testrig.SessionTimeout)))
			r.wantOurs(c, n, "one")
			time.Sleep(2 * testrig.SessionTimeout)
			r.wantOurs(c, n, "one")
			if rule.Fired() != 1 || most() != 1 {
				r.Errorf("%v: %d nodes at once, fired %d", tt.mode, most(), rule.Fired())
			}
			r.closed(n)
		})
	}
}

// A server whose limit is lower than this client's drops the connection on each try:
// the tries have pauses.
func TestTooLargeForTheServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n, err := nodes.NewPersistentNode(c, nodes.Ephemeral, nodePath, make([]byte, 64<<10), nodes.WithLazyStart())
		r.Check(err)
		r.Check(n.Start(r.Ctx))
		time.Sleep(100 * time.Second)
		if tries := r.Srv.Count(zktest.OpConnect); tries > 300 {
			r.Errorf("%d connections in 100 s", tries)
		}
		testrig.WantErr(t, n.Set(r.Within(time.Minute), []byte("small")))
		r.wantOurs(c, n, "small")
		r.closed(n)
	}, zktest.WithMaxFrame(32<<10))
}

// Without a server MemberChanges does not spin, whatever the retry policy.
func TestMemberChangesDoesNotSpin(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithRetry(retry.None()))
		g, err := nodes.NewGroupMember(c, "/workers", "1", nil)
		r.Check(err)
		r.Srv.Stop()
		pairs := 0
		for range g.MemberChanges(r.Within(100 * time.Second)) {
			if pairs++; pairs > 1000 {
				break
			}
		}
		if pairs > 300 {
			r.Errorf("more than %d pairs in 100 s", pairs)
		}
		r.Srv.Resume()
	})
}

// The parent is deleted with its counter, and another client gets the number of this
// node: this one gets a new number. Curator writes into the other's node.
func TestNumberTaken(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		n := r.node(a, nodes.EphemeralSequential)
		rule := r.Srv.BeforeApply(zktest.Match{Client: "a", Where: creates, PathPrefix: nodePath}, func(context.Context, zktest.Request) {
			_, err := b.Create(r.Ctx, nodePath, []byte("b's"), client.Ephemeral(), client.Sequential(), client.WithParents())
			r.Check(err)
		})
		r.Check(r.Srv.Delete("/workers"))
		time.Sleep(5 * time.Second)
		if now := n.Status(); now.State != nodes.Ours || now.Path != nodePath+"0000000001" || rule.Fired() != 1 {
			r.Errorf("%+v", now)
		}
		if data, stat := r.data(nodePath + "0000000000"); data != "b's" || stat.Version != 0 {
			r.Errorf("%q, %+v", data, stat)
		}
		r.Check(n.Close())
	})
}

// A server refuses a create with a number when a node has that number, and goes on so: the
// parent was deleted, and another client has kept its number. The node takes a free one.
func TestNextNumberTaken(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Check(r.Srv.Create("/workers", nil))
		r.Check(r.Srv.Create("/workers/w10000000001", nil)) // the server's next number is 1
		c := r.Connect("a")
		n := r.node(c, nodes.EphemeralSequential)
		if now := n.Status(); now.Path != "/workers/w10000000002" {
			r.Errorf("%+v", now)
		}
		r.Check(r.Srv.Delete("/workers/w10000000001"))
		r.closed(n)
	})
}

// Another client deletes the node after Close has looked at it: nothing is left, and that is
// no error.
func TestDeletedWhileClosing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.Persistent} {
			n := r.node(r.Connect("a"), mode)
			rule := r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti}, func(context.Context, zktest.Request) { r.Check(r.Srv.Delete(nodePath)) })
			r.closed(n)
			if rule.Fired() != 1 {
				r.Error("nothing was tested")
			}
		}
	})
}
