package nodes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
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
			c := r.connect("a")
			expire := func(m zktest.Match, when func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule) *zktest.Rule {
				return when(m, func(_ context.Context, q zktest.Request) { r.srv.ExpireSession(q.Session) })
			}
			faults := map[string]func(zktest.Match) *zktest.Rule{
				"reply":         r.srv.LoseReply,
				"request":       r.srv.DropBefore,
				"expire before": func(m zktest.Match) *zktest.Rule { return expire(m, r.srv.BeforeApply) },
				"expire after":  func(m zktest.Match) *zktest.Rule { return expire(m, r.srv.BeforeReply) },
			}
			for what, fault := range faults {
				for step := 1; step <= 8; step++ {
					rule := fault(zktest.Match{Client: "a", Nth: step, PathPrefix: "/workers"})
					n := r.node(c, tt.mode, tt.opts...)
					r.check(n.Set(r.within(time.Minute), []byte("two")))
					time.Sleep(2 * sessionTimeout)
					r.wantOurs(c, n, "two")
					rule.Remove()
					rule = fault(zktest.Match{Client: "a", Nth: step, PathPrefix: "/workers"})
					err := n.CloseContext(r.within(time.Minute))
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
				c := r.connect("a")
				n := r.node(c, nodes.Ephemeral, opts...)
				old := r.session(c)
				m := zktest.Match{Op: zktest.OpMulti, Client: "a", PathPrefix: "/workers"}
				rule := []func() *zktest.Rule{
					func() *zktest.Rule { return r.srv.LoseReply(m) },
					func() *zktest.Rule { return r.srv.DropBefore(m) },
					func() *zktest.Rule {
						return r.srv.BeforeApply(m, func(context.Context, zktest.Request) { r.srv.ExpireSession(old) })
					},
					func() *zktest.Rule { // another client has written into the ghost
						return r.srv.BeforeApply(m, func(context.Context, zktest.Request) {
							r.check(r.srv.SetData("/workers/"+r.srv.Children("/workers")[0], []byte("late")))
						})
					},
				}[what]()
				r.srv.Client("a").PartitionReplies()
				s, err := c.Session(r.ctx)
				r.check(err)
				<-s.Context().Done()
				r.srv.Client("a").Heal()
				time.Sleep(sessionTimeout)
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
		c := r.connect("a")
		rule := r.srv.Fail(zktest.Match{Op: zktest.OpCreate, Path: nodePath, Times: zktest.Always}, zktest.CodeNoAuth)
		n := r.started(c, nodes.Ephemeral)
		time.Sleep(100 * time.Second)
		if n.Status().State != nodes.Refused || rule.Fired() > 200 {
			r.Errorf("%+v after %d tries", n.Status(), rule.Fired())
		}
		wantErr(t, n.Wait(r.within(time.Second)), client.ErrNoAuth, context.DeadlineExceeded)
		rule.Remove()
		r.check(n.Wait(r.within(3 * time.Second)))
		r.wantOurs(c, n, "one")
		// No right to set: the error says so, and the node stays ours.
		rule = r.srv.Fail(zktest.Match{Op: zktest.OpMulti, Path: nodePath, Times: zktest.Always}, zktest.CodeNoAuth)
		wantErr(t, n.Set(r.within(5*time.Second), []byte("two")), client.ErrNoAuth)
		if n.Status().State != nodes.Ours {
			r.Errorf("%+v", n.Status())
		}
		rule.Remove()
		r.check(n.Wait(r.within(3 * time.Second)))
		r.wantOurs(c, n, "two")
		// No right to delete: Close says so.
		r.srv.Fail(zktest.Match{Op: zktest.OpMulti, Path: nodePath}, zktest.CodeNoAuth)
		wantErr(t, n.CloseContext(r.ctx), client.ErrNoAuth)
		wantNoGoroutine(t)
	})
}

// The parent is swept, or deleted with the node: both are made again. Without parents
// the state says so (TestPersistentNode.testRecreationWithParentCreationOff).
func TestParentGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.srv.BeforeApply(zktest.Match{Op: zktest.OpCreate, Path: nodePath, Client: "a"}, func(context.Context, zktest.Request) { r.srv.Sweep() })
		r.check(r.srv.Delete(nodePath))
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n, "one")
		r.check(r.srv.Delete(nodePath))
		r.check(r.srv.Delete("/workers"))
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n, "one")
		r.closed(n)

		r.check(r.srv.Delete("/workers"))
		n = r.started(c, nodes.Ephemeral, nodes.WithoutParents())
		time.Sleep(time.Second)
		wantErr(t, n.Status().Err, client.ErrNoNode)
		if n.Status().State != nodes.Refused {
			r.Errorf("%+v", n.Status())
		}
		r.check(r.srv.Create("/workers", nil))
		r.check(n.Wait(r.within(3 * time.Second)))
		r.closed(n)
	})
}

// No server at the start: the node stands once there is one
// (TestPersistentEphemeralNode.testNoServerAtStart, testListenersReconnectedIsFast).
func TestNoServerAtStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.srv.Stop()
		c := r.connect("a", client.WithLazyConnect())
		n := r.started(c, nodes.Ephemeral)
		time.Sleep(time.Minute)
		r.srv.Resume()
		r.check(n.Wait(r.within(sessionTimeout)))
		r.wantOurs(c, n, "one")
		r.closed(n)
	})
}

// Close is bounded while no server answers, and at every moment of the first create;
// nothing is left.
func TestCloseBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n := r.node(c, nodes.Ephemeral)
		r.srv.Client("a").Partition()
		start := time.Now()
		if err := n.Close(); err == nil || time.Since(start) > 5*time.Second {
			r.Errorf("Close took %v: %v", time.Since(start), err)
		}
		wantErr(t, n.CloseContext(r.within(0)), context.DeadlineExceeded)
		r.srv.Client("a").Heal()
		time.Sleep(3 * sessionTimeout)
		wantNoGoroutine(t)
	})
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			c := r.connect("a")
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
		c := r.connect("a", client.WithNamespace("app"))
		for _, opts := range [][]nodes.Option{nil, {nodes.WithProtection()}} {
			n := r.node(c, nodes.EphemeralSequential, opts...)
			for range 2 {
				if all := r.srv.Children("/app/workers"); len(all) != 1 || n.Status().Path != "/workers/"+all[0] {
					r.Errorf("%v, %+v", all, n.Status())
				}
				r.srv.Client("a").PartitionReplies()
				s, err := c.Session(r.ctx)
				r.check(err)
				<-s.Context().Done()
				r.srv.Client("a").Heal()
				time.Sleep(sessionTimeout)
			}
			r.check(n.CloseContext(r.ctx))
			if all := r.srv.Children("/app/workers"); len(all) != 0 {
				r.Errorf("left: %v", all)
			}
		}
	})
}

// The client is closed first: the goroutine ends, a persistent node stays
// (TestPersistentNode.testBasic).
func TestClientClosed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.Persistent} {
			c := r.connect("a")
			n := r.node(c, mode)
			r.check(c.CloseContext(r.ctx))
			synctest.Wait()
			wantNoGoroutine(t)
			wantErr(t, n.Wait(r.ctx), client.ErrClosed)
			_, there := r.srv.Node(nodePath)
			if err := n.Close(); there != (mode == nodes.Persistent) || (err != nil) != there || err != nil && !errors.Is(err, client.ErrClosed) {
				r.Errorf("%v: there: %v, Close: %v", mode, there, err)
			}
		}
	})
}
