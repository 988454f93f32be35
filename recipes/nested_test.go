package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The contexts of holds are the contexts of what is done under them: how one
// hold ends must not pass for the end of another.

func (r *rig) under(outer *recipes.Hold, c *client.Client, path string) *recipes.Hold {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.Check(err)
	h, err := m.Acquire(outer.Context())
	r.Check(err)
	return h
}

// on holds a lock of its own.
func (r *rig) on(path string, c *client.Client) *recipes.Hold {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.Check(err)
	return r.held(m)
}

func TestReleaseInALostContextOfAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		outer := r.held(r.mutex(c))
		inner := r.on("/other", c) // within no other, and released in the other's context
		time.Sleep(time.Second)
		r.Check(r.Srv.Delete(outer.Path()))
		time.Sleep(time.Second)
		r.Check(inner.Err())
		err := inner.Release(outer.Context())
		testrig.WantErr(t, err, context.Canceled)
		if errors.Is(err, recipes.ErrLost) {
			t.Errorf("the inner was not lost: %v", err)
		}
	})
}

// A guarded write that may have been applied is not said to be refused.
func TestGuardInALostContextOfAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		outer := r.held(r.mutex(r.Connect("b")))
		inner := r.on("/other", r.Connect("a"))
		r.Check(r.Srv.Create("/x", nil))
		time.Sleep(time.Second)
		r.Srv.DelayReply(zktest.Match{Client: "a", Op: zktest.OpMulti, Path: "/x"}, time.Second)
		go func() {
			time.Sleep(100 * time.Millisecond)
			_ = r.Srv.Delete(outer.Path())
		}()
		_, err := inner.Guard(outer.Context(), client.SetOp("/x", []byte("written"), client.AnyVersion))
		if err != nil && (!client.UnknownOutcome(err) || errors.Is(err, recipes.ErrLost)) {
			t.Errorf("error %v", err)
		}
		_, err = inner.Guard(outer.Context(), client.SetOp("/x", nil, client.AnyVersion))
		if err == nil || errors.Is(err, recipes.ErrLost) {
			t.Errorf("in a context that had ended: %v", err)
		}
		r.Check(inner.Err())
		r.Check(inner.Release(r.Ctx))
	})
}

func TestGuardMayNotCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.held(r.mutex(c))
		r.Check(r.Srv.Create("/x", nil))
		_, err := c.SetACL(r.Ctx, h.Path(), zk.WorldACL(zk.PermDelete|zk.PermAdmin), client.AnyVersion)
		r.Check(err)
		_, err = h.Guard(r.Ctx, client.SetOp("/x", []byte("w"), client.AnyVersion))
		var part *client.MultiError
		if !refused(err) || !errors.Is(err, zk.ErrNoAuth) || errors.As(err, &part) {
			t.Errorf("error %v", err)
		}
		r.Check(h.Release(r.Ctx))
	})
}

// Do waits for the release no longer than a second once its context has ended.
func TestDoInAPartition(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		begun := time.Now()
		err := m.Do(r.Within(time.Second), func(ctx context.Context, _ *recipes.Hold) error {
			r.Srv.Client("a").Partition()
			<-ctx.Done()
			return ctx.Err()
		})
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		r.Srv.Client("a").Heal()
		r.empty()
	})
}

// If the right to read its node is missing for a while, the holder is blind for
// no longer.
func TestOwnNodeIsWatchedAgainWhenItMayBe(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		other := r.under(r.held(r.mutex(c)), c, "/other") // keeps the heartbeats busy
		h := r.under(other, c, "/third")
		time.Sleep(time.Second)
		admin := r.Connect("admin")
		_, err := admin.SetACL(r.Ctx, h.Path(), zk.WorldACL(zk.PermAll&^zk.PermRead), client.AnyVersion)
		r.Check(err)
		r.Srv.Client("a").Cut()
		time.Sleep(5 * time.Second)
		_, err = admin.SetACL(r.Ctx, h.Path(), zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		time.Sleep(5 * time.Second)
		r.Check(h.Err())
		r.Check(r.Srv.Delete(h.Path()))
		time.Sleep(time.Second)
		testrig.WantErr(t, h.Err(), recipes.ErrNodeDeleted)
		r.Check(other.Err())
	})
}

// Permits that the caller holds by another client are not waited for.
func TestSemaphoreUnderAnotherClients(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, err := recipes.NewInterProcessSemaphoreMutex(r.Connect("a"), "/sm")
		r.Check(err)
		b, err := recipes.NewInterProcessSemaphoreMutex(r.Connect("b"), "/sm")
		r.Check(err)
		h, err := a.Acquire(r.Ctx)
		r.Check(err)
		_, err = b.Acquire(h.Context())
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		r.Check(h.Release(r.Ctx))
		both, err := recipes.NewInterProcessMultiLock(a, b)
		r.Check(err)
		_, err = both.Acquire(r.Within(10 * time.Minute))
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		r.nothingIn("/sm/locks", "/sm/leases")
	})
}
