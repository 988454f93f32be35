package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// A call may be repeated if nothing was applied, a repeat cannot do it twice, and
// the reason may pass.
func TestSafeToRetry(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithRetry(retry.None()))
		r.create("/a", "")
		set := func(ctx context.Context) error {
			_, err := c.Set(ctx, "/a", nil, client.AnyVersion)
			return err
		}
		get := func(ctx context.Context) error { _, _, err := c.Get(ctx, "/a"); return err }
		code := func(code zktest.Code) func() {
			return func() { r.Srv.Fail(zktest.Match{Client: "a"}, code) }
		}
		for _, tt := range []struct {
			what   string
			before func()
			run    func(context.Context) error
			want   bool
			fate   client.Outcome
		}{
			{"write, lost answer", func() { r.Srv.LoseReply(zktest.Match{Op: zktest.OpSetData}) }, set, false, client.OutcomeUnknown},
			{"read, lost answer", func() { r.Srv.LoseReply(zktest.Match{Op: zktest.OpGetData}) }, get, true, client.OutcomeUnchanged},
			{"read, no answer", func() { r.Srv.StallReply(zktest.Match{Op: zktest.OpGetData}) }, get, true, client.OutcomeUnchanged},
			{"throttled", code(zktest.CodeThrottledOp), set, true, client.OutcomeRefused},
			{"moved", code(zktest.CodeSessionMoved), get, true, client.OutcomeRefused},
			{"quota", code(zktest.CodeQuotaExceeded), set, false, client.OutcomeRefused},
			{"undecided", code(zktest.CodeOperationTimeout), set, false, client.OutcomeUnknown},
			{"no node", nil, func(ctx context.Context) error { _, _, err := c.Get(ctx, "/x"); return err }, false, client.OutcomeRefused},
			{"exists", nil, func(ctx context.Context) error { _, err := c.Create(ctx, "/a", nil); return err }, false, client.OutcomeRefused},
			{"path", nil, func(ctx context.Context) error { _, _, err := c.Get(ctx, "x"); return err }, false, client.OutcomeNeverSent},
			{"option", nil, func(ctx context.Context) error { _, err := c.Create(ctx, "/b", nil, client.TTL(0)); return err }, false, client.OutcomeNeverSent},
			{"part", nil, func(ctx context.Context) error { _, err := c.Multi(ctx, client.Op{}); return err }, false, client.OutcomeNeverSent},
			{"acl", nil, func(ctx context.Context) error { _, err := c.SetACL(ctx, "/a", nil, 0); return err }, false, client.OutcomeNeverSent},
			{"size", nil, func(ctx context.Context) error {
				_, err := c.Set(ctx, "/a", make([]byte, client.DefaultMaxRequest), 0)
				return err
			}, false, client.OutcomeNeverSent},
			{"no connection", r.noServer, set, true, client.OutcomeNeverSent},
			{"no session", r.noServer, func(ctx context.Context) error { _, err := c.Session(ctx); return err }, true, client.OutcomeNeverSent},
			{"closed", func() { r.Check(c.CloseContext(r.Ctx)) }, set, false, client.OutcomeNeverSent},
			{"closed, session", nil, func(ctx context.Context) error { _, err := c.Session(ctx); return err }, false, client.OutcomeNeverSent},
		} {
			_, err := c.Session(r.Ctx)
			for i := 0; err != nil && !errors.Is(err, client.ErrClosed) && i < 1000; i++ {
				time.Sleep(100 * time.Millisecond)
				_, err = c.Session(r.Ctx)
			}
			if tt.before != nil {
				tt.before()
			}
			err = tt.run(r.Ctx)
			wantOutcome(t, err, tt.fate)
			if client.SafeToRetry(err) != tt.want || client.SafeToRetry(fmt.Errorf("wrapped: %w", err)) != tt.want {
				t.Errorf("%s: %v: safe %v, want %v", tt.what, err, !tt.want, tt.want)
			}
			r.Srv.ClearRules()
			r.Srv.Accept()
		}
		if client.SafeToRetry(nil) || client.SafeToRetry(zk.ErrNoNode) || client.UnknownOutcome(nil) {
			t.Error("what is no error of an operation has no outcome")
		}
	})
}

// The errors that people match are go-zookeeper's own values.
func TestSameErrors(t *testing.T) {
	t.Parallel()
	for ours, theirs := range map[error]error{
		client.ErrNoNode: zk.ErrNoNode, client.ErrNodeExists: zk.ErrNodeExists, client.ErrNotEmpty: zk.ErrNotEmpty,
		client.ErrBadVersion: zk.ErrBadVersion, client.ErrNoAuth: zk.ErrNoAuth, client.ErrInvalidACL: zk.ErrInvalidACL,
		client.ErrNoChildrenForEphemerals: zk.ErrNoChildrenForEphemerals, client.ErrInvalidPath: zk.ErrInvalidPath,
	} {
		if ours != theirs { //nolint:errorlint // the values themselves
			t.Errorf("%v is not %v", ours, theirs)
		}
	}
}

