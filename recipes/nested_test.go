package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The contexts of holds are the contexts of what is done under them: how one
// hold ends must not pass for the end of another.

func (r *rig) under(outer *recipes.Hold, c *client.Client, path string) *recipes.Hold {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.check(err)
	h, err := m.Acquire(outer.Context())
	r.check(err)
	return h
}

// on holds a lock of its own.
func (r *rig) on(path string, c *client.Client) *recipes.Hold {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.check(err)
	return r.held(m)
}

func TestReleaseInALostContextOfAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		outer := r.held(r.mutex(c))
		inner := r.on("/other", c) // within no other, and released in the other's context
		time.Sleep(time.Second)
		r.check(r.srv.Delete(outer.Path()))
		time.Sleep(time.Second)
		r.check(inner.Err())
		err := inner.Release(outer.Context())
		wantErr(t, err, context.Canceled)
		if errors.Is(err, recipes.ErrLost) {
			t.Errorf("the inner was not lost: %v", err)
		}
	})
}

// A guarded write that may have been applied is not said to be refused.
func TestGuardInALostContextOfAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		outer := r.held(r.mutex(r.connect("b")))
		inner := r.on("/other", r.connect("a"))
		r.check(r.srv.Create("/x", nil))
		time.Sleep(time.Second)
		r.srv.DelayReply(zktest.Match{Client: "a", Op: zktest.OpMulti, Path: "/x"}, time.Second)
		go func() {
			time.Sleep(100 * time.Millisecond)
			_ = r.srv.Delete(outer.Path())
		}()
		_, err := inner.Guard(outer.Context(), client.SetOp("/x", []byte("written"), client.AnyVersion))
		if err != nil && (!client.UnknownOutcome(err) || errors.Is(err, recipes.ErrLost)) {
			t.Errorf("error %v", err)
		}
		_, err = inner.Guard(outer.Context(), client.SetOp("/x", nil, client.AnyVersion))
		if err == nil || errors.Is(err, recipes.ErrLost) {
			t.Errorf("in a context that had ended: %v", err)
		}
		r.check(inner.Err())
		r.check(inner.Release(r.ctx))
	})
}

func TestGuardMayNotCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		h := r.held(r.mutex(c))
		r.check(r.srv.Create("/x", nil))
		_, err := c.SetACL(r.ctx, h.Path(), zk.WorldACL(zk.PermDelete|zk.PermAdmin), client.AnyVersion)
		r.check(err)
		_, err = h.Guard(r.ctx, client.SetOp("/x", []byte("w"), client.AnyVersion))
		var part *client.MultiError
		if !refused(err) || !errors.Is(err, zk.ErrNoAuth) || errors.As(err, &part) {
			t.Errorf("error %v", err)
		}
		r.check(h.Release(r.ctx))
	})
}

// Do waits for the release no longer than a second once its context has ended.
func TestDoInAPartition(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.connect("a"))
		begun := time.Now()
		err := m.Do(r.within(time.Second), func(ctx context.Context, _ *recipes.Hold) error {
			r.srv.Client("a").Partition()
			<-ctx.Done()
			return ctx.Err()
		})
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		r.srv.Client("a").Heal()
		r.empty()
	})
}

// If the right to read its node is missing for a while, the holder is blind for
// no longer.
func TestOwnNodeIsWatchedAgainWhenItMayBe(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		other := r.under(r.held(r.mutex(c)), c, "/other") // keeps the heartbeats busy
		h := r.under(other, c, "/third")
		time.Sleep(time.Second)
		admin := r.connect("admin")
		_, err := admin.SetACL(r.ctx, h.Path(), zk.WorldACL(zk.PermAll&^zk.PermRead), client.AnyVersion)
		r.check(err)
		r.srv.Client("a").Cut()
		time.Sleep(5 * time.Second)
		_, err = admin.SetACL(r.ctx, h.Path(), zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.check(err)
		time.Sleep(5 * time.Second)
		r.check(h.Err())
		r.check(r.srv.Delete(h.Path()))
		time.Sleep(time.Second)
		wantErr(t, h.Err(), recipes.ErrNodeDeleted)
		r.check(other.Err())
	})
}

// Permits that the caller holds by another client are not waited for.
func TestSemaphoreUnderAnotherClients(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, err := recipes.NewInterProcessSemaphoreMutex(r.connect("a"), "/sm")
		r.check(err)
		b, err := recipes.NewInterProcessSemaphoreMutex(r.connect("b"), "/sm")
		r.check(err)
		h, err := a.Acquire(r.ctx)
		r.check(err)
		_, err = b.Acquire(h.Context())
		wantErr(t, err, recipes.ErrWouldDeadlock)
		r.check(h.Release(r.ctx))
		both, err := recipes.NewInterProcessMultiLock(a, b)
		r.check(err)
		_, err = both.Acquire(r.within(10 * time.Minute))
		wantErr(t, err, recipes.ErrWouldDeadlock)
		r.nothingIn("/sm/locks", "/sm/leases")
	})
}
