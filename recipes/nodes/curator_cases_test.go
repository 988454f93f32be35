package nodes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// The server restarts: the same one node stands (TestPersistentEphemeralNode.testProtected,
// CURATOR-190; TestPersistentNode.testEphemeralSequentialWithProtectionReconnection).
func TestCuratorProtectedAcrossRestart(t *testing.T) {
	t.Parallel()
	for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.EphemeralSequential} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			n := r.node(c, mode, nodes.WithProtection())
			before := r.Srv.Children("/workers")
			for range 3 {
				r.Srv.Stop()
				time.Sleep(time.Second)
				r.Srv.Resume()
				time.Sleep(5 * time.Second)
				r.wantOurs(c, n, "one")
			}
			if after := r.Srv.Children("/workers"); after[0] != before[0] {
				r.Errorf("%v, was %v", after, before)
			}
			r.closed(n)
		})
	}
}

// Data is set while the server is down, and a reader sees it afterwards
// (testSetDataWhenDisconnected, testSetUpdatedDataWhenReconnected, testSettingDataSequential).
func TestCuratorSetWhileDisconnected(t *testing.T) {
	t.Parallel()
	for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.EphemeralSequential} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			n := r.node(c, mode)
			path := n.Status().Path
			r.Srv.Stop()
			done := make(chan error, 1)
			go func() { done <- n.Set(r.Within(time.Minute), []byte("updated")) }()
			time.Sleep(2 * time.Second)
			r.Srv.Resume()
			r.Check(<-done)
			r.wantOurs(c, n, "updated")
			r.Srv.Stop()
			time.Sleep(time.Second)
			r.Srv.Resume()
			time.Sleep(5 * time.Second)
			r.wantOurs(c, n, "updated")
			if now := n.Status().Path; now != path {
				r.Errorf("path %s, was %s", now, path)
			}
			r.closed(n)
		})
	}
}

// The node comes back with its name and its newest data
// (testRecreatesNodeWhenItGetsDeleted, testRecreatesNodeWhenItGetsDeletedAfterSetData), and
// readers hear of its end with the session (testDeletesNodeWhenSessionDisconnects).
func TestCuratorRecreates(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, observer := r.Connect("a"), r.Connect("b")
		n := r.node(c, nodes.Ephemeral)
		r.Check(n.Set(r.Ctx, []byte("two")))
		for _, end := range []func(){
			func() { r.Check(r.Srv.Delete(nodePath)) },
			func() { r.Srv.ExpireSession(r.SessionID(c)) },
		} {
			_, _, w, err := observer.ExistsW(r.Ctx, nodePath)
			r.Check(err)
			end()
			<-w.Done()
			if event, err := w.Event(); event != zk.EventNodeDeleted || err != nil {
				r.Errorf("%v, %v", event, err)
			}
			time.Sleep(5 * time.Second)
			r.wantOurs(c, n, "two")
		}
		r.closed(n)
	})
}

// Two objects have two nodes (testNodesCreateUniquePaths). A node that the session made
// by hand is not this object's: nothing is written into it, where Curator sets its data
// (testSetDataWhenNodeExists, TestPersistentNodeWithOverwriteExistingFalse).
func TestCuratorNodeExists(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one, two := r.node(c, nodes.EphemeralSequential), r.node(c, nodes.EphemeralSequential)
		if one.Status().Path == two.Status().Path {
			r.Errorf("%+v, %+v", one.Status(), two.Status())
		}
		r.Check(one.Close())
		r.wantOurs(c, two, "one")
		r.closed(two)
		_, err := c.Create(r.Ctx, nodePath, []byte("by hand"), client.Ephemeral(), client.WithParents())
		r.Check(err)
		n := r.started(c, nodes.Ephemeral)
		time.Sleep(time.Second)
		r.Check(n.Close())
		if data, stat := r.data(nodePath); data != "by hand" || stat.Version != 0 {
			r.Errorf("%q, %+v", data, stat)
		}
	})
}

