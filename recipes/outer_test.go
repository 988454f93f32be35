package recipes_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// within acquires each kind of lock within ctx.
func (r *rig) within4(ctx context.Context, c *client.Client, path string) map[string]recipes.AnyHold {
	r.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2(c, path+"/pool", 3)
	r.check(err)
	lease, err := s.Acquire(ctx, 2)
	r.check(err)
	rw, err := recipes.NewInterProcessReadWriteLock(c, path+"/rw")
	r.check(err)
	write, err := rw.WriteLock().Acquire(ctx)
	r.check(err)
	one, err := recipes.NewInterProcessMutex(c, path+"/one")
	r.check(err)
	two, err := recipes.NewInterProcessSemaphoreV2(c, path+"/two", 1)
	r.check(err)
	multi, err := recipes.NewInterProcessMultiLock(one, two.Permits(1))
	r.check(err)
	all, err := multi.Acquire(ctx)
	r.check(err)
	return map[string]recipes.AnyHold{"semaphore": lease, "write": write, "multi": all}
}

// wantLostWith checks that h was lost with the hold of the lock at path, at once.
func (r *rig) wantLostWith(h recipes.AnyHold, path string, why error) {
	r.Helper()
	synctest.Wait()
	if h.Context().Err() == nil {
		r.Error("the context goes on")
	}
	for _, err := range []error{h.Err(), context.Cause(h.Context())} {
		wantErr(r.T, err, recipes.ErrLost, why)
		if !strings.Contains(errText(err), " of "+path+":") {
			r.Errorf("error %v does not name %s", err, path)
		}
	}
	if !h.Deadline().IsZero() {
		r.Errorf("a deadline of %v", h.Deadline())
	}
	_, err := h.Guard(r.ctx)
	wantErr(r.T, err, recipes.ErrLost)
	wantErr(r.T, h.Confirm(r.ctx), recipes.ErrLost)
	wantErr(r.T, h.Release(r.ctx), recipes.ErrLost, why)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// An inner hold of any kind and client ends when an outer one is lost, at any
// distance. Its nodes are deleted with its release.
func TestInnerEndsWhenAnOuterIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		outer := r.on("/outer", a)
		middle := r.under(outer, b, "/middle")
		inner := r.within4(middle.Context(), b, "/inner")
		inner["mutex"] = r.under(middle, b, "/inner/m")
		time.Sleep(time.Second)
		for kind, h := range inner {
			if err := errors.Join(h.Err(), h.Confirm(r.ctx)); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		before := len(busyGoroutines())
		r.check(r.srv.Delete(outer.Path()))
		<-outer.Context().Done()
		for _, h := range inner {
			r.wantLostWith(h, "/outer", recipes.ErrNodeDeleted)
		}
		r.wantLostWith(middle, "/outer", recipes.ErrNodeDeleted)
		wantErr(t, outer.Release(r.ctx), recipes.ErrNodeDeleted)
		time.Sleep(5 * time.Second)
		r.nothingIn("/outer", "/middle", "/inner/m", "/inner/pool/leases", "/inner/rw", "/inner/one", "/inner/two/leases")
		if before > 6+2 { // one for each grant that has a node to watch, as without nesting; a lease of two has two
			t.Errorf("%d goroutines for 6 grants", before)
		}
		wantNoGoroutine(t)
	})
}

// The loss of the one in the middle ends what is inside it, and not the outer.
func TestInnerEndsWhenTheNearestIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		outer := r.on("/outer", a)
		middle := r.under(outer, b, "/middle")
		inner := r.under(middle, a, "/inner")
		time.Sleep(time.Second)
		r.srv.ExpireSession(r.session(b))
		<-middle.Context().Done()
		r.wantLostWith(inner, "/middle", client.ErrSessionLost)
		r.check(outer.Err())
		r.check(outer.Release(r.ctx))
		wantErr(t, middle.Release(r.ctx), recipes.ErrLost)
	})
}

// The release of an outer hold ends nothing, and one further out still counts.
func TestInnerOutlivesTheReleaseOfAnOuter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		outer := r.on("/outer", a)
		middle := r.under(outer, b, "/middle")
		inner := r.under(middle, b, "/inner")
		r.check(middle.Release(r.ctx))
		synctest.Wait()
		r.check(inner.Err())
		r.check(inner.Context().Err())
		r.check(r.srv.Delete(outer.Path()))
		<-inner.Context().Done()
		r.wantLostWith(inner, "/outer", recipes.ErrNodeDeleted)
		wantErr(t, outer.Release(r.ctx), recipes.ErrNodeDeleted)

		outer = r.on("/outer", a)
		inner = r.under(outer, b, "/inner")
		r.check(outer.Release(r.ctx))
		r.check(r.on("/outer", b).Release(r.ctx)) // held by the next, and released
		time.Sleep(time.Minute)
		r.check(inner.Err())
		r.check(inner.Release(r.ctx))
		wantNoGoroutine(t)
	})
}

