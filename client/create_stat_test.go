package client_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// wantStat compares a stat with that of the node on the server.
func (r *rig) wantStat(path string, got *zk.Stat) {
	r.Helper()
	n, there := r.Srv.Node(path)
	if got == nil || !there || got.Czxid != n.Stat.Czxid || got.Mzxid != n.Stat.Mzxid || got.Version != n.Stat.Version ||
		got.EphemeralOwner != n.Stat.EphemeralOwner || got.DataLength != n.Stat.DataLength || got.Ctime == 0 {
		r.Errorf("stat of %s: %+v, the server has %+v (%v)", path, got, n.Stat, there)
	}
}

func TestCreateStat(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		r.create("/ns/d", "")
		for name, opts := range map[string][]client.CreateOption{
			"plain":      nil,
			"ephemeral":  {client.Ephemeral()},
			"sequential": {client.Sequential()},
			"container":  {client.Container()},
			"ttl":        {client.TTL(time.Hour)},
			"protected":  {client.Protected(), client.Ephemeral(), client.Sequential()},
			"parents/x":  {client.WithParents()},
		} {
			path, stat, err := c.CreateStat(r.Ctx, "/d/"+name, []byte("four"), opts...)
			r.Check(err)
			r.wantStat("/ns"+path, stat)
		}
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.LoseReply, r.Srv.DropBefore} {
			lost := fault(zktest.Match{Op: zktest.OpCreate, PathPrefix: "/ns/d/_c_"})
			path, stat, err := c.CreateStat(r.Ctx, "/d/found", nil, client.Protected())
			r.Check(err)
			r.wantStat("/ns"+path, stat)
			if lost.Fired() != 1 {
				t.Error("nothing was lost")
			}
		}
		path, stat, err := c.CreateStat(r.Ctx, "/d/plain", nil)
		testrig.WantErr(t, err, client.ErrNodeExists)
		if path != "" || stat != nil {
			t.Errorf("%q, %+v", path, stat)
		}
	}, zktest.WithExtendedTypes())
}

// The stat is that of the node that was made, also if the node is gone before the
// look, or the look is lost. In both cases the create has succeeded.
func TestCreateStatWithoutALook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		look := zktest.Match{Op: zktest.OpExists, PathPrefix: "/n"}
		for name, fault := range map[string]func(path string){
			"cut":     func(string) { r.before(look, func() { time.Sleep(time.Second); r.Srv.CutAll() }) },
			"refused": func(string) { r.Srv.Fail(look, zktest.CodeNoAuth) },
			"deleted": func(path string) { r.before(look, func() { r.Check(r.Srv.Delete(path)) }) },
			"another": func(path string) { r.before(look, func() { r.Check(r.Srv.Delete(path)); r.create(path, "another") }) },
		} {
			for _, opts := range [][]client.CreateOption{{client.Ephemeral()}, {client.Ephemeral(), client.Sequential()}} {
				asked, made := "/n-"+name, "/n-"+name
				if len(opts) > 1 {
					made += "0000000000"
					r.Check(r.Srv.SetCounter("/", 0))
				}
				fault(made)
				var czxid int64
				r.Srv.BeforeReply(zktest.Match{Op: zktest.OpCreate, Path: asked}, func(context.Context, zktest.Request) {
					n, _ := r.Srv.Node(made)
					czxid = n.Stat.Czxid
				})
				path, stat, err := c.CreateStat(r.Ctx, asked, []byte("four"), opts...)
				r.Check(err)
				if path != made || stat.Czxid == 0 || stat.Mzxid != stat.Czxid || stat.EphemeralOwner != r.Session(c).ID() ||
					stat.DataLength != 4 || stat.Version != 0 || stat.Ctime != 0 {
					t.Errorf("%s: %s, %+v (%d)", name, path, stat, czxid)
				}
				r.Srv.ClearRules()
			}
		}
	})
}

// before runs f once before a server applies what matches.
func (r *rig) before(m zktest.Match, f func()) *zktest.Rule {
	return r.Srv.BeforeApply(m, func(context.Context, zktest.Request) { f() })
}

func TestCreateOrSet(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		want := func(data string, version int32, opts ...client.CreateOption) {
			t.Helper()
			stat, err := c.CreateOrSet(r.Ctx, "/d/n", []byte(data), opts...)
			r.Check(err)
			r.wantStat("/ns/d/n", stat)
			if n, _ := r.Srv.Node("/ns/d/n"); string(n.Data) != data || stat.Version != version {
				t.Errorf("%q, version %d; want %q, %d", n.Data, stat.Version, data, version)
			}
		}
		_, err := c.CreateOrSet(r.Ctx, "/d/n", nil)
		testrig.WantErr(t, err, client.ErrNoNode)
		wantOutcome(t, err, client.OutcomeRefused)
		wantErrText(t, err, "client.WithParents", "unknown")
		want("one", 0, client.WithPersistentParents())
		want("two", 1)
		want("three", 2, client.ACL(zk.WorldACL(zk.PermRead)...)) // of a node that is made
		want("four", 3)
		for name, opt := range map[string]client.CreateOption{
			"Sequential": client.Sequential(), "Protected": client.Protected(),
		} {
			_, err := c.CreateOrSet(r.Ctx, "/d/x", nil, opt)
			wantErrText(t, err, name, "flags")
			wantOutcome(t, err, client.OutcomeNeverSent)
		}
	})
}

