package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// named counts the children of dir.
func (r *rig) named(dir string) []string {
	return slices.DeleteFunc(r.Srv.Children(dir), func(name string) bool { return name == "zookeeper" })
}

// What was lost before it was applied, and what was applied but not answered,
// is repeated where that is harmless.
func TestRepeated(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*zktest.Server, zktest.Match) *zktest.Rule{
		"reply lost":     (*zktest.Server).LoseReply,
		"dropped before": (*zktest.Server).DropBefore,
		"throttled":      func(s *zktest.Server, m zktest.Match) *zktest.Rule { return s.Fail(m, zktest.CodeThrottledOp) },
		"silence":        (*zktest.Server).StallReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.create("/a", "x")
				c := r.Connect("a")
				for _, tt := range []struct {
					what string
					op   zktest.Op
					run  func() error
				}{
					{"get", zktest.OpGetData, func() error { _, _, err := c.Get(r.Ctx, "/a"); return err }},
					{"exists", zktest.OpExists, func() error { _, _, err := c.Exists(r.Ctx, "/a"); return err }},
					{"children", zktest.OpGetChildren2, func() error { _, _, err := c.Children(r.Ctx, "/a"); return err }},
					{"sync", zktest.OpSync, func() error { return c.Sync(r.Ctx, "/a") }},
					{"getACL", zktest.OpGetACL, func() error { _, _, err := c.GetACL(r.Ctx, "/a"); return err }},
					{"set any", zktest.OpSetData, func() error { _, err := c.Set(r.Ctx, "/a", []byte("y"), client.AnyVersion); return err }},
					{"delete", zktest.OpDelete, func() error { r.create("/d", ""); return c.Delete(r.Ctx, "/d", 0) }},
					{"protected", zktest.OpCreate, func() error {
						_, err := c.Create(r.Ctx, "/a/p-", nil, client.Protected(), client.Ephemeral(), client.Sequential())
						return err
					}},
				} {
					rule := fault(r.Srv, zktest.Match{Op: tt.op, Client: "a"})
					r.Check(tt.run())
					if rule.Fired() != 1 {
						t.Errorf("%s: the fault happened %d times", tt.what, rule.Fired())
					}
				}
				if _, there := r.Srv.Node("/d"); there {
					t.Error("not deleted")
				}
				if kids := r.named("/a"); len(kids) != 1 {
					t.Errorf("protected creates: %v", kids)
				}
				if s := r.Srv.Sessions(); len(s) != 1 {
					t.Errorf("sessions: %v", s)
				}
			})
		})
	}
}

// After a lost answer, a Set with a version whose second try finds another
// version is not known to be applied, whatever the bytes say. AcceptEqual
// settles it by the bytes.
func TestSetAfterLostReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		overwrite := func(path, data string) {
			r.Srv.BeforeApply(zktest.Match{Op: zktest.OpSetData, Path: path, Nth: 2}, func(context.Context, zktest.Request) {
				r.Check(r.Srv.SetData(path, []byte(data)))
			})
		}
		for _, tt := range []struct {
			name  string
			fault func(path string)
			plain bool // succeeds without the option
			equal bool // succeeds with it
		}{
			{"not applied", func(path string) { r.Srv.DropBefore(zktest.Match{Op: zktest.OpSetData, Path: path}) }, true, true},
			{"applied", func(path string) { r.Srv.LoseReply(zktest.Match{Op: zktest.OpSetData, Path: path}) }, false, true},
			{"applied, and the comparison is lost too", func(path string) {
				r.Srv.LoseReply(zktest.Match{Op: zktest.OpSetData, Path: path})
				r.Srv.LoseReply(zktest.Match{Op: zktest.OpGetData, Path: path})
			}, false, true},
			{"applied, then overwritten", func(path string) {
				r.Srv.LoseReply(zktest.Match{Op: zktest.OpSetData, Path: path})
				overwrite(path, "theirs")
			}, false, false},
			{"not applied, and others write the same", func(path string) {
				r.Srv.DropBefore(zktest.Match{Op: zktest.OpSetData, Path: path})
				overwrite(path, "new")
			}, false, true}, // which is why there is an option
		} {
			for _, accept := range []bool{false, true} {
				path, want, opts := "/"+tt.name, tt.plain, []client.SetOption(nil)
				if accept {
					path, want, opts = path+" accepted", tt.equal, []client.SetOption{client.AcceptEqual()}
				}
				r.create(path, "old")
				tt.fault(path)
				stat, err := c.Set(r.Ctx, path, []byte("new"), 0, opts...)
				switch {
				case want && (err != nil || stat.Version != 1):
					t.Errorf("%s, accept %v: %+v, %v", tt.name, accept, stat, err)
				case !want:
					wantOutcome(t, err, client.OutcomeUnknown)
					if errors.Is(err, zk.ErrBadVersion) || stat != nil {
						t.Errorf("%s, accept %v: %+v, %v: a caller that tests for a conflict would try again", tt.name, accept, stat, err)
					}
				}
			}
		}
	})
}

