package client_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

func TestMulti(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.create("/a", "x")
		r.create("/old", "")
		before := r.srv.Zxid()
		res, err := c.Multi(r.ctx,
			client.CheckOp("/a", 0),
			client.CreateOp("/a/s-", []byte("1"), client.Sequential(), client.Ephemeral()),
			client.SetOp("/a", []byte("y"), 0),
			client.DeleteOp("/old", client.AnyVersion),
			client.CreateOp("/p", nil, client.ACL(zk.WorldACL(zk.PermRead)...)))
		r.check(err)
		if len(res) != 5 || res[1].Path != "/a/s-0000000000" || res[2].Stat.Version != 1 || res[4].Path != "/p" {
			r.Errorf("Multi = %+v", res)
		}
		if n, _ := r.srv.Node("/a/s-0000000000"); n.Stat.EphemeralOwner != r.session(c).ID() || string(n.Data) != "1" {
			r.Errorf("created %+v", n)
		}
		if got := r.srv.Zxid(); got != before+1 {
			r.Errorf("%d transactions", got-before)
		}
		if res, err := c.Multi(r.ctx); err != nil || len(res) != 0 {
			r.Errorf("an empty transaction: %v, %v", res, err)
		}
	})
}

// The error names the part that was refused, wherever it stands, and nothing
// was applied.
func TestMultiRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a", client.WithNamespace("ns"))
		r.create("/ns/a/b", "x")
		good := []client.Op{client.CheckOp("/a", 0), client.SetOp("/a/b", []byte("changed"), 0), client.CreateOp("/new", nil)}
		for _, tt := range []struct {
			op, path string
			part     client.Op
			want     error
		}{
			{"create", "/a", client.CreateOp("/a", nil), zk.ErrNodeExists},
			{"create", "/x/y", client.CreateOp("/x/y", nil), zk.ErrNoNode},
			{"set", "/a", client.SetOp("/a", nil, 7), zk.ErrBadVersion},
			{"delete", "/a", client.DeleteOp("/a", 0), zk.ErrNotEmpty},
			{"check", "/x", client.CheckOp("/x", 0), zk.ErrNoNode},
			{"check", "/a", client.CheckOp("/a", 3), zk.ErrBadVersion},
		} {
			for at := range len(good) + 1 {
				before := r.srv.Dump()
				parts := append(append(append([]client.Op{}, good[:at]...), tt.part), good[at:]...)
				res, err := c.Multi(r.ctx, parts...)
				var multi *client.MultiError
				if !errors.As(err, &multi) || multi.Index != at || multi.Op != tt.op || multi.Path != tt.path || res != nil {
					r.Errorf("%s %s at %d: %v, %+v", tt.op, tt.path, at, res, err)
				}
				wantErr(t, err, tt.want)
				wantOutcome(t, err, client.OutcomeRefused)
				const remedy = "the parent: make it first, a transaction makes none"
				if noParent := tt.path == "/x/y"; strings.Contains(err.Error(), remedy) != noParent {
					r.Errorf("%s %s: %v", tt.op, tt.path, err)
				}
				if n, _ := r.srv.Node("/ns/a/b"); string(n.Data) != "x" {
					r.Fatalf("something was applied:\n%s\nbefore:\n%s", r.srv.Dump(), before)
				}
			}
		}
	})
}

func TestMultiInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		for name, parts := range map[string][]client.Op{
			"container": {client.CheckOp("/", 0), client.CreateOp("/a", nil, client.Container())},
			"TTL":       {client.CreateOp("/a", nil, client.TTL(1e9))},
			"protected": {client.CreateOp("/a", nil, client.Protected())},
			"parents":   {client.CreateOp("/a", nil, client.WithParents())},
			"empty Op":  {client.CheckOp("/", 0), {}},
			"path":      {client.CheckOp("/", 0), client.SetOp("a", nil, 0)},
		} {
			_, err := c.Multi(r.ctx, parts...)
			wantOutcome(t, err, client.OutcomeNeverSent)
			if err == nil {
				r.Errorf("%s: no error", name)
			}
		}
		if n := r.srv.Count(zktest.OpMulti); n != 0 {
			r.Errorf("%d were sent", n)
		}
	})
}

