package recipes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// told waits until h is over.
func (r *rig) told(h *recipes.Hold) {
	r.Helper()
	select {
	case <-h.Context().Done():
	case <-r.ctx.Done():
		r.Fatal("the holder was never told")
	}
}

// The deadline moves on while the lock is held, and is never beyond what the
// server would allow. Once the hold is over there is no deadline.
func TestHoldDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.connect("a")))
		for range 60 {
			left := time.Until(h.Deadline())
			if left < time.Second || left > sessionTimeout {
				t.Fatalf("deadline in %v", left)
			}
			time.Sleep(777 * time.Millisecond)
		}
		again, err := r.mutex(r.connect("b")).TryAcquire(r.ctx)
		wantErr(t, err, recipes.ErrBusy)
		if again != nil {
			t.Error("held twice")
		}
		r.check(h.Release(r.ctx))
		if d := h.Deadline(); !d.IsZero() {
			t.Errorf("deadline %v after the release", d)
		}
	})
}

// The context ends its margin before the deadline, and its cause says what was
// known. The node stays until the holder has released. If the session lives, the
// node is deleted at once after that.
func TestHoldEndsBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		h := r.held(r.mutex(c))
		time.Sleep(time.Minute)
		r.srv.HoldLog() // nothing is committed any more, everything is answered
		deadline := h.Deadline()
		r.told(h)
		var e *client.LeaseExpiredError
		if !errors.As(context.Cause(h.Context()), &e) {
			t.Fatalf("cause %v", context.Cause(h.Context()))
		}
		if time.Until(e.Deadline) != e.Margin || e.Deadline.Before(deadline) || e.Reason == nil {
			t.Errorf("told %v before the deadline: %+v", time.Until(e.Deadline), e)
		}
		if len(r.line()) != 1 {
			t.Error("the node is gone before the holder has stopped")
		}
		r.srv.ReleaseLog()
		s, err := c.Session(r.ctx)
		r.check(err)
		wantErr(t, h.Release(r.ctx), recipes.ErrLost, client.ErrLeaseExpired)
		time.Sleep(time.Second)
		if len(r.line()) != 0 {
			t.Error("the node of a lost hold is still there after its release")
		}
		r.check(s.Err())
		again := r.held(r.mutex(c))
		if again.FencingToken() <= h.FencingToken() {
			t.Error("the token did not grow")
		}
		r.check(again.Release(r.ctx))
	})
}

// After a loss every method says so. Re-entry does not bring the hold back,
// although its node still stands and its session has recovered.
func TestLostHoldStaysLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.connect("a"))
		h := r.held(m)
		r.check(r.srv.Create("/x", nil))
		r.srv.HoldLog()
		r.told(h)
		r.srv.ReleaseLog()
		synctest.Wait()
		_, err := m.Acquire(h.Context())
		wantErr(t, err, recipes.ErrLost)
		_, err = m.TryAcquire(h.Context())
		wantErr(t, err, recipes.ErrLost)
		wantErr(t, h.Err(), recipes.ErrLost)
		wantErr(t, h.Confirm(r.ctx), recipes.ErrLost)
		_, err = h.Guard(r.ctx, client.SetOp("/x", []byte("late"), client.AnyVersion))
		wantErr(t, err, recipes.ErrLost)
		wantErr(t, h.Release(r.ctx), recipes.ErrLost)
		wantErr(t, h.Close(), recipes.ErrLost)
		if !h.Deadline().IsZero() {
			t.Error("a lost hold has a deadline")
		}
		if n, _ := r.srv.Node("/x"); len(n.Data) != 0 {
			t.Errorf("a lost hold wrote %q", n.Data)
		}
	})
}

// A waiter that gets its turn after a long wait has proved its session before
// it counts as a holder.
func TestLateGrantIsProved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.connect("a")))
		next := acquire(r.ctx, r.mutex(r.connect("b")))
		time.Sleep(10 * time.Minute)
		var checks atomic.Int32
		r.srv.OnRequest(func(q zktest.Request) {
			if q.Op == zktest.OpMulti && q.Client == "b" {
				checks.Add(1)
			}
		})
		r.check(h.Release(r.ctx))
		res := <-next
		r.check(res.err)
		if left := time.Until(res.hold.Deadline()); left < sessionTimeout/2 || checks.Load() != 1 {
			t.Errorf("deadline in %v after %d checks", left, checks.Load())
		}
		r.check(res.hold.Release(r.ctx))
	})
}

// A waiter that cannot prove its session is not granted the lock, and leaves.
func TestUnprovedGrantIsNone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.connect("a")))
		ctx, cancel := context.WithCancel(r.ctx)
		defer cancel()
		next := acquire(ctx, r.mutex(r.connect("b")))
		time.Sleep(time.Minute)
		lost := r.srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Times: zktest.Always})
		r.check(h.Release(r.ctx))
		r.check(lost.Wait(r.ctx, 1))
		time.Sleep(time.Second)
		if len(next) != 0 {
			t.Fatalf("granted without proof: %+v", <-next)
		}
		cancel()
		wantErr(t, (<-next).err, context.Canceled)
		r.srv.ClearRules()
		r.empty()
	})
}