// Two clients that read one version and set the same next value are never both
// told that the value is theirs.
func TestSetHandsNothingOutTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		r.create("/id", "1")
		r.Srv.DropBefore(zktest.Match{Client: "a", Op: zktest.OpSetData, Path: "/id"})
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpSetData, Path: "/id", Nth: 2}, func(ctx context.Context, _ zktest.Request) {
			_, err := b.Set(ctx, "/id", []byte("2"), 0)
			r.Check(err)
		})
		if _, err := a.Set(r.Ctx, "/id", []byte("2"), 0); err == nil {
			t.Error("both were given the id 2")
		} else {
			wantOutcome(t, err, client.OutcomeUnknown)
		}
	})
}

// Refused means that nothing was changed. After a first try that may have
// been applied, the refusal of the second proves nothing.
func TestRefusedSecondTryIsNotRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/acl", "")
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpSetACL})
		_, err := c.SetACL(r.Ctx, "/acl", zk.WorldACL(zk.PermAll), 0)
		wantOutcome(t, err, client.OutcomeUnknown)
		r.create("/again", "")
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpDelete})
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpDelete, Nth: 2}, func(context.Context, zktest.Request) {
			r.create("/again/child", "")
		})
		err = c.Delete(r.Ctx, "/again", 0)
		testrig.WantErr(t, err, zk.ErrNotEmpty)
		wantOutcome(t, err, client.OutcomeUnknown)
	})
}

// An unprotected create is not repeated: one node, and the caller is told.
func TestCreateAfterLostReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/q", "")
		for _, opts := range [][]client.CreateOption{
			{client.Sequential()}, {client.Container()}, {client.Ephemeral(), client.Sequential()},
		} {
			before := len(r.named("/q"))
			lost := r.Srv.LoseReply(zktest.Match{PathPrefix: "/q/"})
			_, err := c.Create(r.Ctx, "/q/n-", nil, opts...)
			wantOutcome(t, err, client.OutcomeUnknown)
			wantErrText(t, err, "outcome unknown", "\n")
			if got := len(r.named("/q")) - before; got != 1 || lost.Fired() != 1 {
				t.Errorf("%d nodes, fault %d times", got, lost.Fired())
			}
		}
		// What never reached a server is repeated.
		r.Srv.CutAll()
		_, err := c.Create(r.Ctx, "/again", nil)
		r.Check(err)
		lost := r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti})
		_, err = c.Multi(r.Ctx, client.CreateOp("/multi", nil))
		wantOutcome(t, err, client.OutcomeUnknown)
		if _, there := r.Srv.Node("/multi"); !there || lost.Fired() != 1 {
			t.Error("the transaction was not applied once")
		}
	})
}

// The making of a parent may be repeated: its lost answer does not make the
// outcome of the create unknown.
func TestParentAfterLostReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		lost := r.Srv.LoseReply(zktest.Match{Op: zktest.OpCreateContainer})
		if _, err := c.Create(r.Ctx, "/p/a", nil, client.WithParents()); err != nil {
			t.Errorf("Create = %v", err)
		}
		if lost.Fired() != 1 {
			t.Error("nothing was lost")
		}
	})
}

// However often the answer to a protected create, or to the look-up after it,
// is lost: success and exactly one node.
func TestProtectedCreateAfterLostReplies(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, tt := range []struct {
			name string
			opts []client.CreateOption
		}{
			{"persistent", nil},
			{"ephemeral", []client.CreateOption{client.Ephemeral()}},
			{"sequential", []client.CreateOption{client.Ephemeral(), client.Sequential()}},
			{"container", []client.CreateOption{client.Container()}},
		} {
			dir := "/" + tt.name
			r.create(dir, "")
			for _, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.LoseReply, r.Srv.DropBefore, r.Srv.StallReply} {
				fault(zktest.Match{PathPrefix: dir + "/_c_", Times: 2})
				fault(zktest.Match{Op: zktest.OpSync, Path: dir})
				fault(zktest.Match{Op: zktest.OpGetChildren2, Path: dir})
				fault(zktest.Match{Op: zktest.OpExists, PathPrefix: dir})
				made, err := c.Create(r.Ctx, dir+"/n-", []byte("x"), append(tt.opts, client.Protected())...)
				r.Check(err)
				kids := r.named(dir)
				if len(kids) != 1 || made != dir+"/"+kids[0] {
					t.Errorf("%s: made %s, there is %v", tt.name, made, kids)
				}
				r.Check(c.Delete(r.Ctx, made, 0))
				r.Srv.ClearRules()
			}
		}
	})
}

