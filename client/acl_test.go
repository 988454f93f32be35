package client_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A list of rights that came out empty is a mistake, and must not be widened to
// the open default.
func TestEmptyACLIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		var none []zk.ACL
		for name, err := range map[string]error{
			"create": func() error {
				_, err := c.Create(r.Ctx, "/n", nil, client.ACL(none...))
				return err
			}(),
			"protected": func() error {
				_, err := c.Create(r.Ctx, "/n", nil, client.Protected(), client.ACL())
				return err
			}(),
			"parents": func() error {
				_, err := c.Create(r.Ctx, "/p/n", nil, client.WithParents(), client.ParentACL(none...))
				return err
			}(),
			"transaction": func() error {
				_, err := c.Multi(r.Ctx, client.CreateOp("/n", nil, client.ACL(none...)))
				return err
			}(),
			"list": func() error {
				_, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/q", Prefix: "n-", ACL: []zk.ACL{}})
				return err
			}(),
			"group": func() error {
				_, err := inner.CreateGroup(r.Ctx, s, []newNode{{Dir: "/q", Prefix: "n-", ACL: []zk.ACL{}}})
				return err
			}(),
		} {
			t.Run(name, func(t *testing.T) {
				testrig.WantErr(t, err, zk.ErrInvalidACL)
				wantOutcome(t, err, client.OutcomeNeverSent)
			})
		}
		if kids := r.named("/"); len(kids) != 0 {
			t.Errorf("made %v", kids)
		}
	})
}

// Parents get the client's default ACL, as Curator's do, and not that of the
// node: a public node does not open its directory.
func TestParentsGetTheDefaultACL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithAuth("digest", "u:p"))
		perms := func(path string) (schemes []string) {
			acl, _, err := c.GetACL(r.Ctx, path)
			r.Check(err)
			for _, a := range acl {
				schemes = append(schemes, a.Scheme)
			}
			return schemes
		}
		want := func(path, scheme string) {
			t.Helper()
			if got := perms(path); len(got) != 1 || got[0] != scheme {
				t.Errorf("%s: %v, want %s", path, got, scheme)
			}
		}
		public := client.ACL(zk.WorldACL(zk.PermAll)...)
		_, err := c.Create(r.Ctx, "/a/b", nil, public, client.WithParents())
		r.Check(err)
		want("/a/b", "world")
		want("/a", "digest")
		_, err = c.Create(r.Ctx, "/p/q/n", nil, public, client.WithParents(), client.Protected(), client.Sequential())
		r.Check(err)
		want("/p/q", "digest")
		want("/p", "digest")
		_, err = c.Create(r.Ctx, "/c/d", nil, client.WithParents(), client.ParentACL(zk.WorldACL(zk.PermAll)...))
		r.Check(err)
		want("/c/d", "digest")
		want("/c", "world")
	})
}

// Persistent parents stay when their last child is gone, and get the same ACL as
// containers do.
func TestPersistentParents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithAuth("digest", "u:p"))
		both := func(dir string, opts ...client.CreateOption) {
			t.Helper()
			_, err := c.Create(r.Ctx, dir+"/x/y/n", nil, append(opts, client.ACL(zk.WorldACL(zk.PermAll)...))...)
			r.Check(err)
			r.Check(c.DeleteAll(r.Ctx, dir+"/x/y/n"))
		}
		r.Srv.ResetCounts()
		both("/stays", client.WithPersistentParents())
		both("/stays", client.WithParents(), client.WithPersistentParents())
		if n := r.Srv.Count(zktest.OpCreateContainer); n != 0 {
			t.Errorf("%d containers were made", n)
		}
		both("/goes", client.WithPersistentParents(), client.WithParents())
		for _, path := range []string{"/stays", "/stays/x/y", "/goes/x"} {
			acl, _, err := c.GetACL(r.Ctx, path)
			r.Check(err)
			if len(acl) != 1 || acl[0].Scheme != "digest" {
				t.Errorf("%s: %v", path, acl)
			}
		}
		time.Sleep(10 * time.Minute) // the server looks for empty containers once a minute
		if got := r.named("/"); len(got) != 1 || got[0] != "stays" {
			t.Errorf("left %v", got)
		}
		_, err := c.Create(r.Ctx, "/p/q/n", nil, client.WithPersistentParents(), client.ParentACL(zk.WorldACL(zk.PermAll)...))
		r.Check(err)
		acl, _, err := c.GetACL(r.Ctx, "/p")
		if err != nil || len(acl) != 1 || acl[0].Scheme != "world" {
			t.Errorf("%v, %v", acl, err)
		}
	})
}

// A default that came out empty is a mistake.
func TestEmptyDefaultACLIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		_, err := r.Open("zk:2181", "a", client.WithDefaultACL())
		testrig.WantErr(t, err, client.ErrInvalidACL)
		wantErrText(t, err, "client: WithDefaultACL: ", "wire:")
	})
}
