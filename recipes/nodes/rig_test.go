package nodes_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// rig is a server in a bubble of virtual time, with what tests of this package need besides.
type rig struct{ *testrig.Rig }

func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	testrig.Bubble(t, func(r *testrig.Rig) { f(&rig{r}) }, opts...)
}

var ourFrames = regexp.MustCompile(`docent/recipes/nodes\.`)

const nodePath = "/workers/w1"

// node starts a node with the data "one" and waits until it stands.
func (r *rig) node(c *client.Client, mode nodes.Mode, opts ...nodes.Option) *nodes.PersistentNode {
	r.Helper()
	n := r.started(c, mode, opts...)
	r.Check(n.Wait(r.Within(time.Minute)))
	return n
}

// lazily adds WithLazyStart.
func lazily(opts ...nodes.Option) []nodes.Option {
	return append(slices.Clip(opts), nodes.WithLazyStart())
}

// started starts a node with the data "one", and does not wait.
func (r *rig) started(c *client.Client, mode nodes.Mode, opts ...nodes.Option) *nodes.PersistentNode {
	r.Helper()
	n, err := nodes.NewPersistentNode(c, mode, nodePath, []byte("one"), lazily(opts...)...)
	r.Check(err)
	r.Check(n.Start(r.Ctx))
	return n
}

// data is that of the node at path, and its stat.
func (r *rig) data(path string) (string, zktest.Stat) {
	r.Helper()
	n, there := r.Srv.Node(path)
	if !there {
		r.Fatalf("no node %s among %v", path, r.Srv.Children("/workers"))
	}
	return string(n.Data), n.Stat
}

// wantOurs checks that n stands, once, in the session of c, with that data.
func (r *rig) wantOurs(c *client.Client, n *nodes.PersistentNode, data string) zktest.Stat {
	r.Helper()
	status := n.Status()
	if status.State != nodes.Ours {
		r.Fatalf("status %+v", status)
	}
	got, stat := r.data(status.Path)
	if got != data || stat.Czxid != status.Czxid {
		r.Errorf("the node has %q and czxid %d, want %q and %d", got, stat.Czxid, data, status.Czxid)
	}
	if stat.EphemeralOwner > 0 && stat.EphemeralOwner != r.SessionID(c) {
		r.Errorf("the node is of session %x, want %x", stat.EphemeralOwner, r.SessionID(c))
	}
	if all := r.Srv.Children("/workers"); len(all) != 1 {
		r.Errorf("more than one node: %v", all)
	}
	return stat
}

// closed closes n and checks that nothing is left: no node, watch or goroutine.
func (r *rig) closed(n *nodes.PersistentNode) {
	r.Helper()
	r.Check(n.CloseContext(r.Within(time.Minute)))
	testrig.WantNoGoroutine(r.T, ourFrames)
	time.Sleep(5 * time.Second)
	r.WantNoChild("/workers")
	r.WantNoWatch()
	if status := n.Status(); status.State != nodes.Absent && status.State != nodes.Removed {
		r.Errorf("status %+v after Close", status)
	}
}

// vacancy watches the commits until the end of the test. It returns a function that
// reports for how long no node has stood below /workers since.
func (r *rig) vacancy() func() time.Duration {
	var mu sync.Mutex
	standing, since, sum := len(r.Srv.Children("/workers")), time.Now(), time.Duration(0)
	r.Srv.OnCommit(func(c zktest.Commit) {
		mu.Lock()
		defer mu.Unlock()
		was := standing
		for _, p := range c.Created {
			if strings.HasPrefix(p, "/workers/") {
				standing++
			}
		}
		for _, p := range c.Deleted {
			if strings.HasPrefix(p, "/workers/") {
				standing--
			}
		}
		switch {
		case was > 0 && standing == 0:
			since = c.Time
		case was == 0 && standing > 0:
			sum += c.Time.Sub(since)
		}
	})
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return sum
	}
}

// most watches the commits until the end of the test. It returns a function that
// reports how many nodes have stood below /workers at most.
func (r *rig) most() func() int {
	var mu sync.Mutex
	standing := map[string]bool{}
	most := 0
	r.Srv.OnCommit(func(c zktest.Commit) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range c.Deleted {
			delete(standing, p)
		}
		for _, p := range c.Created {
			if strings.HasPrefix(p, "/workers/") {
				standing[p] = true
			}
		}
		most = max(most, len(standing))
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}
