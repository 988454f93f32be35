package client_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// wantChildren reads the node by ChildrenData, and compares that with Children and Get.
func (r *rig) wantChildren(c *client.Client, path string) (all []client.ChildData) {
	r.Helper()
	all, now, err := c.ChildrenData(r.Ctx, path)
	r.Check(err)
	names, stat, err := c.Children(r.Ctx, path)
	r.Check(err)
	if *now != *stat || len(names) != len(all) || all == nil {
		r.Fatalf("%d children, %+v; want %d, %+v", len(all), now, len(names), stat)
	}
	slices.Sort(names)
	slices.SortFunc(all, func(a, b client.ChildData) int { return cmp.Compare(a.Name, b.Name) })
	for i, child := range all {
		data, stat, err := c.Get(r.Ctx, path+"/"+names[i])
		r.Check(err)
		if child.Name != names[i] || !bytes.Equal(child.Data, data) || child.Stat != *stat {
			r.Errorf("%s: %q, %+v; want %s, %q, %+v", child.Name, child.Data, child.Stat, names[i], data, stat)
		}
	}
	return all
}

func TestChildrenData(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]zktest.Option{
		"3.9": zktest.WithVersion(zktest.ZooKeeper39), "3.8": zktest.WithVersion(zktest.ZooKeeper380),
		"3.5": zktest.WithVersion(zktest.ZooKeeper35), "Keeper": zktest.WithProfile(zktest.ClickHouseKeeper),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a", client.WithNamespace("ns"))
				s := r.Session(c)
				r.create("/ns/empty", "")
				for i := range 300 {
					r.create(fmt.Sprintf("/ns/d/%d", i), fmt.Sprint("data", i))
				}
				r.create("/ns/d/7/below", "not this")
				r.wantChildren(c, "/empty")
				r.wantChildren(c, "/d")
				before := r.Srv.Counts()
				if all, _, err := s.ChildrenData(r.Ctx, "/d"); err != nil || len(all) != 300 {
					t.Errorf("in the session: %d, %v", len(all), err)
				}
				after := r.Srv.Counts()
				reads := after[zktest.OpMultiRead] - before[zktest.OpMultiRead]
				gets := after[zktest.OpGetData] - before[zktest.OpGetData]
				if many := name[0] == '3' && name != "3.5"; many && (reads > 5 || gets > 0) || !many && (reads > 0 || gets != 300) {
					t.Errorf("%d reads of many nodes, %d gets", reads, gets)
				}
				_, _, err := c.ChildrenData(r.Ctx, "/nothing")
				testrig.WantErr(t, err, client.ErrNoNode)
				_, _, err = c.ChildrenData(r.Ctx, "d")
				testrig.WantErr(t, err, client.ErrInvalidPath)
				r.Check(s.Err())
			}, opt)
		})
	}
}

// A child that is deleted behind the list is left out, and one that is made then is missing.
func TestChildrenDataBetween(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, name := range []string{"a", "b", "c"} {
			r.create("/d/"+name, name)
		}
		r.before(zktest.Match{Op: zktest.OpMultiRead}, func() {
			r.Check(r.Srv.Delete("/d/b"))
			r.create("/d/new", "")
			r.Check(r.Srv.SetData("/d/c", []byte("later")))
		})
		all, stat, err := c.ChildrenData(r.Ctx, "/d")
		r.Check(err)
		got := map[string]string{}
		for _, child := range all {
			got[child.Name] = string(child.Data)
		}
		if len(got) != 2 || got["a"] != "a" || got["c"] != "later" || stat.NumChildren != 3 {
			t.Errorf("%v, %+v", got, stat)
		}
	})
}

// Large children make batches small; one that is too large is named.
func TestChildrenDataLarge(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]zktest.Option{
		"3.9": zktest.WithVersion(zktest.ZooKeeper39), "3.5": zktest.WithVersion(zktest.ZooKeeper35),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				for i := range 40 {
					r.Check(r.Srv.Create(fmt.Sprint("/d/", i), make([]byte, 100<<10)))
				}
				c := r.Connect("a")
				r.wantChildren(c, "/d")
				if n := r.Srv.Counts()[zktest.OpMultiRead]; name == "3.9" && (n < 3 || n > 8) {
					t.Errorf("%d requests for 16 and 24 nodes of 100 KiB", n)
				}
				narrow := r.Connect("b", client.WithMaxReply(150<<10))
				r.wantChildren(narrow, "/d")
				r.Check(r.Srv.Create("/d/large", make([]byte, 200<<10)))
				_, _, err := narrow.ChildrenData(r.Ctx, "/d")
				testrig.WantErr(t, err, client.ErrReplyTooLarge)
				wantErrText(t, err, "children data /d: /d/large: ", "other")
			}, opt)
		})
	}
}