// The new session of a protected ephemeral create does not take the node of
// the old one for its own.
func TestProtectedCreateAcrossSessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/q", "")
		c := r.Connect("a")
		first := r.Session(c)
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpCreate})
		r.Srv.Fail(zktest.Match{Op: zktest.OpConnect}, zktest.CodeSessionExpired)
		made, err := c.Create(r.Ctx, "/q/n-", nil, client.Protected(), client.Ephemeral(), client.Sequential())
		r.Check(err)
		n, ok := r.Srv.Node(made)
		if !ok || n.Stat.EphemeralOwner == first.ID() || n.Stat.EphemeralOwner != r.Session(c).ID() {
			t.Errorf("%s: %v, %+v", made, ok, n)
		}
	})
}

// Retries obey the policy, and its end names the last error.
func TestRetryPolicy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithRetry(retry.NTimes(3, time.Hour)))
		rule := r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/", Times: zktest.Always}, zktest.CodeThrottledOp)
		start := time.Now()
		_, _, err := c.Get(r.Ctx, "/")
		testrig.WantErr(t, err, client.ErrThrottled)
		wantOutcome(t, err, client.OutcomeRefused)
		if rule.Fired() != 4 {
			t.Errorf("%d tries", rule.Fired())
		}
		if took := time.Since(start); took > 3*testrig.SessionTimeout/3+time.Second {
			t.Errorf("took %v: a sleep is at most a third of the session timeout", took)
		}
		_, _, err = r.Connect("b").Get(r.Within(time.Minute), "/")
		testrig.WantErr(t, err, client.ErrThrottled, context.DeadlineExceeded)
	})
}

// The other directory is listed in the same round trip; one that is missing is
// empty, one that may not be listed is not known.
func TestCreateAndListBeside(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		s := r.Session(c)
		e, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/q", Prefix: "n-", List: true, Other: "/side"})
		r.Check(err)
		if len(e.Children) != 1 || e.Other == nil || len(e.Other) != 0 {
			t.Errorf("entry %+v", e)
		}
		r.create("/ns/side", "")
		r.create("/ns/side/x", "")
		r.Srv.ResetCounts()
		e, err = inner.CreateAndList(r.Ctx, s, newNode{Dir: "/q", Prefix: "n-", List: true, Other: "/side"})
		r.Check(err)
		if len(e.Children) != 2 || len(e.Other) != 1 || e.Other[0] != "x" {
			t.Errorf("entry %+v", e)
		}
		if got := r.Srv.Counts(); got[zktest.OpCreate] != 1 || got[zktest.OpGetChildren2] != 2 {
			t.Errorf("requests %v", got)
		}
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Path: "/ns/side"}, zktest.CodeNoAuth)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpGetChildren2, Path: "/ns/q"}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Create("/ns/q/later", nil))
		})
		e, err = inner.CreateAndList(r.Ctx, s, newNode{Dir: "/q", Prefix: "n-", List: true, Other: "/side"})
		r.Check(err)
		if len(e.Children) != 4 || e.Other != nil {
			t.Errorf("entry %+v", e)
		}
		r.create("/ns/empty", "")
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Path: "/ns/side"}, zktest.CodeNoAuth)
		r.Srv.ResetCounts()
		made, err := inner.CreateGroup(r.Ctx, s, []newNode{{Dir: "/q", Prefix: "n-", List: true, More: []string{"/q", "/none", "/side", "/empty"}}})
		r.Check(err)
		if more := made[0].More; len(more) != 4 || more[3] == nil || len(more[3]) != 0 || len(more[0]) != 5 || more[1] == nil || len(more[1]) != 0 || more[2] != nil {
			t.Errorf("more %v", more)
		}
		if got := r.Srv.Counts(); got[zktest.OpMulti] != 1 || got[zktest.OpGetChildren2] != 5 {
			t.Errorf("requests %v", got)
		}
		_, err = inner.CreateAndList(r.Ctx, s, newNode{Dir: "/q", Prefix: "n-", List: true, Other: "side"})
		testrig.WantErr(t, err, client.ErrInvalidPath)
		_, err = inner.CreateAndList(r.Ctx, s, newNode{Dir: "/q", Prefix: "n-", More: []string{"side"}})
		testrig.WantErr(t, err, client.ErrInvalidPath)
		wantOutcome(t, err, client.OutcomeNeverSent)
	})
}
