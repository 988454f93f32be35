package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		ctx := r.Ctx
		path, err := c.Create(ctx, "/a", []byte("one"))
		if err != nil || path != "/a" {
			r.Fatalf("Create = %q, %v", path, err)
		}
		data, stat, err := c.Get(ctx, "/a")
		if err != nil || string(data) != "one" || stat.Version != 0 {
			t.Errorf("Get = %q, %+v, %v", data, stat, err)
		}
		stat, err = c.Set(ctx, "/a", []byte("two"), 0)
		if err != nil || stat.Version != 1 {
			t.Errorf("Set = %+v, %v", stat, err)
		}
		_, err = c.Set(ctx, "/a", []byte("three"), client.AnyVersion)
		r.Check(err)
		ok, stat, err := c.Exists(ctx, "/a")
		if !ok || err != nil || stat.Version != 2 {
			t.Errorf("Exists = %v, %+v, %v", ok, stat, err)
		}
		if ok, stat, err = c.Exists(ctx, "/b"); ok || *stat != (zk.Stat{}) || err != nil {
			t.Errorf("Exists = %v, %+v, %v for a missing node", ok, stat, err)
		}
		for _, name := range []string{"x", "y", "z"} {
			_, err := c.Create(ctx, "/a/"+name, nil)
			r.Check(err)
		}
		names, stat, err := c.Children(ctx, "/a")
		slices.Sort(names)
		if err != nil || !slices.Equal(names, []string{"x", "y", "z"}) || stat.NumChildren != 3 {
			t.Errorf("Children = %v, %+v, %v", names, stat, err)
		}
		r.Check(c.Sync(ctx, "/a"))
		reader := []zk.ACL{{Perms: zk.PermRead | zk.PermAdmin, Scheme: "world", ID: "anyone"}}
		stat, err = c.SetACL(ctx, "/a/x", reader, 0)
		if err != nil || stat.Aversion != 1 {
			t.Errorf("SetACL = %+v, %v", stat, err)
		}
		acl, stat, err := c.GetACL(ctx, "/a/x")
		if err != nil || !sameACL(acl, reader) || stat.Aversion != 1 {
			t.Errorf("GetACL = %v, %+v, %v", acl, stat, err)
		}
		r.Check(c.Delete(ctx, "/a/y", 0))
		r.Check(c.Delete(ctx, "/a/z", client.AnyVersion))
		if got := r.Srv.Children("/a"); !slices.Equal(got, []string{"x"}) {
			t.Errorf("left: %v", got)
		}
	})
}

func TestCreateKinds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		create := func(path string, opts ...client.CreateOption) zktest.Node {
			t.Helper()
			made, err := c.Create(r.Ctx, path, []byte("x"), opts...)
			r.Check(err)
			node, ok := r.Srv.Node(made)
			if !ok || string(node.Data) != "x" {
				r.Fatalf("%s was made as %s: %v, %+v", path, made, ok, node)
			}
			return node
		}
		if n := create("/p"); n.Container || n.TTL != 0 || n.Stat.EphemeralOwner != 0 {
			t.Errorf("persistent: %+v", n)
		}
		if n := create("/e", client.Ephemeral()); n.Stat.EphemeralOwner != s.ID() {
			t.Errorf("ephemeral: %+v", n)
		}
		if n := create("/p/s-", client.Sequential()); n.Path != "/p/s-0000000000" {
			t.Errorf("sequential: %+v", n)
		}
		if n := create("/p/", client.Sequential(), client.Ephemeral()); n.Path != "/p/0000000001" || n.Stat.EphemeralOwner != s.ID() {
			t.Errorf("sequential without a name: %+v", n)
		}
		if n := create("/", client.Sequential()); n.Path != "/0000000002" {
			t.Errorf("sequential in the root: %+v", n)
		}
		if n := create("/c", client.Container()); !n.Container {
			t.Errorf("container: %+v", n)
		}
		if n := create("/t", client.TTL(90*time.Second)); n.TTL != 90*time.Second || n.Container {
			t.Errorf("TTL: %+v", n)
		}
		if n := create("/p/t-", client.TTL(time.Millisecond), client.Sequential()); n.TTL != time.Millisecond || n.Path != "/p/t-0000000002" {
			t.Errorf("sequential TTL: %+v", n)
		}
		for _, opts := range [][]client.CreateOption{
			{client.Protected()},
			{client.Protected(), client.Sequential()},
			{client.Protected(), client.Sequential(), client.Ephemeral()},
			{client.Protected(), client.Container()},
			{client.Protected(), client.TTL(time.Minute)},
		} {
			n := create("/p/x-", opts...)
			if name := strings.TrimPrefix(n.Path, "/p/"+inside.ProtectedPrefix); len(name) < 39 || name[36:39] != "-x-" || strings.Count(name[:36], "-") != 4 {
				t.Errorf("protected: %s", n.Path)
			}
		}
		if n := create("/q/w/e", client.WithParents(), client.ACL(zk.WorldACL(zk.PermRead|zk.PermCreate)...)); n.Container {
			t.Errorf("child of new parents: %+v", n)
		}
	}, zktest.WithExtendedTypes())
}

