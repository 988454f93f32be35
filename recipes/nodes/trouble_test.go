package nodes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// modes are all modes, with the options that they are tried with.
func modes() (all []struct {
	mode nodes.Mode
	opts []nodes.Option
},
) {
	for mode := nodes.Ephemeral; mode <= nodes.Container; mode++ {
		for _, protected := range []bool{false, true} {
			var opts []nodes.Option
			if protected {
				opts = append(opts, nodes.WithProtection())
			} else if mode == nodes.PersistentSequential {
				continue
			}
			all = append(all, struct {
				mode nodes.Mode
				opts []nodes.Option
			}{mode, opts})
		}
	}
	return all
}

// Any request or its answer is lost, or the session ends at that moment. The node
// stands, once, and nothing is left (CURATOR-297, etcd 2128, "a second node after
// a lost answer").
func TestAnswerLostAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			expire := func(m zktest.Match, when func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule) *zktest.Rule {
				return when(m, func(_ context.Context, q zktest.Request) { r.Srv.ExpireSession(q.Session) })
			}
			faults := map[string]func(zktest.Match) *zktest.Rule{
				"reply":         r.Srv.LoseReply,
				"request":       r.Srv.DropBefore,
				"expire before": func(m zktest.Match) *zktest.Rule { return expire(m, r.Srv.BeforeApply) },
				"expire after":  func(m zktest.Match) *zktest.Rule { return expire(m, r.Srv.BeforeReply) },
			}
			for what, fault := range faults {
				for step := 1; step <= 8; step++ {
					rule := fault(zktest.Match{Client: "a", Nth: step, PathPrefix: "/workers"})
					n := r.node(c, tt.mode, tt.opts...)
					r.Check(n.Set(r.Within(time.Minute), []byte("two")))
					time.Sleep(2 * testrig.SessionTimeout)
					r.wantOurs(c, n, "two")
					rule.Remove()
					rule = fault(zktest.Match{Client: "a", Nth: step, PathPrefix: "/workers"})
					err := n.CloseContext(r.Within(time.Minute))
					rule.Remove()
					if err != nil {
						r.Errorf("%v, %s %d: Close: %v", tt.mode, what, step, err)
					}
					r.closed(n)
				}
			}
		})
	}
}

// The answer to the replacement of a ghost is lost, or the ghost goes just before it:
// the node stands once.
func TestReplacementInDoubt(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]nodes.Option{nil, {nodes.WithProtection()}} {
		for what := range 4 {
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				n := r.node(c, nodes.Ephemeral, opts...)
				old := r.SessionID(c)
				m := zktest.Match{Op: zktest.OpMulti, Client: "a", PathPrefix: "/workers"}
				rule := []func() *zktest.Rule{
					func() *zktest.Rule { return r.Srv.LoseReply(m) },
					func() *zktest.Rule { return r.Srv.DropBefore(m) },
					func() *zktest.Rule {
						return r.Srv.BeforeApply(m, func(context.Context, zktest.Request) { r.Srv.ExpireSession(old) })
					},
					func() *zktest.Rule { // another client has written into the ghost
						return r.Srv.BeforeApply(m, func(context.Context, zktest.Request) {
							r.Check(r.Srv.SetData("/workers/"+r.Srv.Children("/workers")[0], []byte("late")))
						})
					},
				}[what]()
				r.Srv.Client("a").PartitionReplies()
				s, err := c.Session(r.Ctx)
				r.Check(err)
				<-s.Context().Done()
				r.Srv.Client("a").Heal()
				time.Sleep(testrig.SessionTimeout)
				r.wantOurs(c, n, "one")
				if rule.Fired() != 1 {
					r.Errorf("%d: nothing was tested", what)
				}
				r.closed(n)
			})
		}
	}
}

