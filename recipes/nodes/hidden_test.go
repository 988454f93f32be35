package nodes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// Another session's node that this client may not read is deleted: ours comes, although
// servers keep that event back (CVE-2024-23944) or refuse exists (ZOOKEEPER-2590).
func TestForeignNodeThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	for _, version := range []zktest.Version{zktest.ZooKeeper380, zktest.ZooKeeper39} {
		bubble(t, func(r *rig) {
			a, b := r.Connect("a"), r.Connect("b")
			hidden := client.ACL(zk.ACL{Perms: zk.PermDelete, Scheme: "world", ID: "anyone"})
			_, err := a.Create(r.Ctx, nodePath, nil, client.Ephemeral(), client.WithParents(), hidden)
			r.Check(err)
			n := r.started(b, nodes.Ephemeral)
			time.Sleep(5 * time.Second)
			if version == zktest.ZooKeeper380 && n.Status().State != nodes.Foreign {
				r.Errorf("%+v", n.Status())
			}
			r.Srv.ResetCounts()
			time.Sleep(100 * time.Second)
			if reads := r.Srv.Count(zktest.OpExists) + r.Srv.Count(zktest.OpGetData); reads > 400 {
				r.Errorf("%d reads in 100 s", reads)
			}
			r.Check(a.Delete(r.Ctx, nodePath, client.AnyVersion))
			r.Check(n.Wait(r.Within(5 * time.Second)))
			r.wantOurs(b, n, "one")
			r.closed(n)
		}, zktest.WithVersion(version))
	}
}