// Parents are containers with the ACL of the node, and go when it has gone.
func TestParents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		_, err := c.Create(r.Ctx, "/q/w/e", nil, client.WithParents(), client.Ephemeral())
		r.Check(err)
		for _, path := range []string{"/q", "/q/w"} {
			if n, _ := r.Srv.Node(path); !n.Container || len(n.Data) != 0 {
				t.Errorf("%s: %+v", path, n)
			}
		}
		// The deepest that exists is kept.
		_, err = c.Create(r.Ctx, "/q/w/r/t", nil, client.WithParents(), client.Ephemeral())
		r.Check(err)
		r.Check(c.Delete(r.Ctx, "/q/w/e", 0))
		r.Check(c.Delete(r.Ctx, "/q/w/r/t", 0))
		for range 4 {
			r.Srv.Sweep()
			time.Sleep(time.Second)
		}
		if _, there := r.Srv.Node("/q"); there {
			t.Errorf("not reaped:\n%s", r.Srv.Dump())
		}
		// A container that is reaped between its making and the child's.
		rule := r.Srv.BeforeReply(zktest.Match{Op: zktest.OpCreateContainer, Times: 3},
			func(_ context.Context, req zktest.Request) { r.Check(r.Srv.Delete(req.Path)) })
		_, err = c.Create(r.Ctx, "/z/x", nil, client.WithParents(), client.ACL(zk.WorldACL(zk.PermAll)...))
		r.Check(err)
		if rule.Fired() != 3 {
			t.Errorf("reaped %d times", rule.Fired())
		}
		// Without WithParents nothing is made.
		_, err = c.Create(r.Ctx, "/no/parent", nil)
		testrig.WantErr(t, err, zk.ErrNoNode)
		wantOutcome(t, err, client.OutcomeRefused)
		if _, there := r.Srv.Node("/no"); there {
			t.Error("a parent was made")
		}
	})
}

// What was wrong is said before anything is sent.
func TestCreateOptionsInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for name, opts := range map[string][]client.CreateOption{
			"ephemeral container":  {client.Container(), client.Ephemeral()},
			"sequential container": {client.Container(), client.Sequential()},
			"container with TTL":   {client.Container(), client.TTL(time.Minute)},
			"ephemeral with TTL":   {client.Ephemeral(), client.TTL(time.Minute)},
			"TTL negative":         {client.TTL(-time.Second)},
			"TTL in wrong unit":    {client.TTL(500)},
			"TTL 0":                {client.TTL(0)},
		} {
			for _, opts := range [][]client.CreateOption{opts, append(opts, client.Protected(), nil)} {
				_, err := c.Create(r.Ctx, "/a", nil, opts...)
				testrig.WantErr(t, err, zk.ErrInvalidFlags)
				if !neverSent(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if n := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpCreateTTL) + r.Srv.Count(zktest.OpCreateContainer); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	}, zktest.WithExtendedTypes())
}

// A TTL node on a server that has them switched off says so.
func TestTTLNotEnabled(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		_, err := r.Connect("a").Create(r.Ctx, "/t", nil, client.TTL(time.Minute))
		testrig.WantErr(t, err, client.ErrUnsupported)
		wantOutcome(t, err, client.OutcomeRefused)
		if err == nil || !strings.Contains(err.Error(), "extendedTypesEnabled") {
			t.Errorf("error %v names no remedy", err)
		}
	})
}

// Bad paths are refused by every operation with the same error, and never
// panic, whatever the options.
func TestOperationsBadPath(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		ctx := r.Ctx
		before := len(r.Srv.Log())
		for _, path := range []string{"", "a", "a/b", "/a/", "//", "/a//b", "/a\x00", "/..", "/\U0001f512"} {
			for name, op := range map[string]func() error{
				"create":    func() error { _, err := c.Create(ctx, path, nil); return err },
				"protected": func() error { _, err := c.Create(ctx, path, nil, client.Protected()); return err },
				"list":      func() error { _, err := inner.CreateAndList(ctx, s, newNode{Dir: path, Prefix: "x-"}); return err },
				"get":       func() error { _, _, err := c.Get(ctx, path); return err },
				"getW":      func() error { _, _, _, err := c.GetW(ctx, path); return err },
				"exists":    func() error { _, _, err := c.Exists(ctx, path); return err },
				"children":  func() error { _, _, err := c.Children(ctx, path); return err },
				"set":       func() error { _, err := c.Set(ctx, path, nil, 0); return err },
				"delete":    func() error { return c.Delete(ctx, path, 0) },
				"sync":      func() error { return c.Sync(ctx, path) },
				"getACL":    func() error { _, _, err := c.GetACL(ctx, path); return err },
				"setACL":    func() error { _, err := c.SetACL(ctx, path, nil, 0); return err },
				"multi":     func() error { _, err := c.Multi(ctx, client.CheckOp("/", 0), client.DeleteOp(path, -1)); return err },
				"remove":    func() error { return inner.DeleteInBackground(s, path, nil) },
			} {
				err := noPanic(t, name+" "+path, op)
				testrig.WantErr(t, err, client.ErrInvalidPath)
				if !neverSent(err) {
					t.Errorf("%s %q: %v", name, path, err)
				}
			}
		}
		if after := len(r.Srv.Log()); after != before {
			t.Errorf("%d requests were sent", after-before)
		}
	})
}

