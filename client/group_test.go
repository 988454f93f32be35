package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// couple is a group in two directories, two nodes in the first.
func couple() []newNode {
	return []newNode{
		{Dir: "/p/x", Prefix: "lock-", Data: []byte("1"), List: true},
		{Dir: "/y", Prefix: "__READ__", Data: []byte("2"), Other: "/p"},
		{Dir: "/p/x", Prefix: "lease-", Data: []byte("3"), List: true},
	}
}

func TestCreateGroup(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"", "ns"} {
		bubble(t, func(r *rig) {
			at := ""
			var opts []client.Option
			if namespace != "" {
				at = "/" + namespace
				opts = append(opts, client.WithNamespace(namespace))
			}
			c := r.Connect("a", opts...)
			s := r.Session(c)
			r.create(at+"/p", "")
			nodes := couple()
			nodes[1].ACL = zk.WorldACL(zk.PermRead | zk.PermCreate | zk.PermDelete)
			made, err := inner.CreateGroup(r.Ctx, s, nodes)
			r.Check(err)
			for i, want := range []string{"/p/x/*lock-0000000000", "/y/*__READ__0000000000", "/p/x/*lease-0000000001"} {
				var dir, name, number string
				if _, err := fmt.Sscanf(made[i].Path[len(made[i].Path)-10:], "%s", &number); err != nil {
					r.Fatal(err)
				}
				dir, name = made[i].Path[:len(nodes[i].Dir)], made[i].Path[len(nodes[i].Dir)+1:]
				if got := dir + "/*" + name[40:]; got != want || name[:3] != "_c_" || name[17] != '8' {
					r.Errorf("node %d: %s, want %s", i, made[i].Path, want)
				}
				n, ok := r.Srv.Node(at + made[i].Path)
				if !ok || n.Stat.Czxid != made[i].Czxid || n.Stat.EphemeralOwner != s.ID() || string(n.Data) != fmt.Sprint(i+1) {
					r.Errorf("node %d: %+v, %v; entry %+v", i, n, ok, made[i])
				}
				perms := int32(zk.PermAll)
				if i == 1 {
					perms = zk.PermRead | zk.PermCreate | zk.PermDelete
				}
				if acl, _, err := c.GetACL(r.Ctx, made[i].Path); err != nil || len(acl) != 1 || acl[0].Perms != perms {
					r.Errorf("node %d: ACL %+v, %v", i, acl, err)
				}
				if nodes[i].List != (len(made[i].Children) == 2) {
					r.Errorf("node %d: children %v", i, made[i].Children)
				}
				if (i == 1) != (len(made[i].Other) == 1 && made[i].Other[0] == "x") {
					r.Errorf("node %d: beside it %v", i, made[i].Other)
				}
			}
			if made[0].Czxid != made[2].Czxid || made[0].Czxid == 0 {
				r.Errorf("not one transaction: %+v", made)
			}
			if got := r.Srv.Count(zktest.OpMulti); got != 2 && got != 3 { // a missing parent is found each
				r.Errorf("%d transactions", got)
			}
			before := r.Srv.Count(zktest.OpMulti)
			_, err = inner.CreateGroup(r.Ctx, s, nodes, client.CheckOp(made[0].Path, 0), client.DeleteOp(made[0].Path, 0))
			r.Check(err)
			if got := r.Srv.Count(zktest.OpMulti) - before; got != 1 {
				r.Errorf("%d transactions for a group whose parents exist", got)
			}
			if left := r.Srv.Children(at + "/p/x"); len(left) != 3 {
				r.Errorf("after a group that deletes one: %v", left)
			}
		})
	}
}

// Each node of a group is told as the answer is read, in the order of the nodes, with its
// path in its own namespace. Of a group that is refused no node is told.
func TestCreateGroupTellsMade(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		ns, err := c.Namespace("ns")
		r.Check(err)
		s := r.Session(c)
		r.create("/p/x", "")
		r.create("/ns/y", "")
		var paths []string
		var on []uint64
		nodes := couple()
		nodes[1].In = ns
		for i := range nodes {
			if i != 2 {
				nodes[i].Made = func(path string, connection uint64) { paths, on = append(paths, path), append(on, connection) }
			}
		}
		made, err := inner.CreateGroup(r.Ctx, s, nodes)
		r.Check(err)
		if want := []string{made[0].Path, made[1].Path}; !slices.Equal(paths, want) || !strings.HasPrefix(paths[1], "/y/") {
			r.Errorf("told %v, want %v", paths, want)
		}
		if want := made[0].Connection; want == 0 || !slices.Equal(on, []uint64{want, want}) {
			r.Errorf("on connections %v, want %d", on, want)
		}
		paths = nil
		_, err = inner.CreateGroup(r.Ctx, s, nodes, client.CheckOp("/gone", client.AnyVersion))
		testrig.WantErr(t, err, zk.ErrNoNode)
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti})
		made, err = inner.CreateGroup(r.Ctx, s, nodes)
		r.Check(err)
		if len(paths) != 0 || made[0].Connection != 0 {
			r.Errorf("of a refused group, and of one whose answer was lost: told %v", paths)
		}
	})
}