// A lease and each part of a multi-lock are outer holds too. The parts are not
// outer holds of each other: each tells its own loss.
func TestInnerOfALeaseAndOfAMultiLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		for kind, outer := range r.within4(r.ctx, a, "/out") {
			inner := r.underAny(outer, b, "/inner")
			lost, path := "", outer.LockPath()
			switch h := outer.(type) {
			case *recipes.Lease:
				lost = h.Paths()[1]
			case *recipes.WriteHold:
				lost = h.Path()
			case *recipes.MultiHold:
				lost, path = h.Holds()[1].Path(), h.Holds()[1].LockPath()
			}
			time.Sleep(time.Second)
			r.check(r.srv.Delete(lost))
			<-outer.Context().Done()
			if r.wantLostWith(inner, path, recipes.ErrNodeDeleted); t.Failed() {
				t.Fatal(kind)
			}
			if multi, ok := outer.(*recipes.MultiHold); ok {
				r.check(multi.Holds()[0].Err())
			}
			wantErr(t, outer.Release(r.ctx), recipes.ErrNodeDeleted)
		}
		wantNoGoroutine(t)
	})
}

func (r *rig) underAny(outer recipes.AnyHold, c *client.Client, path string) *recipes.Hold {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.check(err)
	h, err := m.Acquire(outer.Context())
	r.check(err)
	return h
}

// A hold that re-enters is inner to what it was acquired within, and the one that
// it shares the lock with is not.
func TestReentryWithinAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m := r.mutex(c)
		first := r.held(m)
		between := r.under(first, c, "/between")
		again, err := m.Acquire(between.Context())
		r.check(err)
		time.Sleep(time.Second)
		r.check(r.srv.Delete(between.Path()))
		<-between.Context().Done()
		r.wantLostWith(again, "/between", recipes.ErrNodeDeleted)
		r.check(first.Err())
		r.check(first.Context().Err())
		r.check(first.Release(r.ctx))
		wantErr(t, between.Release(r.ctx), recipes.ErrNodeDeleted)
		r.empty()
	})
}

// An outer hold that is lost while the inner one waits is a loss, whether the
// caller's context ends with it or not. A hold that was lost before counts for nothing.
func TestOuterLostWhileTheInnerWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		for _, detach := range []bool{false, true} {
			outer := r.on("/outer", a)
			blocker := r.held(r.mutex(b))
			ctx := outer.Context()
			if detach {
				ctx = context.WithoutCancel(ctx)
			}
			waits := acquire(ctx, r.mutex(a))
			time.Sleep(time.Second)
			r.check(r.srv.Delete(outer.Path()))
			<-outer.Context().Done()
			synctest.Wait()
			r.check(blocker.Release(r.ctx))
			res := <-waits
			wantErr(t, res.err, recipes.ErrLost, recipes.ErrNodeDeleted)
			wantErr(t, outer.Release(r.ctx), recipes.ErrNodeDeleted)
			r.empty()

			h, err := r.mutex(a).Acquire(context.WithoutCancel(outer.Context()))
			r.check(err)
			r.check(h.Err())
			r.check(h.Release(r.ctx))
		}
	})
}

// Err asks the outer hold, and does not wait until the goroutine that tells of its
// loss has run.
func TestInnerErrAsksTheOuter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		for range 100 {
			outer := r.on("/outer", a)
			inner := r.under(outer, b, "/inner")
			r.check(r.srv.Delete(outer.Path()))
			wantErr(t, outer.Confirm(r.ctx), recipes.ErrLost) // finds it out now
			wantErr(t, inner.Err(), recipes.ErrLost)
			r.wantLostWith(inner, "/outer", recipes.ErrNodeDeleted)
			wantErr(t, outer.Release(r.ctx), recipes.ErrLost)
		}
		outer := r.on("/outer", a)
		inner := r.under(outer, b, "/inner")
		r.srv.Client("a").Partition()
		<-inner.Context().Done()
		r.wantLostWith(inner, "/outer", client.ErrLeaseExpired)
		r.srv.Client("a").Heal()
		wantErr(t, outer.Release(r.ctx), recipes.ErrLost)
	})
}

// An inner hold that was released with a context of its own is not kept by the outer
// hold.
func TestReleasedInnerIsNotKept(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(r *rig, h *recipes.Hold) error{
		"ctx":     func(r *rig, h *recipes.Hold) error { return h.Release(r.ctx) },
		"its own": func(_ *rig, h *recipes.Hold) error { return h.Release(h.Context()) },
		"Close":   func(_ *rig, h *recipes.Hold) error { return h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				type value struct{ _ [1 << 20]byte }
				c := r.connect("a")
				outer := r.held(r.mutex(c))
				const holds = 30
				var freed atomic.Int64
				for i := range holds {
					func() {
						v := new(value)
						runtime.AddCleanup(v, func(int) { freed.Add(1) }, 0)
						type key int
						in, err := r.mutexOn(c, "/inner").Acquire(context.WithValue(outer.Context(), key(i), v))
						r.check(err)
						r.check(release(r, in))
					}()
				}
				for range 5 {
					runtime.GC()
					time.Sleep(time.Second)
				}
				if n := freed.Load(); n < holds-3 { // the last ones may be on a stack
					t.Errorf("%d of %d released holds are kept", holds-n, holds)
				}
				r.check(outer.Close())
			})
		})
	}
}
