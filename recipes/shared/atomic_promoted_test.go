package shared_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// sessionLock is a lock of another package, whose hold ends with the session and says
// why.
type sessionLock struct{ c *client.Client }

func (l sessionLock) Do(ctx context.Context, fn func(ctx context.Context, hold struct{}) error) error {
	s, err := l.c.Session(ctx)
	if err != nil {
		return err
	}
	hold, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.Context(), func() { cancel(client.ErrSessionLost) })()
	return fn(hold, struct{}{})
}

// Under the lock one try loses a race, and the write of the next one is applied and
// not answered. The hold ends for the reason for which the write is in doubt. The
// error says that the outcome is unknown, and not that other clients were faster.
func TestAtomicPromotedInDoubt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, other := r.Connect("a"), r.long(r.Connect("b"))
		r.Check(other.ForceSet(r.Ctx, 5))
		n := r.long(c, shared.WithTries(retry.None()), shared.PromotedToLock(sessionLock{c}, 0, retry.NTimes(5, time.Millisecond)))
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a", Times: 2, Path: longPath}, func(context.Context, zktest.Request) { r.Check(other.ForceSet(r.Ctx, 5)) })
		id := r.SessionID(c)
		r.Srv.BeforeReply(zktest.Match{Op: zktest.OpMulti, Client: "a", Nth: 3, Path: longPath}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
		v, err := n.Increment(r.Ctx)
		if v.Stats.PromotedTries != 2 || !client.UnknownOutcome(err) || errors.Is(err, shared.ErrContended) {
			r.Errorf("%+v, contended: %v, %v", v, errors.Is(err, shared.ErrContended), err)
		}
		r.wantLong(other, 6)
		r.rested()
	})
}

// The timeout of a promotion passes while a write is out: the answer is waited for.
func TestAtomicPromotedTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, other := r.Connect("a"), r.long(r.Connect("b"))
		r.Check(other.ForceSet(r.Ctx, 5))
		n := r.long(c, shared.WithTries(retry.None()), shared.PromotedToLock(sessionLock{c}, time.Second, retry.NTimes(5, time.Millisecond)))
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a", Path: longPath}, func(context.Context, zktest.Request) { r.Check(other.ForceSet(r.Ctx, 5)) })
		r.Srv.Delay(zktest.Match{Op: zktest.OpMulti, Client: "a", Nth: 2, Path: longPath}, 5*time.Second)
		v, err := n.Increment(r.Ctx)
		if v.PostValue != 6 || err != nil || v.Stats.PromotedTime < 5*time.Second {
			r.Errorf("%+v, %v", v, err)
		}
		r.rested()
	})
}

// The first change of a missing node fails after the node was made: the node stays,
// with the zero value.
func TestAtomicFailedOnAMissingNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.long(r.Connect("a"), shared.WithNodeACL(zk.ACL{Perms: zk.PermRead | zk.PermWrite, Scheme: "world", ID: "anyone"}))
		r.Check(r.Srv.Create("/counts", nil))
		_, err := n.Add(r.Ctx, 7)
		testrig.WantErr(r.T, err, zk.ErrNoAuth)
		if client.UnknownOutcome(err) {
			r.Error(err)
		}
		if first, err := n.Initialize(r.Ctx, 100); first || err != nil {
			r.Errorf("initialized: %v, %v", first, err)
		}
		r.wantLong(n, 0)
	})
}