// A part that is refused is named by its place among the parts, and no node is
// made.
func TestCreateGroupRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		r.create("/p/x", "")
		r.create("/y", "")
		_, err := inner.CreateGroup(r.Ctx, s, couple(), client.CheckOp("/y", 0), client.DeleteOp("/gone", client.AnyVersion))
		var multi *client.MultiError
		if !errors.As(err, &multi) || multi.Index != 1 || multi.Op != "delete" || multi.Path != "/gone" {
			r.Errorf("error %v", err)
		}
		testrig.WantErr(t, err, zk.ErrNoNode)
		wantOutcome(t, err, client.OutcomeRefused)
		if _, err = inner.CreateGroup(r.Ctx, s, nil); err == nil {
			r.Error("an empty group was made")
		}
		_, err = inner.CreateGroup(r.Ctx, s, []newNode{{Dir: "x", Prefix: "n-"}})
		testrig.WantErr(t, err, client.ErrInvalidPath)
		_, err = inner.CreateGroup(r.Ctx, s, []newNode{{Dir: "/y", Prefix: "n-", Data: make([]byte, 600_000)}, {Dir: "/y", Prefix: "n-", Data: make([]byte, 600_000)}})
		testrig.WantErr(t, err, client.ErrTooLarge)
		r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, PathPrefix: "/y/"}, zktest.CodeNoAuth)
		_, err = inner.CreateGroup(r.Ctx, s, couple())
		testrig.WantErr(t, err, zk.ErrNoAuth)
		wantOutcome(t, err, client.OutcomeRefused)
		other := r.Connect("b")
		if _, err = inner.CreateGroup(r.Ctx, s, []newNode{{Dir: "/y", Prefix: "n-", In: other}}); err == nil {
			r.Error("a node in the namespace of another client was made")
		}
		wantOutcome(t, err, client.OutcomeNeverSent)
		r.noGroup()
	})
}

// The nodes of a group whose answer was lost have gone. Another client is blamed only if the
// session is known to live: its end deletes them, too.
func TestCreateGroupGone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"session lives": zk.ErrNoNode, "session ended": client.ErrSessionLost} {
		for _, part := range []bool{false, true} {
			bubble(t, func(r *rig) {
				r.create("/p/x", "")
				r.create("/y", "")
				s := r.Session(r.Connect("a"))
				r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti})
				sweep := func(dirs ...string) func(context.Context, zktest.Request) {
					return func(context.Context, zktest.Request) {
						for _, dir := range dirs {
							for _, node := range r.Srv.Children(dir) {
								r.Check(r.Srv.Delete(dir + "/" + node))
							}
						}
					}
				}
				if part { // one directory has been listed
					r.Srv.BeforeApply(zktest.Match{Op: zktest.OpSync, Path: "/y"}, sweep("/y"))
				} else {
					r.Srv.BeforeApply(zktest.Match{Op: zktest.OpExists}, sweep("/p/x", "/y"))
				}
				if errors.Is(want, client.ErrSessionLost) {
					r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Nth: 2}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(s.ID()) })
				}
				_, err := inner.CreateGroup(r.Ctx, s, couple())
				if !errors.Is(err, want) {
					t.Errorf("%s, a part %t: %v", name, part, err)
				}
				wantOutcome(t, err, client.OutcomeUnknown)
				r.noGroup()
			})
		}
	}
}

// A server that throttles, or that says that the session has moved, has not run the write that
// is to show whether the session lives. So the client asks again before it blames another client.
func TestCreateGroupGoneAsksAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []zktest.Code{zktest.CodeThrottledOp, zktest.CodeSessionMoved} {
		bubble(t, func(r *rig) {
			r.create("/p/x", "")
			r.create("/y", "")
			s := r.Session(r.Connect("a"))
			r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti})
			r.Srv.BeforeApply(zktest.Match{Op: zktest.OpSync, Path: "/y"}, func(context.Context, zktest.Request) {
				for _, node := range r.Srv.Children("/y") {
					r.Check(r.Srv.Delete("/y/" + node))
				}
			})
			r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, Nth: 2}, code)
			r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Nth: 3}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(s.ID()) })
			_, err := inner.CreateGroup(r.Ctx, s, couple())
			if !errors.Is(err, client.ErrSessionLost) {
				t.Errorf("%v: %v", code, err)
			}
			wantOutcome(t, err, client.OutcomeUnknown)
			r.noGroup()
		})
	}
}

// noGroup checks that no node is left once removals have had their time.
func (r *rig) noGroup() {
	r.Helper()
	time.Sleep(2 * testrig.SessionTimeout)
	for _, dir := range []string{"/p/x", "/y"} {
		if left := r.Srv.Children(dir); len(left) != 0 {
			r.Errorf("left in %s: %v", dir, left)
		}
	}
}