// No right to create: the state says so, and the node comes with the right.
func TestNoRight(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		rule := r.Srv.Fail(zktest.Match{Op: zktest.OpCreate, Path: nodePath, Times: zktest.Always}, zktest.CodeNoAuth)
		n := r.started(c, nodes.Ephemeral)
		time.Sleep(100 * time.Second)
		if n.Status().State != nodes.Refused || rule.Fired() > 200 {
			r.Errorf("%+v after %d tries", n.Status(), rule.Fired())
		}
		testrig.WantErr(t, n.Wait(r.Within(time.Second)), client.ErrNoAuth, context.DeadlineExceeded)
		rule.Remove()
		r.Check(n.Wait(r.Within(3 * time.Second)))
		r.wantOurs(c, n, "one")
		// No right to set: the error says so, and the node stays ours.
		rule = r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, Path: nodePath, Times: zktest.Always}, zktest.CodeNoAuth)
		testrig.WantErr(t, n.Set(r.Within(5*time.Second), []byte("two")), client.ErrNoAuth)
		if n.Status().State != nodes.Ours {
			r.Errorf("%+v", n.Status())
		}
		rule.Remove()
		r.Check(n.Wait(r.Within(3 * time.Second)))
		r.wantOurs(c, n, "two")
		// No right to delete: Close says so.
		r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, Path: nodePath}, zktest.CodeNoAuth)
		testrig.WantErr(t, n.CloseContext(r.Ctx), client.ErrNoAuth)
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// The parent is swept, or deleted with the node: both are made again. Without parents
// the state says so (TestPersistentNode.testRecreationWithParentCreationOff).
func TestParentGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpCreate, Path: nodePath, Client: "a"}, func(context.Context, zktest.Request) { r.Srv.Sweep() })
		r.Check(r.Srv.Delete(nodePath))
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n, "one")
		r.Check(r.Srv.Delete(nodePath))
		r.Check(r.Srv.Delete("/workers"))
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n, "one")
		r.closed(n)

		r.Check(r.Srv.Delete("/workers"))
		n = r.started(c, nodes.Ephemeral, nodes.WithoutParents())
		time.Sleep(time.Second)
		testrig.WantErr(t, n.Status().Err, client.ErrNoNode)
		if n.Status().State != nodes.Refused {
			r.Errorf("%+v", n.Status())
		}
		r.Check(r.Srv.Create("/workers", nil))
		r.Check(n.Wait(r.Within(3 * time.Second)))
		r.closed(n)
	})
}

// No server at the start: the node stands once there is one
// (TestPersistentEphemeralNode.testNoServerAtStart, testListenersReconnectedIsFast).
func TestNoServerAtStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Stop()
		c := r.Connect("a", client.WithLazyConnect())
		n := r.started(c, nodes.Ephemeral)
		time.Sleep(time.Minute)
		r.Srv.Resume()
		r.Check(n.Wait(r.Within(testrig.SessionTimeout)))
		r.wantOurs(c, n, "one")
		r.closed(n)
	})
}

// Close is bounded while no server answers, and at every moment of the first create;
// nothing is left.
func TestCloseBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.Srv.Client("a").Partition()
		start := time.Now()
		if err := n.Close(); err == nil || time.Since(start) > 5*time.Second {
			r.Errorf("Close took %v: %v", time.Since(start), err)
		}
		testrig.WantErr(t, n.CloseContext(r.Within(0)), context.DeadlineExceeded)
		r.Srv.Client("a").Heal()
		time.Sleep(3 * testrig.SessionTimeout)
		testrig.WantNoGoroutine(t, ourFrames)
	})
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			for step := range 40 {
				n := r.started(c, tt.mode, tt.opts...)
				time.Sleep(time.Duration(step) * 150 * time.Microsecond)
				r.closed(n)
			}
		})
	}
}

// Below a namespace all paths are the namespace's.
func TestNamespace(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("app"))
		for _, opts := range [][]nodes.Option{nil, {nodes.WithProtection()}} {
			n := r.node(c, nodes.EphemeralSequential, opts...)
			for range 2 {
				if all := r.Srv.Children("/app/workers"); len(all) != 1 || n.Status().Path != "/workers/"+all[0] {
					r.Errorf("%v, %+v", all, n.Status())
				}
				r.Srv.Client("a").PartitionReplies()
				s, err := c.Session(r.Ctx)
				r.Check(err)
				<-s.Context().Done()
				r.Srv.Client("a").Heal()
				time.Sleep(testrig.SessionTimeout)
			}
			r.Check(n.CloseContext(r.Ctx))
			r.WantNoChild("/app/workers")
		}
	})
}

// The client is closed first: the goroutine ends, a persistent node stays
// (TestPersistentNode.testBasic).
func TestClientClosed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.Persistent} {
			c := r.Connect("a")
			n := r.node(c, mode)
			r.Check(c.CloseContext(r.Ctx))
			synctest.Wait()
			testrig.WantNoGoroutine(t, ourFrames)
			testrig.WantErr(t, n.Wait(r.Ctx), client.ErrClosed)
			_, there := r.Srv.Node(nodePath)
			if err := n.Close(); there != (mode == nodes.Persistent) || (err != nil) != there || err != nil && !errors.Is(err, client.ErrClosed) {
				r.Errorf("%v: there: %v, Close: %v", mode, there, err)
			}
		}
	})
}
