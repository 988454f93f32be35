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
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// told waits until h is over.
func (r *rig) told(h *recipes.Hold) {
	r.Helper()
	select {
	case <-h.Context().Done():
	case <-r.Ctx.Done():
		r.Fatal("the holder was never told")
	}
}

// The deadline moves on while the lock is held, and is never beyond what the
// server would allow. Once the hold is over there is no deadline.
func TestHoldDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		for range 60 {
			left := time.Until(h.Deadline())
			if left < time.Second || left > testrig.SessionTimeout {
				t.Fatalf("deadline in %v", left)
			}
			time.Sleep(777 * time.Millisecond)
		}
		again, err := r.mutex(r.Connect("b")).TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		if again != nil {
			t.Error("held twice")
		}
		r.Check(h.Release(r.Ctx))
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
		c := r.Connect("a")
		h := r.held(r.mutex(c))
		time.Sleep(time.Minute)
		r.Srv.HoldLog() // nothing is committed any more, everything is answered
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
		r.Srv.ReleaseLog()
		s, err := c.Session(r.Ctx)
		r.Check(err)
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost, client.ErrLeaseExpired)
		time.Sleep(time.Second)
		if len(r.line()) != 0 {
			t.Error("the node of a lost hold is still there after its release")
		}
		r.Check(s.Err())
		again := r.held(r.mutex(c))
		if again.FencingToken() <= h.FencingToken() {
			t.Error("the token did not grow")
		}
		r.Check(again.Release(r.Ctx))
	})
}

// After a loss every method says so. Re-entry does not bring the hold back,
// although its node still stands and its session has recovered.
func TestLostHoldStaysLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		r.Check(r.Srv.Create("/x", nil))
		r.Srv.HoldLog()
		r.told(h)
		r.Srv.ReleaseLog()
		synctest.Wait()
		_, err := m.Acquire(h.Context())
		testrig.WantErr(t, err, recipes.ErrLost)
		_, err = m.TryAcquire(h.Context())
		testrig.WantErr(t, err, recipes.ErrLost)
		testrig.WantErr(t, h.Err(), recipes.ErrLost)
		testrig.WantErr(t, h.Confirm(r.Ctx), recipes.ErrLost)
		_, err = h.Guard(r.Ctx, client.SetOp("/x", []byte("late"), client.AnyVersion))
		testrig.WantErr(t, err, recipes.ErrLost)
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost)
		testrig.WantErr(t, h.Close(), recipes.ErrLost)
		if !h.Deadline().IsZero() {
			t.Error("a lost hold has a deadline")
		}
		if n, _ := r.Srv.Node("/x"); len(n.Data) != 0 {
			t.Errorf("a lost hold wrote %q", n.Data)
		}
	})
}

// A waiter that gets its turn after a long wait has proved its session before
// it counts as a holder.
func TestLateGrantIsProved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		next := acquire(r.Ctx, r.mutex(r.Connect("b")))
		time.Sleep(10 * time.Minute)
		var checks atomic.Int32
		r.Srv.OnRequest(func(q zktest.Request) {
			if q.Op == zktest.OpMulti && q.Client == "b" {
				checks.Add(1)
			}
		})
		r.Check(h.Release(r.Ctx))
		res := <-next
		r.Check(res.err)
		if left := time.Until(res.hold.Deadline()); left < testrig.SessionTimeout/2 || checks.Load() != 1 {
			t.Errorf("deadline in %v after %d checks", left, checks.Load())
		}
		r.Check(res.hold.Release(r.Ctx))
	})
}

// A waiter that cannot prove its session is not granted the lock, and leaves.
func TestUnprovedGrantIsNone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		ctx, cancel := context.WithCancel(r.Ctx)
		defer cancel()
		next := acquire(ctx, r.mutex(r.Connect("b")))
		time.Sleep(time.Minute)
		lost := r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Times: zktest.Always})
		r.Check(h.Release(r.Ctx))
		r.Check(lost.Wait(r.Ctx, 1))
		time.Sleep(time.Second)
		if len(next) != 0 {
			t.Fatalf("granted without proof: %+v", <-next)
		}
		cancel()
		testrig.WantErr(t, (<-next).err, context.Canceled)
		r.Srv.ClearRules()
		r.empty()
	})
}