// A group is made once, whatever becomes of requests and answers, and the
// parts with it.
func TestCreateGroupInTrouble(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *rig){
		"calm":           func(*rig) {},
		"dropped before": func(r *rig) { r.Srv.DropBefore(zktest.Match{Op: zktest.OpMulti, Nth: 1}) },
		"answer lost":    func(r *rig) { r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Nth: 1}) },
		"cut after":      func(r *rig) { r.Srv.DropAfter(zktest.Match{Op: zktest.OpMulti, Nth: 1}) },
		"search lost, too": func(r *rig) {
			r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Nth: 1})
			r.Srv.LoseReply(zktest.Match{Op: zktest.OpGetChildren2, Nth: 2})
		},
		"lists lost": func(r *rig) { r.Srv.LoseReply(zktest.Match{Op: zktest.OpGetChildren2, Nth: 1}) },
		"owner check lost": func(r *rig) {
			r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Nth: 1})
			r.Srv.LoseReply(zktest.Match{Op: zktest.OpExists, Nth: 1})
		},
		"parent reaped": func(r *rig) {
			r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Nth: 1}, func(context.Context, zktest.Request) { _ = r.Srv.Delete("/y") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				s := r.Session(c)
				for _, path := range []string{"/p/x", "/y", "/counter"} {
					r.create(path, "")
				}
				trouble(r)
				made, err := inner.CreateGroup(r.Ctx, s, couple(), client.SetOp("/counter", []byte("x"), client.AnyVersion))
				r.Check(err)
				if x, y := r.Srv.Children("/p/x"), r.Srv.Children("/y"); len(x) != 2 || len(y) != 1 {
					r.Errorf("nodes %v, %v", x, y)
				}
				if n, _ := r.Srv.Node("/counter"); n.Stat.Version != 1 {
					r.Errorf("the part was applied %d times", n.Stat.Version)
				}
				for i, e := range made {
					n, ok := r.Srv.Node(e.Path)
					if !ok || n.Stat.Czxid != e.Czxid || string(n.Data) != fmt.Sprint(i+1) {
						r.Errorf("entry %d %+v is %+v", i, e, n)
					}
				}
				r.Check(c.CloseContext(r.Ctx))
				wantQuiet(r.T)
			})
		})
	}
}

// A group whose caller gave up leaves nothing, at whatever moment.
func TestCreateGroupAbandoned(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(r *rig) (undo func()){
		"calm":          func(*rig) func() { return func() {} },
		"frozen":        func(r *rig) func() { r.Srv.Client("a").Freeze(); return r.Srv.Client("a").Thaw },
		"reply stalled": func(r *rig) func() { r.Srv.StallReply(zktest.Match{Op: zktest.OpMulti}); return r.Srv.Client("a").Heal },
		"reply lost": func(r *rig) func() {
			r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Nth: 1})
			r.Srv.StallReply(zktest.Match{Op: zktest.OpGetChildren2})
			return func() { r.Srv.ClearRules(); r.Srv.Client("a").Heal() }
		},
		"ignored": func(r *rig) func() { r.Srv.Ignore(zktest.Match{Op: zktest.OpMulti}); return func() {} },
	} {
		for step := range 12 {
			t.Run(fmt.Sprint(name, " ", step), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.Connect("a")
					s := r.Session(c)
					r.create("/p/x", "")
					r.create("/y", "")
					undo := fault(r)
					limit := time.Duration(step) * 211 * time.Microsecond
					start := time.Now()
					made, err := inner.CreateGroup(r.Within(limit), s, couple())
					if took := time.Since(start); took > limit {
						r.Errorf("limit %v: took %v", limit, took)
					}
					if err == nil {
						for _, e := range made {
							r.Check(s.Delete(r.Ctx, e.Path, client.AnyVersion))
						}
					} else {
						testrig.WantErr(t, err, context.DeadlineExceeded)
					}
					time.Sleep(time.Second)
					undo()
					r.noGroup()
					r.Check(c.CloseContext(r.Ctx))
					wantQuiet(r.T)
				})
			})
		}
	}
}

// Another client deletes a part of a group whose answer was lost: the rest is
// removed, and the caller is told.
func TestCreateGroupTorn(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		r.create("/p/x", "")
		r.create("/y", "")
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Nth: 1})
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpSync, Nth: 1}, func(context.Context, zktest.Request) {
			for _, name := range r.Srv.Children("/y") {
				_ = r.Srv.Delete("/y/" + name)
			}
		})
		_, err := inner.CreateGroup(r.Ctx, s, couple())
		testrig.WantErr(t, err, zk.ErrNoNode)
		wantOutcome(t, err, client.OutcomeUnknown)
		r.noGroup()
	})
}

// A group is of one session.
func TestCreateGroupSessionLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		r.create("/p/x", "")
		r.create("/y", "")
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Nth: 1}, func(_ context.Context, req zktest.Request) { r.Srv.ExpireSession(req.Session) })
		_, err := inner.CreateGroup(r.Ctx, s, couple())
		testrig.WantErr(t, err, client.ErrSessionLost)
		r.noGroup()
	})
}
