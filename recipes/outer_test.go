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
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// within acquires each kind of lock within ctx.
func (r *rig) within4(ctx context.Context, c *client.Client, path string) map[string]recipes.AnyHold {
	r.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2(c, path+"/pool", 3)
	r.Check(err)
	lease, err := s.Acquire(ctx, 2)
	r.Check(err)
	rw, err := recipes.NewInterProcessReadWriteLock(c, path+"/rw")
	r.Check(err)
	write, err := rw.WriteLock().Acquire(ctx)
	r.Check(err)
	one, err := recipes.NewInterProcessMutex(c, path+"/one")
	r.Check(err)
	two, err := recipes.NewInterProcessSemaphoreV2(c, path+"/two", 1)
	r.Check(err)
	multi, err := recipes.NewInterProcessMultiLock(one, two.Permits(1))
	r.Check(err)
	all, err := multi.Acquire(ctx)
	r.Check(err)
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
		testrig.WantErr(r.T, err, recipes.ErrLost, why)
		if !strings.Contains(errText(err), " of "+path+":") {
			r.Errorf("error %v does not name %s", err, path)
		}
	}
	if !h.Deadline().IsZero() {
		r.Errorf("a deadline of %v", h.Deadline())
	}
	_, err := h.Guard(r.Ctx)
	testrig.WantErr(r.T, err, recipes.ErrLost)
	testrig.WantErr(r.T, h.Confirm(r.Ctx), recipes.ErrLost)
	testrig.WantErr(r.T, h.Release(r.Ctx), recipes.ErrLost, why)
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
		a, b := r.Connect("a"), r.Connect("b")
		outer := r.on("/outer", a)
		middle := r.under(outer, b, "/middle")
		inner := r.within4(middle.Context(), b, "/inner")
		inner["mutex"] = r.under(middle, b, "/inner/m")
		time.Sleep(time.Second)
		for kind, h := range inner {
			if err := errors.Join(h.Err(), h.Confirm(r.Ctx)); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		before := len(testrig.Goroutines(r.T, ourFrames))
		r.Check(r.Srv.Delete(outer.Path()))
		<-outer.Context().Done()
		for _, h := range inner {
			r.wantLostWith(h, "/outer", recipes.ErrNodeDeleted)
		}
		r.wantLostWith(middle, "/outer", recipes.ErrNodeDeleted)
		testrig.WantErr(t, outer.Release(r.Ctx), recipes.ErrNodeDeleted)
		time.Sleep(5 * time.Second)
		r.nothingIn("/outer", "/middle", "/inner/m", "/inner/pool/leases", "/inner/rw", "/inner/one", "/inner/two/leases")
		if before > 6+2 { // one for each grant that has a node to watch, as without nesting; a lease of two has two
			t.Errorf("%d goroutines for 6 grants", before)
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// The loss of the one in the middle ends what is inside it, and not the outer.
func TestInnerEndsWhenTheNearestIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		outer := r.on("/outer", a)
		middle := r.under(outer, b, "/middle")
		inner := r.under(middle, a, "/inner")
		time.Sleep(time.Second)
		r.Srv.ExpireSession(r.SessionID(b))
		<-middle.Context().Done()
		r.wantLostWith(inner, "/middle", client.ErrSessionLost)
		r.Check(outer.Err())
		r.Check(outer.Release(r.Ctx))
		testrig.WantErr(t, middle.Release(r.Ctx), recipes.ErrLost)
	})
}

// The release of an outer hold ends nothing, and one further out still counts.
func TestInnerOutlivesTheReleaseOfAnOuter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		outer := r.on("/outer", a)
		middle := r.under(outer, b, "/middle")
		inner := r.under(middle, b, "/inner")
		r.Check(middle.Release(r.Ctx))
		synctest.Wait()
		r.Check(inner.Err())
		r.Check(inner.Context().Err())
		r.Check(r.Srv.Delete(outer.Path()))
		<-inner.Context().Done()
		r.wantLostWith(inner, "/outer", recipes.ErrNodeDeleted)
		testrig.WantErr(t, outer.Release(r.Ctx), recipes.ErrNodeDeleted)

		outer = r.on("/outer", a)
		inner = r.under(outer, b, "/inner")
		r.Check(outer.Release(r.Ctx))
		r.Check(r.on("/outer", b).Release(r.Ctx)) // held by the next, and released
		time.Sleep(time.Minute)
		r.Check(inner.Err())
		r.Check(inner.Release(r.Ctx))
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A lease and each part of a multi-lock are outer holds too. The parts are not
// outer holds of each other: each tells its own loss.
func TestInnerOfALeaseAndOfAMultiLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		for kind, outer := range r.within4(r.Ctx, a, "/out") {
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
			r.Check(r.Srv.Delete(lost))
			<-outer.Context().Done()
			if r.wantLostWith(inner, path, recipes.ErrNodeDeleted); t.Failed() {
				t.Fatal(kind)
			}
			if multi, ok := outer.(*recipes.MultiHold); ok {
				r.Check(multi.Holds()[0].Err())
			}
			testrig.WantErr(t, outer.Release(r.Ctx), recipes.ErrNodeDeleted)
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

func (r *rig) underAny(outer recipes.AnyHold, c *client.Client, path string) *recipes.Hold {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.Check(err)
	h, err := m.Acquire(outer.Context())
	r.Check(err)
	return h
}

// A hold that re-enters is inner to what it was acquired within, and the one that
// it shares the lock with is not.
func TestReentryWithinAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		first := r.held(m)
		between := r.under(first, c, "/between")
		again, err := m.Acquire(between.Context())
		r.Check(err)
		time.Sleep(time.Second)
		r.Check(r.Srv.Delete(between.Path()))
		<-between.Context().Done()
		r.wantLostWith(again, "/between", recipes.ErrNodeDeleted)
		r.Check(first.Err())
		r.Check(first.Context().Err())
		r.Check(first.Release(r.Ctx))
		testrig.WantErr(t, between.Release(r.Ctx), recipes.ErrNodeDeleted)
		r.empty()
	})
}

