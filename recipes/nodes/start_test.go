package nodes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// fresh is a node with the data "one" that is not started.
func (r *rig) fresh(c *client.Client, mode nodes.Mode, opts ...nodes.Option) *nodes.PersistentNode {
	r.Helper()
	n, err := nodes.NewPersistentNode(c, mode, nodePath, []byte("one"), opts...)
	r.Check(err)
	return n
}

// wantUnstarted checks that a failed start has left nothing, and that the node can be
// started again.
func (r *rig) wantUnstarted(c *client.Client, n *nodes.PersistentNode) {
	r.Helper()
	if now := n.Status(); now.State != nodes.Absent || now.Czxid != 0 || now.Err != nil {
		r.Errorf("%+v after a failed start", now)
	}
	time.Sleep(testrig.SessionTimeout + 4*time.Millisecond)
	testrig.WantNoGoroutine(r.T, ourFrames)
	r.WantNoChild("/workers")
	r.WantNoWatch()
	testrig.WantErr(r.T, n.Wait(r.Within(time.Second)), context.DeadlineExceeded)
	r.Check(n.Start(r.Within(testrig.SessionTimeout)))
	r.wantOurs(c, n, "one")
	r.closed(n)
}

// When Start returns the node stands, and stays when the context of Start ends. The values of
// that context are kept.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			var valued atomic.Int64
			type key struct{}
			c := r.Connect("a", client.WithObserver(client.Observer{
				Operation: func(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
					if ctx.Value(key{}) != nil && ctx.Err() == nil {
						valued.Add(1)
					}
					return ctx, nil
				},
			}))
			n := r.fresh(c, tt.mode, tt.opts...)
			ctx, cancel := context.WithCancel(context.WithValue(r.Ctx, key{}, "of a tracer"))
			r.Check(n.Start(ctx))
			before := valued.Load()
			stat := r.wantOurs(c, n, "one")
			cancel()
			time.Sleep(2 * testrig.SessionTimeout)
			if now := r.wantOurs(c, n, "one"); now.Czxid != stat.Czxid {
				r.Errorf("%v: made again", tt.mode)
			}
			r.Srv.ExpireSession(r.SessionID(c))
			time.Sleep(testrig.SessionTimeout)
			r.wantOurs(c, n, "one")
			if before == 0 || valued.Load() <= before {
				r.Errorf("%d and %d operations had the values of the context of Start", before, valued.Load()-before)
			}
			r.closed(n)
		})
	}
}

// A session that is lost during the start is no reason to fail.
func TestStartOutlivesASession(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			r.Check(r.Srv.Create("/workers", nil))
			link := r.Srv.Client("a")
			r.Srv.BeforeReply(zktest.Match{Where: creates}, func(context.Context, zktest.Request) { link.Partition() })
			time.AfterFunc(5*testrig.SessionTimeout, link.Heal)
			before := r.SessionID(c)
			n := r.fresh(c, tt.mode, tt.opts...)
			r.Check(n.Start(r.Ctx))
			r.wantOurs(c, n, "one")
			if r.SessionID(c) == before {
				r.Error("nothing was tested")
			}
			r.closed(n)
		})
	}
}

// A start that fails leaves nothing, also if the answer to the create is lost, and can be
// called again.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		bubble(t, func(r *rig) { // refused
			c := r.Connect("a")
			n := r.fresh(c, tt.mode, tt.opts...)
			r.Srv.Fail(zktest.Match{Where: creates}, zktest.CodeNoAuth)
			begun := time.Now()
			err := n.Start(r.Within(time.Minute))
			testrig.WantErr(t, err, client.ErrNoAuth)
			wantText(t, err, nodePath)
			if time.Since(begun) > time.Second {
				r.Errorf("it took %v", time.Since(begun))
			}
			r.wantUnstarted(c, n)
		})
		bubble(t, func(r *rig) { // the answer is lost with the servers
			c := r.Connect("a")
			r.Check(r.Srv.Create("/workers", nil))
			n := r.fresh(c, tt.mode, tt.opts...)
			r.Srv.BeforeReply(zktest.Match{Where: creates}, func(context.Context, zktest.Request) { r.Srv.Client("a").Partition() })
			err := n.Start(r.Within(time.Second))
			testrig.WantErr(t, err, context.DeadlineExceeded)
			if len(r.Srv.Children("/workers")) != 1 {
				r.Error("nothing was tested")
			}
			r.Srv.Client("a").Heal()
			r.wantUnstarted(c, n)
		})
		bubble(t, func(r *rig) { // at every moment of the first create
			c := r.Connect("a")
			for step := range 20 {
				n := r.fresh(c, tt.mode, tt.opts...)
				if err := n.Start(r.Within(time.Duration(step) * 300 * time.Microsecond)); err != nil {
					testrig.WantErr(t, err, context.DeadlineExceeded)
					r.wantUnstarted(c, n)
				} else {
					r.closed(n)
				}
			}
		})
	}
}