func TestChildrenDataForbidden(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]zktest.Option{
		"3.9": zktest.WithVersion(zktest.ZooKeeper39), "3.5": zktest.WithVersion(zktest.ZooKeeper35),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.create("/d/a", "")
				owner, c := r.Connect("o", client.WithAuth("digest", "u:p")), r.Connect("c")
				_, err := owner.Create(r.Ctx, "/d/secret", nil)
				r.Check(err)
				_, _, err = c.ChildrenData(r.Ctx, "/d")
				testrig.WantErr(t, err, client.ErrNoAuth)
				wantErrText(t, err, "/d/secret: ", "unknown")
				wantOutcome(t, err, client.OutcomeRefused)
				r.wantChildren(owner, "/d")
			}, opt)
		})
	}
}

// A lost connection, or a lost session, begins the call again; the end of a context ends it.
func TestChildrenDataThroughFaults(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]zktest.Op{"list": zktest.OpGetChildren2, "read": zktest.OpMultiRead} {
		for fault, disturb := range map[string]func(*zktest.Server, zktest.Match) *zktest.Rule{
			"reply lost":     (*zktest.Server).LoseReply,
			"dropped before": (*zktest.Server).DropBefore,
			"throttled":      func(s *zktest.Server, m zktest.Match) *zktest.Rule { return s.Fail(m, zktest.CodeThrottledOp) },
			"session over": func(s *zktest.Server, m zktest.Match) *zktest.Rule {
				return s.BeforeApply(m, func(context.Context, zktest.Request) { s.Client("a").ExpireSession() })
			},
		} {
			t.Run(name+" "+fault, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					for i := range 40 {
						r.create(fmt.Sprint("/d/", i), "")
					}
					c := r.Connect("a")
					rule := disturb(r.Srv, zktest.Match{Op: op, Client: "a"})
					r.wantChildren(c, "/d")
					if rule.Fired() != 1 {
						t.Errorf("the fault came %d times", rule.Fired())
					}
					r.Srv.StallReply(zktest.Match{Op: op, Client: "a"})
					_, _, err := c.ChildrenData(r.Within(time.Second), "/d")
					testrig.WantErr(t, err, context.DeadlineExceeded)
					wantOutcome(t, err, client.OutcomeUnchanged)
				})
			})
		}
	}
}

// The ephemeral node of an upsert is this session's, or nothing has changed.
func TestCreateOrSetEphemeral(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		want := func(data string, version int32) {
			t.Helper()
			stat, err := a.CreateOrSet(r.Ctx, "/n", []byte(data), client.Ephemeral())
			r.Check(err)
			r.wantStat("/n", stat)
			if n, _ := r.Srv.Node("/n"); string(n.Data) != data || n.Stat.Version != version || stat.EphemeralOwner != r.SessionID(a) {
				t.Errorf("%q, %+v", n.Data, stat)
			}
		}
		want("one", 0)
		want("two", 1)
		want("three", 2)

		_, err := b.CreateOrSet(r.Ctx, "/n", []byte("theirs"), client.Ephemeral())
		testrig.WantErr(t, err, client.ErrNodeExists)
		wantOutcome(t, err, client.OutcomeRefused)
		wantErrText(t, err, fmt.Sprintf("is an ephemeral node of session 0x%x: wait until that session ends", r.SessionID(a)), "unknown")
		r.create("/stays", "x")
		_, err = a.CreateOrSet(r.Ctx, "/stays", nil, client.Ephemeral())
		testrig.WantErr(t, err, client.ErrNodeExists)
		wantErrText(t, err, "is not ephemeral: delete it first, or leave out client.Ephemeral", "session")
		for path, data := range map[string]string{"/n": "three", "/stays": "x"} {
			if n, _ := r.Srv.Node(path); string(n.Data) != data {
				t.Errorf("%s has %q", path, n.Data)
			}
		}

		// After a lost session the node is made in the next one.
		r.Srv.Client("a").ExpireSession()
		time.Sleep(time.Minute)
		want("four", 0)
		_, err = a.CreateOrSet(r.Ctx, "/no/parent", nil, client.Ephemeral())
		testrig.WantErr(t, err, client.ErrNoNode)
		_, err = a.CreateOrSet(r.Ctx, "/dir/n", nil, client.Ephemeral(), client.WithParents())
		r.Check(err)
	})
}