// The parent gives no right to create (testNoWritePermission).
func TestCuratorNoWritePermission(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		_, err := r.Connect("b").Create(r.Ctx, "/workers", nil, client.ACL(zk.WorldACL(zk.PermRead)...))
		r.Check(err)
		n := r.started(r.Connect("a"), nodes.Ephemeral)
		testrig.WantErr(t, n.Wait(r.Within(time.Second)), client.ErrNoAuth)
		if n.Status().State != nodes.Refused {
			r.Errorf("%+v", n.Status())
		}
		r.closed(n)
	})
}

// Without parents neither the TTL node nor its child is made again
// (TestPersistentTtlNode.testRecreationOfParentNodeWithParentCreationOff). Closed before the
// first touch, it leaves no child (testTouchNodeNotCreated).
func TestCuratorTtlCases(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/workers", nil))
		n, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, []byte("one"), nodes.WithoutParents())
		r.Check(err)
		r.Check(n.Start(r.Ctx))
		time.Sleep(2 * ttl)
		if _, there := r.Srv.Node(nodePath + "/touch"); !there {
			r.Error("no child")
		}
		r.Check(r.Srv.Delete("/workers"))
		time.Sleep(2 * ttl)
		if _, there := r.Srv.Node("/workers"); there || n.Status().State != nodes.Refused || string(n.Data()) != "one" {
			r.Errorf("there: %v, %+v", there, n.Status())
		}
		r.Check(n.Close())

		n = r.ttlNode(c)
		r.Check(n.Wait(r.Within(time.Second)))
		r.Check(n.Close())
		for range 4 {
			time.Sleep(ttl)
			if _, there := r.Srv.Node(nodePath + "/touch"); there {
				r.Error("a child after Close")
			}
		}
		if _, there := r.Srv.Node(nodePath); there {
			r.Error("it is still there")
		}
	}, swept()...)
}

// Bugs of registries: old data is registered again, or an instance that was taken out is
// revived (CURATOR-146, -164, -181).
func TestNotRevived(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.Srv.Client("a").Partition()
		testrig.WantErr(t, n.Set(r.Within(time.Second), []byte("two")))
		time.Sleep(2 * testrig.SessionTimeout)
		r.Srv.Client("a").Heal()
		var all []string
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			if node, there := r.Srv.Node(nodePath); there {
				all = append(all, string(node.Data))
			}
		}
		if len(all) == 0 || all[0] != "two" || all[len(all)-1] != "two" {
			r.Errorf("data %q", all)
		}
		r.Srv.Client("a").Partition()
		time.Sleep(2 * testrig.SessionTimeout)
		r.Check(n.CloseContext(r.Within(time.Minute)))
		r.Srv.Client("a").Heal()
		time.Sleep(2 * testrig.SessionTimeout)
		r.closed(n)
	})
}

// The registrar gives up and the process stays invisible (kratos 3883): here it does not,
// however long the outage.
func TestNeverGivesUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.Srv.Stop()
		time.Sleep(30 * time.Minute)
		r.Srv.Resume()
		time.Sleep(testrig.SessionTimeout + 4*time.Millisecond)
		r.wantOurs(c, n, "one")
		r.closed(n)
	})
}

// A process is killed and starts again within its session timeout (dubbo-go
// 2220). With TakeOver its node stands at once. Without TakeOver it stands when
// the servers have ended the old session. A killed process leaves nothing for
// longer than that (go-micro 2649).
func TestRestartWithinTheSession(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]nodes.Option{nil, {nodes.TakeOver()}} {
		bubble(t, func(r *rig) {
			r.node(r.Connect("killed"), nodes.Ephemeral)
			r.Srv.Client("killed").Partition() // as kill -9: nothing more is sent
			c := r.Connect("restarted")
			n := r.started(c, nodes.Ephemeral, opts...)
			limit := testrig.SessionTimeout + 2*time.Second // with two ticks
			if opts != nil {
				limit = 10 * time.Millisecond
			}
			r.Check(n.Wait(r.Within(limit)))
			time.Sleep(2 * testrig.SessionTimeout)
			r.wantOurs(c, n, "one")
			r.Check(n.CloseContext(r.Ctx))
			r.WantNoChild("/workers")
		}, zktest.WithSeed(1))
	}
}
