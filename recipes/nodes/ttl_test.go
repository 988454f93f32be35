package nodes_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

const ttl = 10 * time.Second

func (r *rig) ttlNode(c *client.Client) *nodes.PersistentTtlNode {
	r.Helper()
	n, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, []byte("one"), nodes.WithLazyStart())
	r.Check(err)
	r.Check(n.Start(r.Ctx))
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
		c := r.Connect("a")
		n := r.ttlNode(c)
		r.Check(n.Wait(r.Within(time.Second)))
		stat := r.wantOurs(c, n.PersistentNode, "one")
		for range 10 {
			time.Sleep(ttl)
			child, there := r.Srv.Node(nodePath + "/touch")
			node, _ := r.Srv.Node(nodePath)
			if !there || child.TTL != ttl || node.TTL != ttl || node.Stat.Mzxid != stat.Mzxid {
				r.Fatalf("%+v, %+v", node, child)
			}
			if n := r.Srv.WatchCount(); n != 1 {
				r.Errorf("%d watches", n)
			}
		}
		// It outlives a lost session.
		r.Srv.ExpireSession(r.SessionID(c))
		time.Sleep(5 * time.Second)
		if now := r.wantOurs(c, n.PersistentNode, "one"); now.Mzxid != stat.Mzxid {
			r.Errorf("written: %+v", now)
		}
		r.Check(n.Close())
		testrig.WantNoGoroutine(t, ourFrames)
		r.data(nodePath)
		time.Sleep(3 * ttl)
		if _, there := r.Srv.Node(nodePath); there {
			r.Error("it is still there")
		}
	}, swept()...)
}

// The child is deleted again and again, and then the node with it
// (TestPersistentTtlNode.testForcedDeleteOfTouchNode).
func TestTouchDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.ttlNode(c)
		for range 10 {
			time.Sleep(ttl / 2)
			_ = r.Srv.Delete(nodePath + "/touch")
		}
		r.wantOurs(c, n.PersistentNode, "one")
		time.Sleep(ttl)
		r.Check(r.Srv.Delete(nodePath + "/touch"))
		r.Check(r.Srv.Delete(nodePath))
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n.PersistentNode, "one")
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.LoseReply, r.Srv.DropBefore} {
			fault(zktest.Match{Path: nodePath + "/touch"})
			time.Sleep(2 * ttl)
			r.wantOurs(c, n.PersistentNode, "one")
		}
		r.Check(n.Close())
		testrig.WantNoGoroutine(t, ourFrames)
	}, swept()...)
}

// Servers without extended types refuse it, and the state says so.
func TestTtlUnsupported(t *testing.T) {
	t.Parallel()
	for _, opt := range []zktest.Option{zktest.WithVersion(zktest.ZooKeeper35), zktest.WithVersion(zktest.ZooKeeper39)} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			eager, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, nil)
			r.Check(err)
			testrig.WantErr(t, eager.Start(r.Ctx), client.ErrUnsupported)
			n := r.ttlNode(c)
			time.Sleep(time.Minute)
			testrig.WantErr(t, n.Status().Err, client.ErrUnsupported)
			if n.Status().State != nodes.Refused {
				r.Errorf("%+v", n.Status())
			}
			testrig.WantErr(t, n.Wait(r.Within(time.Second)), client.ErrUnsupported)
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
			c := r.Connect("a")
			n, err := nodes.NewPersistentTtlNode(c, nodePath, ttl, []byte("one"), nodes.StopWhenRemoved())
			r.Check(err)
			r.Check(n.Start(r.Ctx))
			r.Check(n.Wait(r.Ctx))
			stat := r.wantOurs(c, n.PersistentNode, "one")
			m := zktest.Match{Op: zktest.OpMulti, Path: nodePath, Times: zktest.Always}
			if !child {
				m = zktest.Match{PathPrefix: nodePath, Times: zktest.Always, Where: func(q zktest.Request) bool {
					return q.Op == zktest.OpMulti || q.Op == zktest.OpSetData
				}}
			}
			rule := r.Srv.Fail(m, zktest.CodeNoAuth)
			testrig.WantErr(t, n.Set(r.Within(time.Second), []byte("two")), client.ErrNoAuth)
			time.Sleep(5 * ttl)
			if node, there := r.Srv.Node(nodePath); !there || child && node.Stat.Czxid != stat.Czxid {
				r.Errorf("child %v: the servers have deleted it: %v, %+v", child, there, n.Status())
			}
			rule.Remove()
			r.Check(n.Wait(r.Within(time.Minute)))
			r.wantOurs(c, n.PersistentNode, "two")
			r.Check(n.Close())
		}, swept()...)
	}
}
