package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

type keyType struct{}

// The hold's context has the values of Acquire's, and not its end.
func TestHoldContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		ctx, cancel := context.WithTimeout(context.WithValue(r.Ctx, keyType{}, "v"), time.Second)
		h, err := m.Acquire(ctx)
		r.Check(err)
		cancel()
		time.Sleep(2 * time.Second)
		hctx := h.Context()
		if _, has := hctx.Deadline(); has || hctx.Err() != nil || hctx.Value(keyType{}) != "v" {
			r.Errorf("deadline %v, %v, value %v", has, hctx.Err(), hctx.Value(keyType{}))
		}
		r.Check(h.Err())
		n, there := r.Srv.Node(h.Path())
		if !there || n.Stat.Czxid != h.FencingToken() {
			r.Errorf("token %d, node %+v", h.FencingToken(), n)
		}
		r.Check(h.Release(r.Ctx))
		<-hctx.Done()
		testrig.WantErr(r.T, context.Cause(hctx), recipes.ErrReleased)
		testrig.WantErr(r.T, h.Err(), recipes.ErrReleased)
		if errors.Is(h.Err(), recipes.ErrLost) {
			r.Errorf("%v: it was not lost", h.Err())
		}
		r.empty()
	})
}

func TestReentry(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		m, err := recipes.NewInterProcessMutex(c, "/x/l")
		r.Check(err)
		x, err := c.Namespace("x")
		r.Check(err)
		same, err := recipes.NewInterProcessMutex(x, "/l")
		r.Check(err)
		outer, err := m.Acquire(context.WithValue(r.Ctx, keyType{}, "outer"))
		r.Check(err)
		r.Srv.ResetCounts()
		inner, err := same.Acquire(context.WithValue(outer.Context(), keyType{}, "inner"))
		r.Check(err)
		third, err := m.TryAcquire(inner.Context())
		r.Check(err)
		if n := len(r.Srv.Counts()); n != 0 && r.Srv.Counts()[zktest.OpPing] == 0 {
			r.Errorf("re-entry asked the server: %v", r.Srv.Counts())
		}
		if inner.Path() != outer.Path() || third.FencingToken() != outer.FencingToken() || inner.Context().Value(keyType{}) != "inner" {
			r.Errorf("inner %s, outer %s", inner.Path(), outer.Path())
		}
		// In whatever order they are released, the last one frees the lock.
		r.Check(outer.Release(r.Ctx))
		r.Check(outer.Release(r.Ctx)) // again: counts once
		r.Check(third.Release(r.Ctx))
		testrig.WantErr(r.T, outer.Err(), recipes.ErrReleased)
		r.Check(inner.Err())
		if _, there := r.Srv.Node("/ns" + inner.Path()); !there {
			r.Fatal("free although held")
		}
		r.Check(inner.Close())
		if _, there := r.Srv.Node("/ns" + inner.Path()); there {
			r.Error("held although free")
		}
		// A context of the past is no hold: it queues.
		again, err := m.Acquire(context.WithoutCancel(inner.Context()))
		r.Check(err)
		if again.Path() == inner.Path() || again.FencingToken() <= inner.FencingToken() {
			r.Errorf("again %s", again.Path())
		}
		// Another lock is another lock.
		other, err := recipes.NewInterProcessMutex(c, "/x/m")
		r.Check(err)
		h, err := other.Acquire(again.Context())
		r.Check(err)
		r.Check(h.Release(r.Ctx))
		r.Check(again.Release(r.Ctx))
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A hold that was lost cannot be re-entered: local memory is no lock.
func TestReentryAfterLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		h := r.held(m)
		r.Srv.ExpireSession(r.SessionID(c))
		<-h.Context().Done()
		for _, acquire := range []func(context.Context) (*recipes.Hold, error){m.Acquire, m.TryAcquire} {
			got, err := acquire(context.WithoutCancel(h.Context()))
			testrig.WantErr(r.T, err, recipes.ErrLost, client.ErrSessionLost)
			if got != nil {
				r.Error("entered a lost lock")
			}
		}
		testrig.WantErr(r.T, h.Release(r.Ctx), recipes.ErrLost)
		fresh := r.held(m) // by another context
		r.Check(fresh.Release(r.Ctx))
		r.empty()
	})
}

// Every call gets the first result, and the node is deleted once.
func TestReleaseIsIdempotent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		r.Srv.ResetCounts()
		for range 5 {
			r.Check(h.Release(r.Ctx))
			r.Check(h.Close())
		}
		if n := r.Srv.Count(zktest.OpDelete); n != 1 {
			r.Errorf("%d deletes", n)
		}
	})
}

