package client_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

func TestMulti(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "x")
		r.create("/old", "")
		before := r.Srv.Zxid()
		res, err := c.Multi(r.Ctx,
			client.CheckOp("/a", 0),
			client.CreateOp("/a/s-", []byte("1"), client.Sequential(), client.Ephemeral()),
			client.SetOp("/a", []byte("y"), 0),
			client.DeleteOp("/old", client.AnyVersion),
			client.CreateOp("/p", nil, client.ACL(zk.WorldACL(zk.PermRead)...)))
		r.Check(err)
		if len(res) != 5 || res[1].Path != "/a/s-0000000000" || res[2].Stat.Version != 1 || res[4].Path != "/p" {
			r.Errorf("Multi = %+v", res)
		}
		if n, _ := r.Srv.Node("/a/s-0000000000"); n.Stat.EphemeralOwner != r.Session(c).ID() || string(n.Data) != "1" {
			r.Errorf("created %+v", n)
		}
		for _, part := range res {
			if part.Zxid != res[2].Stat.Mzxid {
				r.Errorf("Zxid %d of a part, want %d", part.Zxid, res[2].Stat.Mzxid)
			}
		}
		if got := r.Srv.Zxid(); got != before+1 {
			r.Errorf("%d transactions", got-before)
		}
		if res, err := c.Multi(r.Ctx); err != nil || len(res) != 0 {
			r.Errorf("an empty transaction: %v, %v", res, err)
		}
	})
}

// The error names the part that was refused, wherever it stands, and nothing
// was applied.
func TestMultiRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
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
				before := r.Srv.Dump()
				parts := append(append(append([]client.Op{}, good[:at]...), tt.part), good[at:]...)
				res, err := c.Multi(r.Ctx, parts...)
				var multi *client.MultiError
				if !errors.As(err, &multi) || multi.Index != at || multi.Op != tt.op || multi.Path != tt.path || res != nil {
					r.Errorf("%s %s at %d: %v, %+v", tt.op, tt.path, at, res, err)
				}
				testrig.WantErr(t, err, tt.want)
				wantOutcome(t, err, client.OutcomeRefused)
				const remedy = "the parent: make it first, a transaction makes none"
				if noParent := tt.path == "/x/y"; strings.Contains(err.Error(), remedy) != noParent {
					r.Errorf("%s %s: %v", tt.op, tt.path, err)
				}
				if n, _ := r.Srv.Node("/ns/a/b"); string(n.Data) != "x" {
					r.Fatalf("something was applied:\n%s\nbefore:\n%s", r.Srv.Dump(), before)
				}
			}
		}
	})
}

func TestMultiInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for name, parts := range map[string][]client.Op{
			"container": {client.CheckOp("/", 0), client.CreateOp("/a", nil, client.Container(), client.Sequential())},
			"TTL":       {client.CreateOp("/a", nil, client.TTL(1e9), client.Ephemeral())},
			"protected": {client.CreateOp("/a", nil, client.Protected())},
			"parents":   {client.CreateOp("/a", nil, client.WithParents())},
			"empty Op":  {client.CheckOp("/", 0), {}},
			"path":      {client.CheckOp("/", 0), client.SetOp("a", nil, 0)},
		} {
			_, err := c.Multi(r.Ctx, parts...)
			wantOutcome(t, err, client.OutcomeNeverSent)
			if err == nil {
				r.Errorf("%s: no error", name)
			}
		}
		if n := r.Srv.Count(zktest.OpMulti); n != 0 {
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
		c := r.Connect("a", client.WithMaxRequest(limit))
		r.create("/a", "")
		s := r.Session(c)
		states := len(r.Srv.Log())
		var acl []zk.ACL
		long := "/" + strings.Repeat("x", limit)
		for _, size := range []int{limit, limit + 2000, 10 * limit, client.DefaultMaxRequest} {
			big := make([]byte, size)
			long = "/" + strings.Repeat("x", size)
			for len(acl)*20 < size {
				acl = append(acl, zk.ACL{Perms: 1, Scheme: "ip", ID: "10.0.0.1"})
			}
			for name, run := range map[string]func() error{
				"create":    func() error { _, err := c.Create(r.Ctx, "/b", big); return err },
				"protected": func() error { _, err := c.Create(r.Ctx, "/b", big, client.Protected()); return err },
				"list": func() error {
					_, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/a", Prefix: "b", Data: big})
					return err
				},
				"create ACL":    func() error { _, err := c.Create(r.Ctx, "/b", nil, client.ACL(acl...)); return err },
				"set":           func() error { _, err := c.Set(r.Ctx, "/a", big, client.AnyVersion); return err },
				"setACL":        func() error { _, err := c.SetACL(r.Ctx, "/a", acl, client.AnyVersion); return err },
				"multi":         func() error { _, err := c.Multi(r.Ctx, client.SetOp("/a", big, -1)); return err },
				"get path":      func() error { _, _, err := c.Get(r.Within(testrig.SessionTimeout), long); return err },
				"getW path":     func() error { _, _, _, err := c.GetW(r.Within(testrig.SessionTimeout), long); return err },
				"children path": func() error { _, _, err := c.Children(r.Within(testrig.SessionTimeout), long); return err },
				"delete path":   func() error { return c.Delete(r.Within(testrig.SessionTimeout), long, -1) },
				"sync path":     func() error { return c.Sync(r.Within(testrig.SessionTimeout), long) },
				"getACL path":   func() error { _, _, err := c.GetACL(r.Within(testrig.SessionTimeout), long); return err },
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
		for _, req := range r.Srv.Log()[states:] {
			if req.Op == zktest.OpConnect {
				connects++
			}
		}
		if connects != 0 || s.Err() != nil || r.Session(c).ID() != s.ID() {
			r.Errorf("reconnected %d times, session %v", connects, s.Err())
		}
	})
}

// What fits is let through, close to the limit.
func TestLargestThatFits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		data := make([]byte, client.DefaultMaxRequest-300)
		_, err := c.Create(r.Ctx, "/big", data)
		r.Check(err)
		_, err = c.Set(r.Ctx, "/big", data, 0)
		r.Check(err)
		got, _, err := c.Get(r.Ctx, "/big")
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
		root := r.Connect("a")
		r.create("/one/a", "")
		r.create("/two/a", "")
		one, err := root.Namespace("one")
		r.Check(err)
		two, err := root.Namespace("two")
		r.Check(err)
		s := r.Session(one)
		results, err := s.Multi(r.Ctx, client.CreateOp("/b", nil), client.CreateOp("/b", nil).In(two), client.CheckOp("/two/b", 0).In(root))
		r.Check(err)
		if results[0].Path != "/b" || results[1].Path != "/b" {
			t.Errorf("results %+v", results)
		}
		for _, path := range []string{"/one/b", "/two/b"} {
			if _, there := r.Srv.Node(path); !there {
				t.Errorf("no %s", path)
			}
		}
		for name, op := range map[string]client.Op{
			"another session": client.CreateOp("/c", nil).In(r.Connect("b")),
			"no client":       client.CreateOp("/c", nil).In(nil),
		} {
			_, err := s.Multi(r.Ctx, client.CreateOp("/d", nil), op)
			testrig.WantErr(t, err, zk.ErrInvalidFlags)
			wantOutcome(t, err, client.OutcomeNeverSent)
			if err == nil || !strings.Contains(err.Error(), "create /c") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, there := r.Srv.Node("/one/d"); there {
			t.Error("a part was applied")
		}
	})
}
