package nodes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// The server restarts: the same one node stands (TestPersistentEphemeralNode.testProtected,
// CURATOR-190; TestPersistentNode.testEphemeralSequentialWithProtectionReconnection).
func TestCuratorProtectedAcrossRestart(t *testing.T) {
	t.Parallel()
	for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.EphemeralSequential} {
		bubble(t, func(r *rig) {
			c := r.connect("a")
			n := r.node(c, mode, nodes.WithProtection())
			before := r.srv.Children("/workers")
			for range 3 {
				r.srv.Stop()
				time.Sleep(time.Second)
				r.srv.Resume()
				time.Sleep(5 * time.Second)
				r.wantOurs(c, n, "one")
			}
			if after := r.srv.Children("/workers"); after[0] != before[0] {
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
			c := r.connect("a")
			n := r.node(c, mode)
			path := n.Status().Path
			r.srv.Stop()
			done := make(chan error, 1)
			go func() { done <- n.Set(r.within(time.Minute), []byte("updated")) }()
			time.Sleep(2 * time.Second)
			r.srv.Resume()
			r.check(<-done)
			r.wantOurs(c, n, "updated")
			r.srv.Stop()
			time.Sleep(time.Second)
			r.srv.Resume()
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
		c, observer := r.connect("a"), r.connect("b")
		n := r.node(c, nodes.Ephemeral)
		r.check(n.Set(r.ctx, []byte("two")))
		for _, end := range []func(){
			func() { r.check(r.srv.Delete(nodePath)) },
			func() { r.srv.ExpireSession(r.session(c)) },
		} {
			_, _, w, err := observer.ExistsW(r.ctx, nodePath)
			r.check(err)
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
		c := r.connect("a")
		one, two := r.node(c, nodes.EphemeralSequential), r.node(c, nodes.EphemeralSequential)
		if one.Status().Path == two.Status().Path {
			r.Errorf("%+v, %+v", one.Status(), two.Status())
		}
		r.check(one.Close())
		r.wantOurs(c, two, "one")
		r.closed(two)
		_, err := c.Create(r.ctx, nodePath, []byte("by hand"), client.Ephemeral(), client.WithParents())
		r.check(err)
		n := r.started(c, nodes.Ephemeral)
		time.Sleep(time.Second)
		r.check(n.Close())
		if data, stat := r.data(nodePath); data != "by hand" || stat.Version != 0 {
			r.Errorf("%q, %+v", data, stat)
		}
	})
}

// The parent gives no right to create (testNoWritePermission).
func TestCuratorNoWritePermission(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		_, err := r.connect("b").Create(r.ctx, "/workers", nil, client.ACL(zk.WorldACL(zk.PermRead)...))
		r.check(err)
		n := r.started(r.connect("a"), nodes.Ephemeral)
		wantErr(t, n.Wait(r.within(time.Second)), client.ErrNoAuth)
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
		c := r.connect("a")
		r.check(r.srv.Create("/workers", nil))
		n, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, []byte("one"), nodes.WithoutParents())
		r.check(err)
		r.check(n.Start(r.ctx))
		time.Sleep(2 * ttl)
		if _, there := r.srv.Node(nodePath + "/touch"); !there {
			r.Error("no child")
		}
		r.check(r.srv.Delete("/workers"))
		time.Sleep(2 * ttl)
		if _, there := r.srv.Node("/workers"); there || n.Status().State != nodes.Refused || string(n.Data()) != "one" {
			r.Errorf("there: %v, %+v", there, n.Status())
		}
		r.check(n.Close())

		n = r.ttlNode(c)
		r.check(n.Wait(r.within(time.Second)))
		r.check(n.Close())
		for range 4 {
			time.Sleep(ttl)
			if _, there := r.srv.Node(nodePath + "/touch"); there {
				r.Error("a child after Close")
			}
		}
		if _, there := r.srv.Node(nodePath); there {
			r.Error("it is still there")
		}
	}, swept()...)
}

// Bugs of registries: old data is registered again, or an instance that was taken out is
// revived (CURATOR-146, -164, -181).
func TestNotRevived(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.srv.Client("a").Partition()
		wantErr(t, n.Set(r.within(time.Second), []byte("two")))
		time.Sleep(2 * sessionTimeout)
		r.srv.Client("a").Heal()
		var all []string
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			if node, there := r.srv.Node(nodePath); there {
				all = append(all, string(node.Data))
			}
		}
		if len(all) == 0 || all[0] != "two" || all[len(all)-1] != "two" {
			r.Errorf("data %q", all)
		}
		r.srv.Client("a").Partition()
		time.Sleep(2 * sessionTimeout)
		r.check(n.CloseContext(r.within(time.Minute)))
		r.srv.Client("a").Heal()
		time.Sleep(2 * sessionTimeout)
		r.closed(n)
	})
}

// The registrar gives up and the process stays invisible (kratos 3883): here it does not,
// however long the outage.
func TestNeverGivesUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.srv.Stop()
		time.Sleep(30 * time.Minute)
		r.srv.Resume()
		time.Sleep(sessionTimeout + 4*time.Millisecond)
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
			r.node(r.connect("killed"), nodes.Ephemeral)
			r.srv.Client("killed").Partition() // as kill -9: nothing more is sent
			c := r.connect("restarted")
			n := r.started(c, nodes.Ephemeral, opts...)
			limit := sessionTimeout + 2*time.Second // with two ticks
			if opts != nil {
				limit = 10 * time.Millisecond
			}
			r.check(n.Wait(r.within(limit)))
			time.Sleep(2 * sessionTimeout)
			r.wantOurs(c, n, "one")
			r.check(n.CloseContext(r.ctx))
			if left := r.srv.Children("/workers"); len(left) != 0 {
				r.Errorf("left: %v", left)
			}
		}, zktest.WithSeed(1))
	}
}