// Confirm asks the ensemble; it finds out what the holder has not heard.
func TestConfirm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.held(r.mutex(c))
		time.Sleep(time.Second)
		before := h.Deadline()
		r.Check(h.Confirm(r.Ctx))
		time.Sleep(2 * time.Second)
		r.Check(h.Confirm(r.Ctx))
		if !h.Deadline().After(before) {
			t.Error("the deadline did not move")
		}
		r.Srv.Client("a").Freeze()
		err := h.Confirm(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, recipes.ErrLost) || h.Err() != nil {
			t.Errorf("no answer passes for a loss: %v", err)
		}
		r.Srv.Client("a").Thaw()
		r.Srv.DelayEvents(time.Hour)
		r.Check(r.Srv.Delete(h.Path()))
		testrig.WantErr(t, h.Confirm(r.Ctx), recipes.ErrLost, recipes.ErrNodeDeleted)
		testrig.WantErr(t, h.Err(), recipes.ErrLost, recipes.ErrNodeDeleted)

		h = r.held(r.mutex(c))
		r.Check(h.Release(r.Ctx))
		testrig.WantErr(t, h.Confirm(r.Ctx), recipes.ErrReleased)
	})
}

// A guarded transaction is committed only while the lock is held, and says
// which of three things happened.
func TestGuard(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/x", nil))
		set := func(data string) client.Op { return client.SetOp("/x", []byte(data), client.AnyVersion) }
		want := func(data string) {
			t.Helper()
			if n, _ := r.Srv.Node("/x"); string(n.Data) != data {
				t.Errorf("data %q, want %q", n.Data, data)
			}
		}
		h := r.held(r.mutex(c))
		res, err := h.Guard(r.Ctx, set("one"), client.CreateOp("/y", nil))
		r.Check(err)
		if len(res) != 2 || res[0].Stat == nil || res[1].Path != "/y" {
			t.Errorf("results %+v", res)
		}
		want("one")

		// A part of the caller's is refused: the caller is told which.
		_, err = h.Guard(r.Ctx, set("two"), client.CreateOp("/y", nil))
		var refused *client.MultiError
		if !errors.As(err, &refused) || refused.Index != 1 || !errors.Is(err, zk.ErrNodeExists) || errors.Is(err, recipes.ErrLost) {
			t.Errorf("error %v", err)
		}
		_, err = h.Guard(r.Ctx, client.DeleteOp("/none", client.AnyVersion))
		if errors.Is(err, recipes.ErrLost) || !errors.Is(err, zk.ErrNoNode) || h.Err() != nil {
			t.Errorf("a missing node of the caller's passes for a loss: %v", err)
		}
		want("one")

		// No answer: unknown, and not a loss.
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Times: 1})
		_, err = h.Guard(r.Ctx, set("three"))
		if !client.UnknownOutcome(err) || errors.Is(err, recipes.ErrLost) {
			t.Errorf("error %v, want an unknown outcome", err)
		}
		want("three")

		// The node is gone and the holder has not heard.
		r.Srv.DelayEvents(time.Hour)
		r.Check(r.Srv.Delete(h.Path()))
		_, err = h.Guard(r.Ctx, set("four"))
		testrig.WantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		testrig.WantErr(t, h.Err(), recipes.ErrLost)
		want("three")

		// The session is over and the holder has not heard.
		h = r.held(r.mutex(c))
		r.Srv.DelayEvents(time.Hour)
		id := r.SessionID(c)
		r.Srv.Client("a").PartitionReplies()
		r.Srv.ExpireSession(id)
		_, err = h.Guard(r.Ctx, set("five"))
		if err == nil || errors.Is(err, recipes.ErrLost) && client.UnknownOutcome(err) {
			t.Errorf("error %v", err)
		}
		want("three")
		r.Srv.Client("a").Heal()

		h = r.held(r.mutex(c))
		r.Check(h.Release(r.Ctx))
		_, err = h.Guard(r.Ctx, set("six"))
		testrig.WantErr(t, err, recipes.ErrReleased)
		want("three")
	})
}

// A hold that is in doubt says so before it is lost.
func TestHoldJeopardy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		time.Sleep(10 * time.Second)
		calm := h.Jeopardy()
		r.Srv.Client("a").Freeze()
		select {
		case <-calm:
		case <-h.Context().Done():
			t.Fatal("lost without a warning")
		}
		r.Srv.Client("a").Thaw()
		time.Sleep(testrig.SessionTimeout / 3)
		select {
		case <-h.Jeopardy():
			t.Error("in doubt for good")
		default:
		}
		r.Check(h.Err())
		r.Check(h.Release(r.Ctx))
	})
}