// Other clients come between the look and the write.
func TestCreateOrSetEphemeralRaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		mine := zktest.Match{Client: "a", Op: zktest.OpSetData}
		set := func() error {
			_, err := a.CreateOrSet(r.Ctx, "/n", []byte("mine"), client.Ephemeral())
			return err
		}
		r.before(zktest.Match{Client: "a", Op: zktest.OpCreate}, func() { r.create("/n", "theirs") })
		testrig.WantErr(t, set(), client.ErrNodeExists) // made between look and create, and not ephemeral
		r.Check(r.Srv.Delete("/n"))
		r.Check(set())
		r.before(mine, func() { r.Check(r.Srv.Delete("/n")) })
		r.Check(set()) // deleted in between
		r.before(mine, func() { r.Check(r.Srv.SetData("/n", []byte("x"))) })
		r.Check(set()) // changed in between
		if n, _ := r.Srv.Node("/n"); string(n.Data) != "mine" || n.Stat.EphemeralOwner != r.SessionID(a) {
			t.Errorf("%q, %+v", n.Data, n.Stat)
		}
		// Replaced by another session, with the same version: that is seen too late, and said.
		r.Check(a.Delete(r.Ctx, "/n", client.AnyVersion))
		r.Check(set())
		r.before(mine, func() {
			r.Check(r.Srv.Delete("/n"))
			_, err := b.Create(r.Ctx, "/n", []byte("theirs"), client.Ephemeral())
			r.Check(err)
		})
		err := set()
		testrig.WantErr(t, err, client.ErrNodeExists)
		wantOutcome(t, err, client.OutcomeUnknown)
		if n, _ := r.Srv.Node("/n"); n.Stat.EphemeralOwner != r.SessionID(b) {
			t.Errorf("%+v", n.Stat)
		}
	})
}

// An answer that is lost makes the call look again; the node of a lost session is another's.
func TestCreateOrSetEphemeralThroughFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*zktest.Server, zktest.Match) *zktest.Rule{
		"reply lost": (*zktest.Server).LoseReply, "dropped before": (*zktest.Server).DropBefore, "silence": (*zktest.Server).StallReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				for _, op := range []zktest.Op{zktest.OpExists, zktest.OpCreate, zktest.OpSetData} {
					data := fmt.Sprint(op)
					if op == zktest.OpSetData {
						_, err := c.CreateOrSet(r.Ctx, "/SetData", nil, client.Ephemeral())
						r.Check(err)
					}
					path := map[zktest.Op]string{zktest.OpExists: "/Exists", zktest.OpCreate: "/Create", zktest.OpSetData: "/SetData"}[op]
					rule := fault(r.Srv, zktest.Match{Op: op, Path: path})
					stat, err := c.CreateOrSet(r.Ctx, path, []byte(data), client.Ephemeral())
					r.Check(err)
					if n, _ := r.Srv.Node(path); string(n.Data) != data || rule.Fired() != 1 || stat.EphemeralOwner != r.SessionID(c) {
						t.Errorf("%v: %q, fault %d times, %+v", op, n.Data, rule.Fired(), stat)
					}
				}
				// Nothing was written while the look has no answer.
				r.Srv.StallReply(zktest.Match{Op: zktest.OpExists, Path: "/x", Times: zktest.Always})
				_, err := c.CreateOrSet(r.Within(time.Second), "/x", nil, client.Ephemeral())
				testrig.WantErr(t, err, context.DeadlineExceeded)
				wantOutcome(t, err, client.OutcomeUnchanged)
			})
		})
	}
}