// The client refuses a request that is too large for a server, in every
// operation. No caller loses the connection.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const limit = 10_000
		c := r.connect("a", client.WithMaxRequest(limit))
		r.create("/a", "")
		s := r.session(c)
		states := len(r.srv.Log())
		var acl []zk.ACL
		long := "/" + strings.Repeat("x", limit)
		for _, size := range []int{limit, limit + 2000, 10 * limit, client.DefaultMaxRequest} {
			big := make([]byte, size)
			long = "/" + strings.Repeat("x", size)
			for len(acl)*20 < size {
				acl = append(acl, zk.ACL{Perms: 1, Scheme: "ip", ID: "10.0.0.1"})
			}
			for name, run := range map[string]func() error{
				"create":    func() error { _, err := c.Create(r.ctx, "/b", big); return err },
				"protected": func() error { _, err := c.Create(r.ctx, "/b", big, client.Protected()); return err },
				"list": func() error {
					_, err := inner.CreateAndList(r.ctx, s, newNode{Dir: "/a", Prefix: "b", Data: big})
					return err
				},
				"create ACL":    func() error { _, err := c.Create(r.ctx, "/b", nil, client.ACL(acl...)); return err },
				"set":           func() error { _, err := c.Set(r.ctx, "/a", big, client.AnyVersion); return err },
				"setACL":        func() error { _, err := c.SetACL(r.ctx, "/a", acl, client.AnyVersion); return err },
				"multi":         func() error { _, err := c.Multi(r.ctx, client.SetOp("/a", big, -1)); return err },
				"get path":      func() error { _, _, err := c.Get(r.within(sessionTimeout), long); return err },
				"getW path":     func() error { _, _, _, err := c.GetW(r.within(sessionTimeout), long); return err },
				"children path": func() error { _, _, err := c.Children(r.within(sessionTimeout), long); return err },
				"delete path":   func() error { return c.Delete(r.within(sessionTimeout), long, -1) },
				"sync path":     func() error { return c.Sync(r.within(sessionTimeout), long) },
				"getACL path":   func() error { _, _, err := c.GetACL(r.within(sessionTimeout), long); return err },
			} {
				err := run()
				if !errors.Is(err, client.ErrTooLarge) || !neverSent(err) {
					text := "nil"
					if err != nil {
						text = err.Error()
					}
					r.Errorf("%s of %d: %.300s", name, size, text[max(0, len(text)-300):])
				}
			}
		}
		connects := 0
		for _, req := range r.srv.Log()[states:] {
			if req.Op == zktest.OpConnect {
				connects++
			}
		}
		if connects != 0 || s.Err() != nil || r.session(c).ID() != s.ID() {
			r.Errorf("reconnected %d times, session %v", connects, s.Err())
		}
	})
}

// What fits is let through, close to the limit.
func TestLargestThatFits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		data := make([]byte, client.DefaultMaxRequest-300)
		_, err := c.Create(r.ctx, "/big", data)
		r.check(err)
		_, err = c.Set(r.ctx, "/big", data, 0)
		r.check(err)
		got, _, err := c.Get(r.ctx, "/big")
		if err != nil || len(got) != len(data) {
			r.Errorf("Get = %d bytes, %v", len(got), err)
		}
	})
}

// A part may be in another namespace of the same session, and in no other
// session.
func TestMultiAcrossNamespaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		root := r.connect("a")
		r.create("/one/a", "")
		r.create("/two/a", "")
		one, err := root.Namespace("one")
		r.check(err)
		two, err := root.Namespace("two")
		r.check(err)
		s := r.session(one)
		results, err := s.Multi(r.ctx, client.CreateOp("/b", nil), client.CreateOp("/b", nil).In(two), client.CheckOp("/two/b", 0).In(root))
		r.check(err)
		if results[0].Path != "/b" || results[1].Path != "/b" {
			t.Errorf("results %+v", results)
		}
		for _, path := range []string{"/one/b", "/two/b"} {
			if _, there := r.srv.Node(path); !there {
				t.Errorf("no %s", path)
			}
		}
		for name, op := range map[string]client.Op{
			"another session": client.CreateOp("/c", nil).In(r.connect("b")),
			"no client":       client.CreateOp("/c", nil).In(nil),
		} {
			_, err := s.Multi(r.ctx, client.CreateOp("/d", nil), op)
			wantErr(t, err, zk.ErrInvalidFlags)
			wantOutcome(t, err, client.OutcomeNeverSent)
			if err == nil || !strings.Contains(err.Error(), "create /c") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, there := r.srv.Node("/one/d"); there {
			t.Error("a part was applied")
		}
	})
}