// Clients that delete the node, or make it, between two requests of one call do
// not make it fail, however often.
func TestCreateOrSetRaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/n", "theirs")
		deleted := r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpSetData, Times: 5}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete("/n"))
		})
		made := r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpCreate, Times: 5}, func(context.Context, zktest.Request) {
			r.create("/n", "theirs")
		})
		stat, err := c.CreateOrSet(r.Ctx, "/n", []byte("mine"))
		r.Check(err)
		r.wantStat("/n", stat)
		if n, _ := r.Srv.Node("/n"); string(n.Data) != "mine" || made.Fired() != 5 || deleted.Fired() != 5 {
			t.Errorf("%q; made %d times, deleted %d times", n.Data, made.Fired(), deleted.Fired())
		}
		// A node that was made, and deleted before it was looked at, stays deleted.
		r.Check(r.Srv.Delete("/n"))
		r.before(zktest.Match{Client: "a", Op: zktest.OpExists}, func() { r.Check(r.Srv.Delete("/n")) })
		stat, err = c.CreateOrSet(r.Ctx, "/n", []byte("mine"))
		r.Check(err)
		if _, there := r.Srv.Node("/n"); there || stat.Czxid == 0 {
			t.Errorf("there: %v, %+v", there, stat)
		}
	})
}

// An update is one request. A node that is made costs one request more than its create.
func TestCreateOrSetRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/d", "")
		want := func(ops ...zktest.Op) {
			t.Helper()
			begun := len(r.Srv.Log())
			_, err := c.CreateOrSet(r.Ctx, "/d/n", []byte("x"))
			r.Check(err)
			var got []zktest.Op
			for _, req := range r.Srv.Log()[begun:] {
				if req.Path == "/d/n" {
					got = append(got, req.Op)
				}
			}
			if !slices.Equal(got, ops) {
				t.Errorf("requests %v, want %v", got, ops)
			}
		}
		want(zktest.OpSetData, zktest.OpCreate, zktest.OpExists)
		want(zktest.OpSetData)
		want(zktest.OpSetData)
	})
}

func TestCreateOrSetThroughFaults(t *testing.T) {
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
				c := r.Connect("a")
				for i, op := range []zktest.Op{zktest.OpCreate, zktest.OpSetData, zktest.OpCreateContainer} {
					path, data := fmt.Sprintf("/%d/n", i), fmt.Sprint("data", i)
					if op != zktest.OpCreateContainer {
						r.create(fmt.Sprint("/", i), "")
					}
					if op == zktest.OpSetData {
						r.create(path, "")
					}
					rule := fault(r.Srv, zktest.Match{Op: op})
					_, err := c.CreateOrSet(r.Ctx, path, []byte(data), client.WithParents())
					r.Check(err)
					if n, _ := r.Srv.Node(path); string(n.Data) != data || rule.Fired() != 1 {
						t.Errorf("%v: %q, fault %d times", op, n.Data, rule.Fired())
					}
				}
				r.Srv.Freeze()
				_, err := c.CreateOrSet(r.Within(time.Second), "/0/n", nil)
				testrig.WantErr(t, err, context.DeadlineExceeded)
				wantOutcome(t, err, client.OutcomeUnknown)
				r.Srv.Thaw()
			})
		})
	}
}

// Many writers of one node, and one client that deletes it: no call fails.
func TestCreateOrSetCrowd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 8 {
			c := r.Connect(fmt.Sprint("c", i))
			wg.Go(func() {
				for range 50 {
					if i == 0 {
						if err := c.DeleteAll(r.Ctx, "/dir"); err != nil {
							r.Errorf("DeleteAll = %v", err)
						}
					} else if _, err := c.CreateOrSet(r.Ctx, "/dir/n", []byte{byte(i)}, client.WithPersistentParents()); err != nil {
						r.Errorf("CreateOrSet = %v", err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// ClickHouse Keeper does not know create2, and ends the session for it: none of
// these asks for it.
func TestStatsOnKeeper(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		for _, opts := range [][]client.CreateOption{
			{client.WithParents()}, {client.Sequential()}, {client.WithPersistentParents(), client.Protected(), client.Ephemeral()},
		} {
			path, stat, err := c.CreateStat(r.Ctx, "/d/n", nil, opts...)
			r.Check(err)
			r.wantStat(path, stat)
		}
		for range 2 {
			stat, err := c.CreateOrSet(r.Ctx, "/e/n", []byte("x"), client.WithParents())
			r.Check(err)
			r.wantStat("/e/n", stat)
		}
		_, err := c.CreateOrSet(r.Ctx, "/f", nil, client.Container())
		testrig.WantErr(t, err, client.ErrUnsupported)
		wantOutcome(t, err, client.OutcomeNeverSent)
		if client.SafeToRetry(err) {
			t.Errorf("%v: a repeat cannot help", err)
		}
		r.Check(c.DeleteAll(r.Ctx, "/d"))
		r.Check(c.DeleteAll(r.Ctx, "/e"))
		if err := s.Err(); err != nil || len(r.named("/e")) != 0 {
			t.Errorf("the session: %v; left %v", err, r.nodes())
		}
	}, zktest.WithProfile(zktest.ClickHouseKeeper))
}