// What people read when a call fails.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		create := func(opts ...client.CreateOption) error {
			_, err := c.Create(r.Ctx, "/n", nil, opts...)
			return err
		}
		multi := func(parts ...client.Op) error { _, err := c.Multi(r.Ctx, parts...); return err }
		for _, tt := range []struct {
			err  error
			want string
		}{
			{multi(client.CreateOp("/n", nil, client.WithParents())), "client: multi /n: create /n in a transaction: CreateOp does not take WithParents, only Ephemeral, Sequential, Container, TTL and ACL"},
			{multi(client.CreateOp("/n", nil, client.WithPersistentParents())), "client: multi /n: create /n in a transaction: CreateOp does not take WithPersistentParents, only Ephemeral, Sequential, Container, TTL and ACL"},
			{multi(client.CreateOp("/n", nil, client.Protected())), "client: multi /n: create /n in a transaction: CreateOp does not take Protected, only Ephemeral, Sequential, Container, TTL and ACL"},
			{multi(client.CreateOp("/n", nil, client.Container(), client.Ephemeral())), "client: multi /n: create /n in a transaction: Container is not possible with Ephemeral, Sequential or TTL"},
			{multi(client.CreateOp("/n", nil, client.TTL(500))), "client: multi /n: create /n in a transaction: TTL(500ns) is out of range: servers take 1ms to 305419h53m47.775s"},
			{multi(client.CreateOp("/n", nil, client.ACL())), "client: multi /n: create /n in a transaction: zk: invalid ACL specified: it has no entry"},
			{multi(client.DeleteOp("/", 0)), "client: multi /: servers do not let / be deleted"},
			{multi(client.Op{}), "client: multi \"\": part 0 is empty; use a function such as CreateOp or GetOp"},
			{create(client.TTL(500)), "client: create /n: TTL(500ns) is out of range: servers take 1ms to 305419h53m47.775s"},
			{create(client.TTL(1 << 62)), "client: create /n: TTL(1281023h53m38.427387904s) is out of range: servers take 1ms to 305419h53m47.775s"},
			{create(client.Container(), client.Sequential()), "client: create /n: Container is not possible with Ephemeral, Sequential or TTL"},
			{create(client.ACL()), "client: create /n: zk: invalid ACL specified: it has no entry"},
			{c.Delete(r.Ctx, "/", client.AnyVersion), "client: delete /: servers do not let / be deleted"},
			{c.Delete(r.Ctx, "/zookeeper/config", client.AnyVersion), "client: delete /zookeeper/config: servers do not let /zookeeper/config be deleted"},
		} {
			if tt.err == nil || tt.err.Error() != tt.want {
				t.Errorf("got  %v\nwant %v", tt.err, tt.want)
			}
		}
		ended, cancel := context.WithCancelCause(r.Ctx)
		cancel(errors.New("shutting down"))
		_, err := c.Set(ended, "/a", nil, 0)
		wantText(t, err, "client: set /a: context canceled: shutting down")
		r.Srv.Freeze()
		_, err = c.Set(r.Within(time.Second), "/a", nil, 0)
		wantText(t, err, "client: set /a: context deadline exceeded: no answer from zk:2181 yet (outcome unknown)")
		_, _, err = c.Get(r.Within(time.Second), "/a")
		wantText(t, err, "client: get /a: context deadline exceeded: no answer from zk:2181 yet")
		r.Srv.Thaw()
		r.Check(c.CloseContext(r.Ctx))
		_, err = c.Session(r.Ctx)
		wantText(t, err, "client: session: the client was closed")
	})
}

func wantText(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

// A session that a server refuses is named once, and without the name of an
// internal package.
func TestRefusedCredentialsText(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		_, err := r.Open("zk:2181", "a", client.WithAuth("nonsense", "x"))
		testrig.WantErr(t, err, client.ErrAuthFailed)
		wantErrText(t, err, "authentication failed", "wire:")
	})
}

// endsLater is a context whose end nobody hears of.
type endsLater struct {
	context.Context
	ended atomic.Bool
}

func (c *endsLater) Err() error {
	if c.ended.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

// A context that ends just after a connection has failed, before the next try, is the reason.
func TestContextEndsBehindAFailure(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		_, err := c.Create(r.Ctx, "/a", nil)
		r.Check(err)
		for name, call := range map[string]func(context.Context) error{
			"get":    func(ctx context.Context) error { _, _, err := c.Get(ctx, "/a"); return err },
			"create": func(ctx context.Context) error { _, err := c.Create(ctx, "/b", nil, client.Protected()); return err },
		} {
			ctx := &endsLater{Context: r.Ctx}
			rule := r.Srv.BeforeApply(zktest.Match{Client: "a", Times: 1}, func(context.Context, zktest.Request) {
				r.Srv.CutAll()
				ctx.ended.Store(true)
			})
			err := call(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			rule.Remove()
		}
	})
}
