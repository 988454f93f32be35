package client_test

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// Every path is mapped on its way to the server and on its way back.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, connect, prefix string
		options               []client.Option
		more                  string // Namespace of the client
	}{
		{"none", "zk", "", nil, ""},
		{"chroot", "zk/app/prod", "/app/prod", nil, ""},
		{"namespace", "zk", "/ns", []client.Option{client.WithNamespace("ns")}, ""},
		{"deep namespace", "zk", "/n/s", []client.Option{client.WithNamespace("n/s")}, ""},
		{"both", "zk/app", "/app/ns", []client.Option{client.WithNamespace("ns")}, ""},
		{"namespace of a namespace", "zk/app", "/app/ns/sub/a", []client.Option{client.WithNamespace("ns")}, "sub/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.create("/app/prod", "")
				c, err := r.Open(tt.connect, "a", tt.options...)
				r.Check(err)
				if tt.more != "" {
					if c, err = c.Namespace(tt.more); err != nil {
						r.Fatal(err)
					}
				}
				mapsEveryPath(r, c, tt.prefix)
			})
		})
	}
}

func mapsEveryPath(r *rig, c *client.Client, prefix string) {
	t, ctx := r.T, r.Ctx
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s = %q, want %q", what, got, want)
		}
		if _, ok := r.Srv.Node(prefix + want); !ok {
			t.Errorf("%s: no node %s on the server", what, prefix+want)
		}
	}
	path, err := c.Create(ctx, "/d/a", []byte("x"), client.WithParents())
	r.Check(err)
	want("Create", path, "/d/a")
	path, err = c.Create(ctx, "/d/s-", nil, client.Sequential())
	r.Check(err)
	want("sequential", path, "/d/s-0000000001")
	path, err = c.Create(ctx, "/d/p-", nil, client.Protected())
	r.Check(err)
	want("protected", path, path)
	path, err = c.Create(ctx, "/d/c", nil, client.Container())
	r.Check(err)
	want("container", path, "/d/c")
	s := r.Session(c)
	e, err := inner.CreateAndList(ctx, s, newNode{Dir: "/d/q", Prefix: "q-"})
	r.Check(err)
	want("CreateAndList", e.Path, e.Path)
	results, err := c.Multi(ctx, client.CreateOp("/d/m", nil), client.CheckOp("/d/a", 0),
		client.CreateOp("/d/m/s-", nil, client.Sequential()), client.SetOp("/d/a", []byte("y"), 0), client.DeleteOp("/d/c", 0))
	r.Check(err)
	want("Multi 0", results[0].Path, "/d/m")
	want("Multi 2", results[2].Path, "/d/m/s-0000000000")
	if results[3].Stat == nil || results[3].Stat.Version != 1 || results[1].Path != "" || results[4].Path != "" {
		t.Errorf("Multi = %+v", results)
	}
	_, _, w, err := c.GetW(ctx, "/d/a")
	r.Check(err)
	r.Check(r.Srv.SetData(prefix+"/d/a", []byte("z")))
	r.await("the watch", w.Done())
	for _, op := range []func() error{
		func() error { _, err := c.Set(ctx, "/d/a", nil, client.AnyVersion); return err },
		func() error { _, _, err := c.GetACL(ctx, "/d/a"); return err },
		func() error { _, err := c.SetACL(ctx, "/d/a", zk.WorldACL(zk.PermAll), 0); return err },
		func() error { return c.Sync(ctx, "/d/a") },
		func() error { return c.Delete(ctx, "/d/a", client.AnyVersion) },
	} {
		r.Check(op())
	}
	if _, there := r.Srv.Node(prefix + "/d/a"); there {
		t.Error("Delete deleted something else")
	}
	names, _, err := c.Children(ctx, "/")
	if err != nil || !slices.Contains(names, "d") || prefix != "" && len(names) != 1 {
		t.Errorf("Children of / = %v, %v", names, err)
	}
	if ok, _, err := c.Exists(ctx, "/"); !ok || err != nil {
		t.Errorf("Exists / = %v, %v", ok, err)
	}
	full, err := inner.ServerPath(c, "/d")
	if err != nil || full != prefix+"/d" {
		t.Errorf("ServerPath = %q, %v", full, err)
	}
	for _, req := range r.Srv.Log() {
		for _, p := range append(req.Paths, req.Path) {
			if req.Client == "a" && p != "" && len(p) < len(prefix) && req.Op != zktest.OpExists && req.Op != zktest.OpCreateContainer {
				t.Errorf("outside of %s: %v", prefix, req)
			}
		}
	}
}

func TestNamespaceSharesTheSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		sub, err := c.Namespace("sub")
		r.Check(err)
		if r.Session(sub).ID() != r.Session(c).ID() || inner.Root(sub) != inner.Root(c) || inner.Root(c) == c {
			t.Error("not the same session, or another root")
		}
		if full, err := inner.ServerPath(inner.Root(c), "/a"); err != nil || full != "/a" {
			t.Errorf("path of the root: %q, %v", full, err)
		}
		for _, name := range []string{"", "/", "/a", "a/", "a//b", "..", "a\x00"} {
			if got, err := c.Namespace(name); err == nil || got != nil {
				t.Errorf("Namespace(%q) = %v, %v", name, got, err)
			}
		}
		r.Check(sub.CloseContext(r.Ctx))
		_, _, err = c.Get(r.Ctx, "/")
		testrig.WantErr(t, err, client.ErrClosed)
	})
}

// The error names the path that the caller gave, not the server's.
func TestNamespaceErrors(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("hidden"))
		_, err := c.Create(r.Ctx, "/a/b", nil)
		wantErrText(t, err, "/a/b", "hidden")
		_, err = c.Multi(r.Ctx, client.DeleteOp("/x", 0))
		wantErrText(t, err, "/x", "hidden")
		r.create("/hidden/locked", "")
		_, err = inner.Root(c).SetACL(r.Ctx, "/hidden/locked", zk.WorldACL(zk.PermRead), 0)
		r.Check(err)
		_, err = c.Create(r.Ctx, "/locked/dir/node", nil, client.WithParents())
		testrig.WantErr(t, err, zk.ErrNoAuth)
		wantErrText(t, err, "/locked/dir", "hidden")
	})
}

// The first node of a namespace makes the namespace, as containers and whichever
// operation makes the node. So does the next one after the servers have removed it.
func TestNamespaceOnFirstUse(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(*rig, *client.Client) error{
		"Create": func(r *rig, c *client.Client) error { return second(c.Create(r.Ctx, "/config", nil)) },
		"CreateStat": func(r *rig, c *client.Client) error {
			_, _, err := c.CreateStat(r.Ctx, "/config", nil)
			return err
		},
		"CreateOrSet": func(r *rig, c *client.Client) error { return second(c.CreateOrSet(r.Ctx, "/config", nil)) },
		"Session": func(r *rig, c *client.Client) error {
			return second(r.Session(c).Create(r.Ctx, "/config", nil, client.Ephemeral()))
		},
		"Multi": func(r *rig, c *client.Client) error {
			return second(c.Multi(r.Ctx, client.CreateOp("/config", nil), client.CreateOp("/config/a", nil), client.DeleteOp("/config/a", 0)))
		},
		"Multi of another": func(r *rig, c *client.Client) error {
			return second(inner.Root(c).Multi(r.Ctx, client.CheckOp("/prod", client.AnyVersion), client.CreateOp("/config", nil).In(c)))
		},
	} {
		for _, namespace := range []string{"ns", "n/s"} {
			t.Run(name+" in "+namespace, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					r.create("/app/prod", "")
					c, err := r.Open("zk/app", "a", client.WithNamespace(namespace))
					r.Check(err)
					for _, err := range []error{
						second(c.Create(r.Ctx, "/no/such", nil)), second(c.CreateOrSet(r.Ctx, "/no/such", nil)),
						second(c.Multi(r.Ctx, client.CreateOp("/no/such", nil))), second(c.Set(r.Ctx, "/config", nil, client.AnyVersion)),
					} {
						testrig.WantErr(t, err, client.ErrNoNode)
					}
					r.wantNode("/app/"+namespace, false) // it would not have helped
					for range 2 {
						r.Check(create(r, c))
						n, there := r.Srv.Node("/app/" + namespace)
						if !there || !n.Container {
							t.Errorf("the namespace: %+v, %v", n, there)
						}
						r.wantNode("/app/"+namespace+"/config", true)
						r.Check(inner.Root(c).DeleteAll(r.Ctx, "/"+namespace))
					}
				})
			})
		}
	}
}

// A namespace that may not be made is named in the error.
func TestNamespaceRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		r.Srv.Fail(zktest.Match{Op: zktest.OpCreateContainer, Times: 2}, zktest.CodeNoAuth)
		for _, err := range []error{
			second(c.Create(r.Ctx, "/config", nil)), second(c.Multi(r.Ctx, client.CreateOp("/config", nil))),
		} {
			testrig.WantErr(t, err, zk.ErrNoAuth)
			wantOutcome(t, err, client.OutcomeRefused)
			wantErrText(t, err, "make the namespace:", "make it first")
		}
		_, err := c.Create(r.Ctx, "/config", nil, client.WithPersistentParents())
		r.Check(err)
		if n, there := r.Srv.Node("/ns"); !there || n.Container {
			t.Errorf("the namespace: %+v, %v", n, there)
		}
	})
}
