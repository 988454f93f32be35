package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// grow makes a tree below dir: wide, deep, and with more than one batch.
func (r *rig) grow(dir string) {
	for i := range 300 {
		r.create(fmt.Sprintf("%s/wide/%d", dir, i), "")
	}
	for i := range 3 {
		r.create(fmt.Sprintf("%s/some/%d/below/it", dir, i), "")
	}
	r.create(dir+"/1/2/3/4/5/6/7", "x")
}

// nodes are the nodes that exist.
func (r *rig) nodes() (paths []string) {
	for _, n := range r.Srv.Tree() {
		if n.Path != "/" {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

func TestDeleteAll(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "/ns"} {
		t.Run("below "+prefix+"/", func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.create(prefix+"/a", "")
				r.create(prefix+"/ab", "")
				var opts []client.Option
				if prefix != "" {
					opts = append(opts, client.WithNamespace(prefix[1:]))
				}
				c := r.Connect("a", opts...)
				beside := r.nodes()
				r.grow(prefix + "/a/tree")
				r.Check(c.DeleteAll(r.Ctx, "/a/tree"))
				if got := r.nodes(); !slices.Equal(got, beside) {
					t.Errorf("left %v, want %v", got, beside)
				}
				r.Check(c.DeleteAll(r.Ctx, "/a/tree")) // it is gone, and so is its parent
				r.Check(c.DeleteAll(r.Ctx, "/x/y"))
				r.Check(r.Session(c).DeleteAll(r.Ctx, "/a"))
			})
		})
	}
}

// What others create below the node while it is being deleted goes too.
func TestDeleteAllAgainstCreators(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.grow("/a")
		late := 0
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpDelete, Path: "/a", Nth: 2}, func(context.Context, zktest.Request) {
			late++
			r.create("/a/late/node", "")
		})
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpDelete, Path: "/a/some/1", Nth: 2}, func(context.Context, zktest.Request) {
			late++
			r.create("/a/some/1/late", "")
		})
		// A directory that another client deletes before it is listed.
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: "/a/1"}, func(context.Context, zktest.Request) {
			late++
			r.Check(r.Srv.Delete("/a/1"))
		})
		r.Check(c.DeleteAll(r.Ctx, "/a"))
		if got := r.nodes(); len(got) != 0 || late != 3 {
			t.Errorf("left %v; %d of 3 races", got, late)
		}
	})
}

// Lost answers and lost requests do not stop it, and a node is never listed as
// a sign of its deletion.
func TestDeleteAllThroughFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*zktest.Server, zktest.Match) *zktest.Rule{
		"reply lost":     (*zktest.Server).LoseReply,
		"dropped before": (*zktest.Server).DropBefore,
		"throttled":      func(s *zktest.Server, m zktest.Match) *zktest.Rule { return s.Fail(m, zktest.CodeThrottledOp) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				r.grow("/a")
				rules := []*zktest.Rule{
					fault(r.Srv, zktest.Match{Op: zktest.OpDelete, Path: "/a/some/1"}),
					fault(r.Srv, zktest.Match{Op: zktest.OpGetChildren2, Path: "/a/1/2"}),
					fault(r.Srv, zktest.Match{Op: zktest.OpDelete, Path: "/a", Nth: 2}),
				}
				r.Check(c.DeleteAll(r.Ctx, "/a"))
				for i, rule := range rules {
					if rule.Fired() != 1 {
						t.Errorf("fault %d happened %d times", i, rule.Fired())
					}
				}
				if got := r.nodes(); len(got) != 0 {
					t.Errorf("left %v", got)
				}
			})
		})
	}
}

func TestDeleteAllRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		for _, path := range []string{"/", "", "a", "/a/"} {
			err := c.DeleteAll(r.Ctx, path)
			wantOutcome(t, err, client.OutcomeNeverSent)
			if client.SafeToRetry(err) {
				t.Errorf("%v: a repeat cannot help", err)
			}
		}
		wantErrText(t, c.DeleteAll(r.Ctx, "/"), "client: delete all /: that would delete everything", "flags")
		root := r.Connect("root")
		for _, path := range []string{"/zookeeper", "/zookeeper/quota"} {
			wantErrText(t, root.DeleteAll(r.Ctx, path), "servers do not let "+path+" be deleted", "invalid")
		}

		// The node that may not be listed is named, as the caller names it.
		r.create("/ns/a/b/c", "")
		r.create("/ns/a/z", "")
		_, err := c.SetACL(r.Ctx, "/a/b", zk.WorldACL(zk.PermAdmin), 0)
		r.Check(err)
		err = c.DeleteAll(r.Ctx, "/a/b")
		testrig.WantErr(t, err, client.ErrNoAuth)
		wantOutcome(t, err, client.OutcomeRefused)
		wantErrText(t, err, "client: delete all /a/b: list /a/b: ", "/ns")
		err = c.DeleteAll(r.Ctx, "/a") // z goes first
		testrig.WantErr(t, err, client.ErrNoAuth)
		wantOutcome(t, err, client.OutcomeUnknown)
		if got := r.named("/ns/a"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("left %v", got)
		}
	})
}

// The end of the context is the end of the call, while others create for ever.
func TestDeleteAllContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a/0", "")
		var n atomic.Int32
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpDelete, Path: "/a", Times: zktest.Always}, func(context.Context, zktest.Request) {
			r.create(fmt.Sprint("/a/", n.Add(1)), "")
		})
		start := time.Now()
		err := c.DeleteAll(r.Within(2*time.Second), "/a")
		if took := time.Since(start); took != 2*time.Second || n.Load() < 10 {
			t.Errorf("took %v, %d rounds", took, n.Load())
		}
		testrig.WantErr(t, err, context.DeadlineExceeded)
		wantOutcome(t, err, client.OutcomeUnknown)
	})
}

// Everything of one directory leaves together: three round trips for a thousand
// nodes in a directory, and not a thousand.
func TestDeleteAllRoundTrips(t *testing.T) {
	t.Parallel()
	const latency = 100 * time.Millisecond
	bubble(t, func(r *rig) {
		for i := range 1000 {
			r.create(fmt.Sprint("/a/", i), "")
		}
		c := r.Connect("a")
		start := time.Now()
		r.Check(c.DeleteAll(r.Ctx, "/a"))
		// Delete, list, four batches, delete.
		if took := time.Since(start); took > 7*2*latency+latency {
			t.Errorf("took %v, which are %d round trips", took, took/(2*latency))
		}
	}, zktest.WithLatency(latency, latency+time.Microsecond))
}

// A directory that cannot be listed is an error of its own, which says that
// nothing has changed.
func TestDeleteAllReplyTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for i := range 100 {
			r.create(fmt.Sprintf("/a/%060d", i), "")
		}
		err := r.Connect("a", client.WithMaxReply(1024)).DeleteAll(r.Ctx, "/a")
		testrig.WantErr(t, err, client.ErrReplyTooLarge)
		wantOutcome(t, err, client.OutcomeUnchanged)
		var op *client.OpError
		if !errors.As(err, &op) || client.SafeToRetry(err) || len(r.named("/a")) != 100 {
			t.Errorf("%v, %d left", err, len(r.named("/a")))
		}
	})
}
