package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// What a server says is an OpError of the operation, refused, and matches.
func TestRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a/b", "x")
		c := r.Connect("a")
		ctx := r.Ctx
		_, err := c.Create(ctx, "/e", nil, client.Ephemeral())
		r.Check(err)
		r.create("/locked", "")
		_, err = c.SetACL(ctx, "/locked", zk.WorldACL(zk.PermRead), 0)
		r.Check(err)
		for _, tt := range []struct {
			op, path string
			want     error
			run      func() error
		}{
			{"create", "/a", zk.ErrNodeExists, func() error { _, err := c.Create(ctx, "/a", nil); return err }},
			{"create", "/x/y", zk.ErrNoNode, func() error { _, err := c.Create(ctx, "/x/y", nil); return err }},
			{"create", "/e/y", zk.ErrNoChildrenForEphemerals, func() error { _, err := c.Create(ctx, "/e/y", nil); return err }},
			{"create", "/locked/y", zk.ErrNoAuth, func() error { _, err := c.Create(ctx, "/locked/y", nil, client.Protected()); return err }},
			{"create", "/y", zk.ErrInvalidACL, func() error {
				_, err := c.Create(ctx, "/y", nil, client.ACL(zk.ACL{Scheme: "no", Perms: 1}))
				return err
			}},
			{"get", "/x", zk.ErrNoNode, func() error { _, _, err := c.Get(ctx, "/x"); return err }},
			{"get", "/x", zk.ErrNoNode, func() error { _, _, _, err := c.GetW(ctx, "/x"); return err }},
			{"children", "/x", zk.ErrNoNode, func() error { _, _, err := c.Children(ctx, "/x"); return err }},
			{"set", "/x", zk.ErrNoNode, func() error { _, err := c.Set(ctx, "/x", nil, 0); return err }},
			{"set", "/a", zk.ErrBadVersion, func() error { _, err := c.Set(ctx, "/a", nil, 7); return err }},
			{"set", "/locked", zk.ErrNoAuth, func() error { _, err := c.Set(ctx, "/locked", nil, 0); return err }},
			{"delete", "/x", zk.ErrNoNode, func() error { return c.Delete(ctx, "/x", 0) }},
			{"delete", "/a", zk.ErrNotEmpty, func() error { return c.Delete(ctx, "/a", 0) }},
			{"delete", "/a/b", zk.ErrBadVersion, func() error { return c.Delete(ctx, "/a/b", 7) }},
			{"getACL", "/x", zk.ErrNoNode, func() error { _, _, err := c.GetACL(ctx, "/x"); return err }},
			{"setACL", "/a", zk.ErrBadVersion, func() error { _, err := c.SetACL(ctx, "/a", zk.WorldACL(1), 7); return err }},
		} {
			err := tt.run()
			var op *client.OpError
			if !errors.As(err, &op) || op.Op != tt.op || op.Path != tt.path {
				t.Errorf("%s %s: %#v", tt.op, tt.path, err)
			}
			testrig.WantErr(t, err, tt.want)
			wantOutcome(t, err, client.OutcomeRefused)
			if text := fmt.Sprint(err); !strings.Contains(text, "client: "+tt.op+" "+tt.path+": ") {
				t.Errorf("text %q", text)
			}
		}
	})
}

// Codes that go-zookeeper does not know keep their number.
func TestCodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithRetry(retry.None()))
		for _, tt := range []struct {
			code zktest.Code
			want error
			fate client.Outcome
		}{
			{zktest.CodeThrottledOp, client.ErrThrottled, client.OutcomeRefused},
			{zktest.CodeQuotaExceeded, client.ErrQuotaExceeded, client.OutcomeRefused},
			{zktest.CodeNotReadOnly, client.Code(-119), client.OutcomeRefused},
			{zktest.CodeMarshallingError, client.Code(-5), client.OutcomeRefused},
			{zktest.CodeSystemError, client.Code(-1), client.OutcomeRefused},
			{zktest.CodeOperationTimeout, client.Code(-7), client.OutcomeUnknown},
			{zktest.CodeConnectionLoss, client.Code(-4), client.OutcomeUnknown},
			{zktest.CodeSessionMoved, zk.ErrSessionMoved, client.OutcomeRefused},
			{-4711, client.Code(-4711), client.OutcomeRefused},
			{4711, client.Code(4711), client.OutcomeRefused},
		} {
			r.Srv.Fail(zktest.Match{Op: zktest.OpSetData}, tt.code)
			_, err := c.Set(r.Ctx, "/", nil, 0)
			testrig.WantErr(t, err, tt.want)
			wantOutcome(t, err, tt.fate)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(int32(tt.code))) && tt.code != zktest.CodeSessionMoved {
				t.Errorf("error %v does not show code %d", err, tt.code)
			}
		}
	})
}