// The test runs outside of a bubble, whose clock stops while a goroutine waits
// for a mutex.
func TestReleaseConcurrently(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	c := testrig.Connect(t.Context(), t, "zk", srv.DialContext)
	m, err := recipes.NewInterProcessMutex(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	h, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		wg.Go(func() {
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	if h, err = m.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Freeze()
	began := make(chan struct{})
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(50*time.Millisecond, func() { close(began) })
		testrig.WantErr(t, h.Release(ctx), context.DeadlineExceeded)
	})
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	testrig.WantErr(t, h.Release(ctx), context.DeadlineExceeded)
	if took := time.Since(start); took > 500*time.Millisecond {
		t.Errorf("a second Release took %v, its limit was 50ms", took)
	}
	wg.Wait()
	srv.Thaw()
	if err := c.CloseContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// A release that fails is made good in the background; a lost answer is no
// failure.
func TestReleaseInTrouble(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.LoseReply, r.Srv.DropBefore} {
			h := r.held(m)
			fault(zktest.Match{Op: zktest.OpDelete})
			r.Check(h.Release(r.Ctx))
			if line := r.line(); len(line) != 0 {
				r.Errorf("left: %v", line)
			}
		}
		for name, release := range map[string]func(h *recipes.Hold) error{
			"limit":         func(h *recipes.Hold) error { return h.Release(r.Within(time.Second)) },
			"Close":         func(h *recipes.Hold) error { time.AfterFunc(time.Second, r.Srv.Thaw); return h.Close() },
			"no limit left": func(h *recipes.Hold) error { return h.Release(r.Within(-1)) },
		} {
			h := r.held(m)
			r.Srv.Freeze()
			start := time.Now()
			err := release(h)
			if took := time.Since(start); took > time.Second+10*time.Millisecond {
				r.Errorf("%s: took %v", name, took)
			}
			if name != "Close" {
				testrig.WantErr(r.T, err, context.DeadlineExceeded)
			} else {
				r.Check(err)
			}
			testrig.WantErr(r.T, h.Err(), recipes.ErrReleased)
			r.Srv.Thaw()
			r.empty()
		}
	})
}

// Acquire returns when its context ends at any moment of its way, and leaves
// nothing.
func TestAcquireCancelledAtEveryStep(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		other := r.mutex(r.Connect("b"))
		for _, free := range []bool{true, false} {
			for step := range 60 {
				var h *recipes.Hold
				if !free {
					h = r.held(other)
				}
				limit := time.Duration(step) * 73 * time.Microsecond
				ctx, cancel := context.WithTimeout(r.Ctx, limit)
				start := time.Now()
				got, err := m.Acquire(ctx)
				if took := time.Since(start); took > limit {
					r.Errorf("limit %v: took %v", limit, took)
				}
				cancel()
				switch {
				case err == nil && !free:
					r.Fatal("two holders")
				case err == nil:
					r.Check(got.Release(r.Ctx))
				default:
					testrig.WantErr(t, err, context.DeadlineExceeded)
					var lockErr *recipes.LockError
					if !errors.As(err, &lockErr) || lockErr.Op != "acquire" || lockErr.Path != dir {
						r.Errorf("error %#v", err)
					}
				}
				if h != nil {
					r.Check(h.Release(r.Ctx))
				}
			}
			r.empty()
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A hold prints as its lock and its token, not as its insides.
func TestHoldString(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		other, err := recipes.NewInterProcessMutex(c, "/other")
		r.Check(err)
		pair, err := recipes.NewInterProcessMultiLock(other, r.semaphore(c, 1).Permits(1))
		r.Check(err)
		both, err := pair.Acquire(r.Ctx)
		r.Check(err)
		h, term := r.held(r.mutex(c)), r.leads(r.latch(c, "a"))
		for got, want := range map[string]string{
			fmt.Sprint(h):           fmt.Sprintf("hold of %s, token %d", dir, h.FencingToken()),
			fmt.Sprintf("%v", term): fmt.Sprintf("hold of %s, token %d", term.LockPath(), term.FencingToken()),
			both.String():           fmt.Sprintf("hold of /other+/pools/db, token %d", both.FencingToken()),
		} {
			if got != want {
				r.Errorf("printed %q, want %q", got, want)
			}
		}
	})
}