// Confirm asks the ensemble; it finds out what the holder has not heard.
func TestConfirm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		h := r.held(r.mutex(c))
		time.Sleep(time.Second)
		before := h.Deadline()
		r.check(h.Confirm(r.ctx))
		time.Sleep(2 * time.Second)
		r.check(h.Confirm(r.ctx))
		if !h.Deadline().After(before) {
			t.Error("the deadline did not move")
		}
		r.srv.Client("a").Freeze()
		err := h.Confirm(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, recipes.ErrLost) || h.Err() != nil {
			t.Errorf("no answer passes for a loss: %v", err)
		}
		r.srv.Client("a").Thaw()
		r.srv.DelayEvents(time.Hour)
		r.check(r.srv.Delete(h.Path()))
		wantErr(t, h.Confirm(r.ctx), recipes.ErrLost, recipes.ErrNodeDeleted)
		wantErr(t, h.Err(), recipes.ErrLost, recipes.ErrNodeDeleted)

		h = r.held(r.mutex(c))
		r.check(h.Release(r.ctx))
		wantErr(t, h.Confirm(r.ctx), recipes.ErrReleased)
	})
}

// A guarded transaction is committed only while the lock is held, and says
// which of three things happened.
func TestGuard(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.check(r.srv.Create("/x", nil))
		set := func(data string) client.Op { return client.SetOp("/x", []byte(data), client.AnyVersion) }
		want := func(data string) {
			t.Helper()
			if n, _ := r.srv.Node("/x"); string(n.Data) != data {
				t.Errorf("data %q, want %q", n.Data, data)
			}
		}
		h := r.held(r.mutex(c))
		res, err := h.Guard(r.ctx, set("one"), client.CreateOp("/y", nil))
		r.check(err)
		if len(res) != 2 || res[0].Stat == nil || res[1].Path != "/y" {
			t.Errorf("results %+v", res)
		}
		want("one")

		// A part of the caller's is refused: the caller is told which.
		_, err = h.Guard(r.ctx, set("two"), client.CreateOp("/y", nil))
		var refused *client.MultiError
		if !errors.As(err, &refused) || refused.Index != 1 || !errors.Is(err, zk.ErrNodeExists) || errors.Is(err, recipes.ErrLost) {
			t.Errorf("error %v", err)
		}
		_, err = h.Guard(r.ctx, client.DeleteOp("/none", client.AnyVersion))
		if errors.Is(err, recipes.ErrLost) || !errors.Is(err, zk.ErrNoNode) || h.Err() != nil {
			t.Errorf("a missing node of the caller's passes for a loss: %v", err)
		}
		want("one")

		// No answer: unknown, and not a loss.
		r.srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Times: 1})
		_, err = h.Guard(r.ctx, set("three"))
		if !client.UnknownOutcome(err) || errors.Is(err, recipes.ErrLost) {
			t.Errorf("error %v, want an unknown outcome", err)
		}
		want("three")

		// The node is gone and the holder has not heard.
		r.srv.DelayEvents(time.Hour)
		r.check(r.srv.Delete(h.Path()))
		_, err = h.Guard(r.ctx, set("four"))
		wantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		wantErr(t, h.Err(), recipes.ErrLost)
		want("three")

		// The session is over and the holder has not heard.
		h = r.held(r.mutex(c))
		r.srv.DelayEvents(time.Hour)
		id := r.session(c)
		r.srv.Client("a").PartitionReplies()
		r.srv.ExpireSession(id)
		_, err = h.Guard(r.ctx, set("five"))
		if err == nil || errors.Is(err, recipes.ErrLost) && client.UnknownOutcome(err) {
			t.Errorf("error %v", err)
		}
		want("three")
		r.srv.Client("a").Heal()

		h = r.held(r.mutex(c))
		r.check(h.Release(r.ctx))
		_, err = h.Guard(r.ctx, set("six"))
		wantErr(t, err, recipes.ErrReleased)
		want("three")
	})
}

// A hold that is in doubt says so before it is lost.
func TestHoldJeopardy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.connect("a")))
		time.Sleep(10 * time.Second)
		calm := h.Jeopardy()
		r.srv.Client("a").Freeze()
		select {
		case <-calm:
		case <-h.Context().Done():
			t.Fatal("lost without a warning")
		}
		r.srv.Client("a").Thaw()
		time.Sleep(sessionTimeout / 3)
		select {
		case <-h.Jeopardy():
			t.Error("in doubt for good")
		default:
		}
		r.check(h.Err())
		r.check(h.Release(r.ctx))
	})
}
