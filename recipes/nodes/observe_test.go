package nodes_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// witness keeps what an observer is told of nodes.
type witness struct {
	mu   sync.Mutex
	told []string
}

func (w *witness) node(info client.NodeInfo) func(client.NodeUpdate) {
	w.add(info.Recipe + " " + info.Path)
	return func(u client.NodeUpdate) {
		text := u.State.String()
		if errors.Is(u.Err, client.ErrNoAuth) {
			text += " NOAUTH"
		}
		w.add(text)
	}
}

func (w *witness) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.told) == 0 || w.told[len(w.told)-1] != text {
		w.told = append(w.told, text)
	}
}

func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	return told
}

// An observer hears how a registered node stands, from each Start to the end of that.
func TestNodeIsObserved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var w witness
		c := r.Connect("a", client.WithObserver(client.Observer{Node: w.node}))
		want := func(told ...string) {
			r.Helper()
			synctest.Wait()
			if got := w.take(); !slices.Equal(got, told) {
				t.Errorf("the observer was told %q, want %q", got, told)
			}
		}
		n, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/w", nil, nodes.WithLazyStart())
		r.Check(err)
		r.Srv.Fail(zktest.Match{Path: "/w", Op: zktest.OpCreate, Times: 1}, zktest.CodeNoAuth)
		r.Check(n.Start(r.Ctx))
		r.Check(n.Wait(r.Ctx))
		want("PersistentNode /w", "absent", "refused NOAUTH", "stands")
		r.Srv.ExpireSession(r.Session(c).ID())
		time.Sleep(time.Minute)
		want("absent", "stands")
		r.Check(n.Close())
		want("ended")

		g, err := nodes.NewGroupMember(c, "/g", "1", nil)
		r.Check(err)
		r.Srv.Fail(zktest.Match{Path: "/g/1", Op: zktest.OpCreate, Times: zktest.Always}, zktest.CodeNoAuth)
		testrig.WantErr(t, g.Start(r.Ctx), client.ErrNoAuth)
		synctest.Wait()
		if told := w.take(); len(told) < 2 || told[0] != "GroupMember /g/1" || !strings.HasPrefix(told[len(told)-1], "ended") {
			t.Errorf("of a start that failed: %q", told)
		}
	})
}

// A client without the hook, and a hook that wants no news, cost nothing and do no harm.
func TestNodeIsNotObserved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithObserver(client.Observer{Node: func(client.NodeInfo) func(client.NodeUpdate) { return nil }}))
		n, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/w", nil)
		r.Check(err)
		r.Check(n.Start(r.Ctx))
		r.Check(n.Close())
	})
}