// An outer hold that is lost while the inner one waits is a loss, whether the
// caller's context ends with it or not. A hold that was lost before counts for nothing.
func TestOuterLostWhileTheInnerWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		for _, detach := range []bool{false, true} {
			outer := r.on("/outer", a)
			blocker := r.held(r.mutex(b))
			ctx := outer.Context()
			if detach {
				ctx = context.WithoutCancel(ctx)
			}
			waits := acquire(ctx, r.mutex(a))
			time.Sleep(time.Second)
			r.Check(r.Srv.Delete(outer.Path()))
			<-outer.Context().Done()
			synctest.Wait()
			r.Check(blocker.Release(r.Ctx))
			res := <-waits
			testrig.WantErr(t, res.err, recipes.ErrLost, recipes.ErrNodeDeleted)
			testrig.WantErr(t, outer.Release(r.Ctx), recipes.ErrNodeDeleted)
			r.empty()

			h, err := r.mutex(a).Acquire(context.WithoutCancel(outer.Context()))
			r.Check(err)
			r.Check(h.Err())
			r.Check(h.Release(r.Ctx))
		}
	})
}

// Err asks the outer hold, and does not wait until the goroutine that tells of its
// loss has run.
func TestInnerErrAsksTheOuter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		for range 100 {
			outer := r.on("/outer", a)
			inner := r.under(outer, b, "/inner")
			r.Check(r.Srv.Delete(outer.Path()))
			testrig.WantErr(t, outer.Confirm(r.Ctx), recipes.ErrLost) // finds it out now
			testrig.WantErr(t, inner.Err(), recipes.ErrLost)
			r.wantLostWith(inner, "/outer", recipes.ErrNodeDeleted)
			testrig.WantErr(t, outer.Release(r.Ctx), recipes.ErrLost)
		}
		outer := r.on("/outer", a)
		inner := r.under(outer, b, "/inner")
		r.Srv.Client("a").Partition()
		<-inner.Context().Done()
		r.wantLostWith(inner, "/outer", client.ErrLeaseExpired)
		r.Srv.Client("a").Heal()
		testrig.WantErr(t, outer.Release(r.Ctx), recipes.ErrLost)
	})
}

// An inner hold that was released with a context of its own is not kept by the outer
// hold.
func TestReleasedInnerIsNotKept(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(r *rig, h *recipes.Hold) error{
		"ctx":     func(r *rig, h *recipes.Hold) error { return h.Release(r.Ctx) },
		"its own": func(_ *rig, h *recipes.Hold) error { return h.Release(h.Context()) },
		"Close":   func(_ *rig, h *recipes.Hold) error { return h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				type value struct{ _ [1 << 20]byte }
				c := r.Connect("a")
				outer := r.held(r.mutex(c))
				const holds = 30
				var freed atomic.Int64
				for i := range holds {
					func() {
						v := new(value)
						runtime.AddCleanup(v, func(int) { freed.Add(1) }, 0)
						type key int
						in, err := r.mutexOn(c, "/inner").Acquire(context.WithValue(outer.Context(), key(i), v))
						r.Check(err)
						r.Check(release(r, in))
					}()
				}
				for range 5 {
					runtime.GC()
					time.Sleep(time.Second)
				}
				if n := freed.Load(); n < holds-3 { // the last ones may be on a stack
					t.Errorf("%d of %d released holds are kept", holds-n, holds)
				}
				r.Check(outer.Close())
			})
		})
	}
}
