package nodes_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

const ttl = 10 * time.Second

func (r *rig) ttlNode(c *client.Client) *nodes.PersistentTtlNode {
	r.Helper()
	n, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, []byte("one"), nodes.WithLazyStart())
	r.check(err)
	r.check(n.Start(r.ctx))
	return n
}

func swept() []zktest.Option {
	return []zktest.Option{zktest.WithExtendedTypes(), zktest.WithContainerInterval(time.Second)}
}

// The node stands for as long as it is kept, unwritten, with Curator's child; then the
// servers delete it (TestPersistentTtlNode.testBasic, testEventsOnParent).
func TestPersistentTtlNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n := r.ttlNode(c)
		r.check(n.Wait(r.within(time.Second)))
		stat := r.wantOurs(c, n.PersistentNode, "one")
		for range 10 {
			time.Sleep(ttl)
			child, there := r.srv.Node(nodePath + "/touch")
			node, _ := r.srv.Node(nodePath)
			if !there || child.TTL != ttl || node.TTL != ttl || node.Stat.Mzxid != stat.Mzxid {
				r.Fatalf("%+v, %+v", node, child)
			}
			if n := r.srv.WatchCount(); n != 1 {
				r.Errorf("%d watches", n)
			}
		}
		// It outlives a lost session.
		r.srv.ExpireSession(r.session(c))
		time.Sleep(5 * time.Second)
		if now := r.wantOurs(c, n.PersistentNode, "one"); now.Mzxid != stat.Mzxid {
			r.Errorf("written: %+v", now)
		}
		r.check(n.Close())
		wantNoGoroutine(t)
		r.data(nodePath)
		time.Sleep(3 * ttl)
		if _, there := r.srv.Node(nodePath); there {
			r.Error("it is still there")
		}
	}, swept()...)
}

// The child is deleted again and again, and then the node with it
// (TestPersistentTtlNode.testForcedDeleteOfTouchNode).
func TestTouchDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n := r.ttlNode(c)
		for range 10 {
			time.Sleep(ttl / 2)
			_ = r.srv.Delete(nodePath + "/touch")
		}
		r.wantOurs(c, n.PersistentNode, "one")
		time.Sleep(ttl)
		r.check(r.srv.Delete(nodePath + "/touch"))
		r.check(r.srv.Delete(nodePath))
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n.PersistentNode, "one")
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.srv.LoseReply, r.srv.DropBefore} {
			fault(zktest.Match{Path: nodePath + "/touch"})
			time.Sleep(2 * ttl)
			r.wantOurs(c, n.PersistentNode, "one")
		}
		r.check(n.Close())
		wantNoGoroutine(t)
	}, swept()...)
}

// Servers without extended types refuse it, and the state says so.
func TestTtlUnsupported(t *testing.T) {
	t.Parallel()
	for _, opt := range []zktest.Option{zktest.WithVersion(zktest.ZooKeeper35), zktest.WithVersion(zktest.ZooKeeper39)} {
		bubble(t, func(r *rig) {
			c := r.connect("a")
			eager, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, nil)
			r.check(err)
			wantErr(t, eager.Start(r.ctx), client.ErrUnsupported)
			n := r.ttlNode(c)
			time.Sleep(time.Minute)
			wantErr(t, n.Status().Err, client.ErrUnsupported)
			if n.Status().State != nodes.Refused {
				r.Errorf("%+v", n.Status())
			}
			wantErr(t, n.Wait(r.within(time.Second)), client.ErrUnsupported)
			r.closed(n.PersistentNode)
			if _, err := nodes.NewPersistentTtlNode(c, nodePath, 0, nil); err == nil {
				r.Error("no time to live, and no error")
			}
			if _, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, nil, nodes.WithProtection()); err == nil {
				r.Error("protected, and no error")
			}
		}, opt)
	}
}

// The servers refuse new data, and the state says so. The child is set all the same, and
// the node stands. If the servers refuse the child as well they delete both: that is not
// taken for the work of another client.
func TestTtlNodeWhoseDataIsRefused(t *testing.T) {
	t.Parallel()
	for _, child := range []bool{true, false} {
		bubble(t, func(r *rig) {
			c := r.connect("a")
			n, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, []byte("one"), nodes.StopWhenRemoved())
			r.check(err)
			r.check(n.Start(r.ctx))
			r.check(n.Wait(r.ctx))
			stat := r.wantOurs(c, n.PersistentNode, "one")
			m := zktest.Match{Op: zktest.OpMulti, Path: nodePath, Times: zktest.Always}
			if !child {
				m = zktest.Match{PathPrefix: nodePath, Times: zktest.Always, Where: func(q zktest.Request) bool {
					return q.Op == zktest.OpMulti || q.Op == zktest.OpSetData
				}}
			}
			rule := r.srv.Fail(m, zktest.CodeNoAuth)
			wantErr(t, n.Set(r.within(time.Second), []byte("two")), client.ErrNoAuth)
			time.Sleep(5 * ttl)
			if node, there := r.srv.Node(nodePath); !there || child && node.Stat.Czxid != stat.Czxid {
				r.Errorf("child %v: the servers have deleted it: %v, %+v", child, there, n.Status())
			}
			rule.Remove()
			r.check(n.Wait(r.within(time.Minute)))
			r.wantOurs(c, n.PersistentNode, "two")
			r.check(n.Close())
		}, swept()...)
	}
}
