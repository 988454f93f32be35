package nodes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
)

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", parts)
		return
	}
	for _, part := range append(parts, "nodes: ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q has several lines", err)
	}
}

// An error of Wait says why the node does not stand, in one line, and what can be done.
func TestWaitSaysWhy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		wait := func(n *nodes.PersistentNode, started bool) error {
			if started {
				r.check(n.Start(r.ctx))
			}
			err := n.Wait(r.within(3 * time.Second))
			wantErr(t, err, context.DeadlineExceeded)
			r.check(n.Close())
			return err
		}
		at := func(c *client.Client, mode nodes.Mode, path string, opts ...nodes.Option) *nodes.PersistentNode {
			n, err := nodes.NewPersistentNode(c, mode, path, nil, lazily(opts...)...)
			r.check(err)
			return n
		}
		wantText(t, wait(at(a, nodes.Ephemeral, "/w/new"), false), "call Start first")

		_, err := b.Create(r.ctx, "/w/eph", nil, client.Ephemeral(), client.WithParents())
		r.check(err)
		wantText(t, wait(at(a, nodes.Ephemeral, "/w/eph"), true), "foreign", "the node of session 0x", "TakeOver")
		wantText(t, wait(at(a, nodes.Persistent, "/w/eph"), true), "foreign", "take another path")
		r.check(r.srv.Create("/w/stays", nil))
		wantText(t, wait(at(a, nodes.Ephemeral, "/w/stays", nodes.TakeOver()), true), "foreign", "no session owns", "delete it")
		wantText(t, wait(at(a, nodes.Ephemeral, "/none/n", nodes.WithoutParents()), true), "refused", "the parent")

		r.srv.Refuse()
		r.srv.CutAll()
		time.Sleep(time.Second)
		n := at(a, nodes.Ephemeral, "/w/cut")
		r.check(n.Start(r.ctx))
		err = n.Wait(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded, client.ErrNotConnected)
		wantText(t, err, "connection refused")
		r.srv.Accept()
		r.check(n.CloseContext(r.within(time.Minute)))
	})
}

func TestClosedSaysWhy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.check(n.Close())
		if err := n.Status().Err; err != nodes.ErrClosed { //nolint:errorlint // Close has no further reason
			t.Error(err)
		}
		n = r.started(c, nodes.Ephemeral)
		r.check(c.Close())
		err := n.Wait(r.ctx)
		wantErr(t, err, nodes.ErrClosed, client.ErrClosed)
		wantText(t, err)
	})
}

func TestMisuseSaysWhatToDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		_, err := nodes.NewGroupMember(c, "/workers", "", nil)
		wantText(t, err, "the id", "is empty")
		_, err = nodes.NewGroupMember(c, "/workers", "a/b", nil)
		wantText(t, err, `no "/" in it`)
		_, err = nodes.NewPersistentTtlNode(c, "/workers/w1", 5000, nil)
		wantText(t, err, "5µs", "2ms or more")
	})
}