// The end of a call's context comes back at once, with its cause, whether
// nothing was sent or the answer is missing.
func TestOperationContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		gone := errors.New("no caller waits")
		ended, cancel := context.WithCancelCause(r.Ctx)
		cancel(gone)
		for _, tt := range []struct {
			name string
			fate client.Outcome // when it was under way
			run  func(context.Context) error
		}{
			{"create", client.OutcomeUnknown, func(ctx context.Context) error { _, err := c.Create(ctx, "/x", nil); return err }},
			{"protected", client.OutcomeUnknown, func(ctx context.Context) error { _, err := c.Create(ctx, "/x", nil, client.Protected()); return err }},
			{"get", client.OutcomeUnchanged, func(ctx context.Context) error { _, _, err := c.Get(ctx, "/a"); return err }},
			{"getW", client.OutcomeUnchanged, func(ctx context.Context) error { _, _, _, err := c.GetW(ctx, "/a"); return err }},
			{"children", client.OutcomeUnchanged, func(ctx context.Context) error { _, _, err := c.Children(ctx, "/a"); return err }},
			{"sync", client.OutcomeUnchanged, func(ctx context.Context) error { return c.Sync(ctx, "/a") }},
			{"set", client.OutcomeUnknown, func(ctx context.Context) error { _, err := c.Set(ctx, "/a", nil, 0); return err }},
			{"delete", client.OutcomeUnknown, func(ctx context.Context) error { return c.Delete(ctx, "/b", 0) }},
			{"multi", client.OutcomeUnknown, func(ctx context.Context) error { _, err := c.Multi(ctx, client.CheckOp("/a", 0)); return err }},
			{"setACL", client.OutcomeUnknown, func(ctx context.Context) error { _, err := c.SetACL(ctx, "/a", zk.WorldACL(31), 0); return err }},
		} {
			asked := len(r.Srv.Log())
			err := tt.run(ended)
			testrig.WantErr(t, err, context.Canceled, gone)
			wantOutcome(t, err, client.OutcomeNeverSent)
			if len(r.Srv.Log()) != asked {
				t.Errorf("%s: a request was sent for an ended context", tt.name)
			}

			r.Srv.Freeze()
			ctx, cancel := context.WithCancelCause(r.Ctx)
			timer := time.AfterFunc(777*time.Millisecond, func() { cancel(gone) })
			start := time.Now()
			err = tt.run(ctx)
			if took := time.Since(start); took != 777*time.Millisecond {
				t.Errorf("%s: took %v", tt.name, took)
			}
			timer.Stop()
			testrig.WantErr(t, err, context.Canceled, gone)
			wantOutcome(t, err, tt.fate)
			r.Srv.Thaw()
			r.Check(c.Sync(r.Ctx, "/"))
		}

		r.Srv.Refuse()
		r.Srv.CutAll()
		time.Sleep(time.Second) // until the client knows
		ctx := r.Within(time.Second)
		_, err := c.Create(ctx, "/y", nil)
		testrig.WantErr(t, err, context.DeadlineExceeded, client.ErrNotConnected)
		wantOutcome(t, err, client.OutcomeNeverSent)
		wantErrText(t, err, "zk:2181: ", "outcome unknown")
	})
}

// After Close nothing is sent and every call says why.
func TestOperationsAfterClose(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		r.Check(c.CloseContext(r.Ctx))
		for _, run := range []func() error{
			func() error { _, err := c.Create(r.Ctx, "/x", nil); return err },
			func() error { _, err := c.Create(r.Ctx, "/x", nil, client.Protected()); return err },
			func() error { _, _, _, err := c.GetW(r.Ctx, "/"); return err },
			func() error { _, err := c.Multi(r.Ctx, client.CheckOp("/", 0)); return err },
			func() error { _, _, err := s.Get(r.Ctx, "/"); return err },
			func() error { return s.Err() },
			func() error { return context.Cause(s.Context()) },
			func() error { _, err := c.Session(r.Ctx); return err },
			func() error { _, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/", Prefix: "x"}); return err },
		} {
			testrig.WantErr(t, run(), client.ErrClosed)
		}
		_, _, err := c.Get(r.Ctx, "/")
		wantOutcome(t, err, client.OutcomeNeverSent)
		if errors.Is(err, client.ErrSessionLost) {
			t.Errorf("%v: no session was lost", err)
		}
	})
}