func noPanic(t *testing.T, what string, op func() error) error {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v", what, p)
		}
	}()
	return op()
}

// A list that is too long fails by itself: the client asks for it once.
// Everything else that is under way on the connection goes on, also a hold.
func TestReplyTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithMaxReply(4<<10))
		r.create("/d", "")
		for i := range 100 {
			r.create(fmt.Sprintf("/d/%060d", i), "")
		}
		r.create("/held", "")
		s := r.Session(c)
		h, err := inner.Hold(r.Ctx, s, func(why error) { r.Errorf("the hold is lost: %v", why) }, "/held")
		r.Check(err)
		for range 20 {
			r.Srv.ResetCounts()
			_, _, err := c.Children(r.Ctx, "/d")
			testrig.WantErr(t, err, client.ErrReplyTooLarge)
			wantOutcome(t, err, client.OutcomeUnchanged)
			if n := r.Srv.Counts()[zktest.OpGetChildren2]; n != 1 {
				t.Errorf("asked %d times", n)
			}
			_, _, w, err := c.ChildrenW(r.Ctx, "/d")
			testrig.WantErr(t, err, client.ErrReplyTooLarge)
			if w != nil {
				t.Error("a watch without a list")
			}
			_, _, err = c.Get(r.Ctx, "/d")
			r.Check(err)
			time.Sleep(time.Second)
		}
		h.Done()
		if r.Session(c).ID() != s.ID() {
			t.Error("the session was replaced")
		}
		// What may have been done is not done twice, and a group leaves nothing.
		ops := make([]client.Op, 60)
		for i := range ops {
			ops[i] = client.CreateOp(fmt.Sprintf("/m%060d", i), nil)
		}
		_, err = c.Multi(r.Ctx, ops...)
		testrig.WantErr(t, err, client.ErrReplyTooLarge)
		wantOutcome(t, err, client.OutcomeUnknown)
		if _, there := r.Srv.Node(fmt.Sprintf("/m%060d", 59)); !there {
			t.Error("the transaction was not applied")
		}
		nodes := make([]newNode, 40)
		for i := range nodes {
			nodes[i] = newNode{Dir: fmt.Sprintf("/g%d", i%4), Prefix: fmt.Sprintf("%060d-", i)} // whose lists fit
		}
		_, err = inner.CreateGroup(r.Ctx, s, nodes)
		testrig.WantErr(t, err, client.ErrReplyTooLarge)
		time.Sleep(5 * time.Second)
		for i := range 4 {
			if left := r.Srv.Children(fmt.Sprintf("/g%d", i)); len(left) != 0 {
				t.Errorf("left: %d nodes", len(left))
			}
		}
	})
}

// The stat of a node that does not exist is zero and not nil, as go-zookeeper's is, so
// a field of it can be read. After an error it is so, too.
func TestExistsStat(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		there, stat, err := c.Exists(r.Ctx, "/missing")
		r.Check(err)
		if there || stat == nil || *stat != (zk.Stat{}) {
			t.Errorf("Exists: %v, %+v", there, stat)
		}
		there, stat, w, err := c.ExistsW(r.Ctx, "/missing")
		r.Check(err)
		defer w.Stop()
		if there || stat == nil || *stat != (zk.Stat{}) {
			t.Errorf("ExistsW: %v, %+v", there, stat)
		}
		if there, stat, err := c.Exists(r.Ctx, "relative"); there || stat == nil || err == nil {
			t.Errorf("Exists of a wrong path: %v, %+v, %v", there, stat, err)
		}
		if there, stat, w, err := c.ExistsW(r.Ctx, "relative"); there || stat == nil || w != nil || err == nil {
			t.Errorf("ExistsW of a wrong path: %v, %+v, %v, %v", there, stat, w, err)
		}
		r.create("/there", "four")
		if there, stat, err := c.Exists(r.Ctx, "/there"); !there || stat.DataLength != 4 || err != nil {
			t.Errorf("Exists of a node: %v, %+v, %v", there, stat, err)
		}
	})
}