// No server answers: Start says of each why, within its context, and what the retry policy
// of the client allows.
func TestStartWithoutServers(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]client.Option{nil, {client.WithRetry(retry.UntilElapsed(3*time.Second, 100*time.Millisecond))}} {
		bubble(t, func(r *rig) {
			r.Srv.Refuse()
			c := r.Connect("a", append(opts, client.WithLazyConnect())...)
			n := r.fresh(c, nodes.Ephemeral)
			ctx := r.Within(time.Minute)
			err := n.Start(ctx)
			testrig.WantErr(t, err, client.ErrNotConnected)
			wantText(t, err, "connection refused")
			if (ctx.Err() != nil) != (opts == nil) {
				r.Errorf("policy %v: the context has ended: %v: %v", opts != nil, ctx.Err(), err)
			}
			r.Srv.Accept()
			r.wantUnstarted(c, n)
		})
	}
}

// While another session's node stands Start waits, and says so when its context ends.
func TestStartBesideAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		first, second := r.node(a, nodes.Ephemeral), r.fresh(b, nodes.Ephemeral)
		err := second.Start(r.Within(time.Minute))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		wantText(t, err, "foreign", "the node of session 0x")
		r.wantOurs(a, first, "one")
		again := make(chan error, 1)
		go func() { again <- second.Start(r.Ctx) }()
		time.Sleep(time.Second)
		r.Check(first.Close())
		r.Check(<-again)
		r.wantOurs(b, second, "one")
		r.closed(second)
	})
}

// Close ends a Start that waits, and a second Start is refused, also while the first waits.
func TestCloseEndsStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.node(r.Connect("a"), nodes.Ephemeral)
		n := r.fresh(r.Connect("b"), nodes.Ephemeral)
		started := make(chan error, 1)
		go func() { started <- n.Start(r.Ctx) }()
		time.Sleep(time.Second)
		wantText(t, n.Start(r.Ctx), nodePath, "started already")
		r.Check(n.Close())
		testrig.WantErr(t, <-started, nodes.ErrClosed)
		testrig.WantErr(t, n.Start(r.Ctx), nodes.ErrClosed)
	})
}

// After a failed start Close waits for what is removed in the background, and a Start that
// waits for the same ends with its context, or by Close.
func TestCloseAfterFailedStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/workers", nil))
		n := r.fresh(c, nodes.Persistent)
		link := r.Srv.Client("a")
		r.Srv.BeforeReply(zktest.Match{Where: creates}, func(context.Context, zktest.Request) { link.Partition() })
		testrig.WantErr(t, n.Start(r.Within(time.Second)), context.DeadlineExceeded)
		err := n.Start(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		wantText(t, err, "not removed yet")
		waits := make(chan error, 1)
		go func() { waits <- n.Start(r.Ctx) }()
		time.Sleep(time.Second)
		testrig.WantErr(t, n.CloseContext(r.Within(time.Second)), context.DeadlineExceeded)
		testrig.WantErr(t, <-waits, nodes.ErrClosed)
		if _, there := r.Srv.Node(nodePath); !there {
			r.Error("nothing was tested")
		}
		link.Heal()
		r.Check(n.CloseContext(r.Within(time.Minute)))
		if _, there := r.Srv.Node(nodePath); there {
			r.Error("left behind")
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
