package nodes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
)

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	testrig.WantErrText(t, err, append(parts, "nodes: ")...)
}

// An error of Wait says why the node does not stand, in one line, and what can be done.
func TestWaitSaysWhy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		wait := func(n *nodes.PersistentNode, started bool) error {
			if started {
				r.Check(n.Start(r.Ctx))
			}
			err := n.Wait(r.Within(3 * time.Second))
			testrig.WantErr(t, err, context.DeadlineExceeded)
			r.Check(n.Close())
			return err
		}
		at := func(c *client.Client, mode nodes.Mode, path string, opts ...nodes.Option) *nodes.PersistentNode {
			n, err := nodes.NewPersistentNode(c, mode, path, nil, lazily(opts...)...)
			r.Check(err)
			return n
		}
		wantText(t, wait(at(a, nodes.Ephemeral, "/w/new"), false), "call Start first")

		_, err := b.Create(r.Ctx, "/w/eph", nil, client.Ephemeral(), client.WithParents())
		r.Check(err)
		wantText(t, wait(at(a, nodes.Ephemeral, "/w/eph"), true), "foreign", "the node of session 0x", "TakeOver")
		wantText(t, wait(at(b, nodes.Ephemeral, "/w/eph"), true), "foreign", "another node or registration of this client stands at the path", "close that one")
		wantText(t, wait(at(a, nodes.Persistent, "/w/eph"), true), "foreign", "take another path")
		r.Check(r.Srv.Create("/w/stays", nil))
		wantText(t, wait(at(a, nodes.Ephemeral, "/w/stays", nodes.TakeOver()), true), "foreign", "no session owns", "delete it")
		wantText(t, wait(at(a, nodes.Ephemeral, "/none/n", nodes.WithoutParents()), true), "refused", "the parent")

		r.Srv.Refuse()
		r.Srv.CutAll()
		time.Sleep(time.Second)
		n := at(a, nodes.Ephemeral, "/w/cut")
		r.Check(n.Start(r.Ctx))
		err = n.Wait(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded, client.ErrNotConnected)
		wantText(t, err, "connection refused")
		r.Srv.Accept()
		r.Check(n.CloseContext(r.Within(time.Minute)))
	})
}

func TestClosedSaysWhy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.Check(n.Close())
		if err := n.Status().Err; err != nodes.ErrClosed { //nolint:errorlint // Close has no further reason
			t.Error(err)
		}
		n = r.started(c, nodes.Ephemeral)
		r.Check(c.Close())
		err := n.Wait(r.Ctx)
		testrig.WantErr(t, err, nodes.ErrClosed, client.ErrClosed)
		wantText(t, err)
	})
}

func TestMisuseSaysWhatToDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		_, err := nodes.NewGroupMember(c, "/workers", "", nil)
		wantText(t, err, "the id", "is empty")
		_, err = nodes.NewGroupMember(c, "/workers", "a/b", nil)
		wantText(t, err, `no "/" in it`)
		_, err = nodes.NewPersistentTtlNode(c, "/workers/w1", 5000, nil)
		wantText(t, err, "5µs", "2ms or more")
	})
}
