package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

var errWork = errors.New("work failed")

func TestDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		ran := 0
		r.Check(m.Do(r.Ctx, func(ctx context.Context, _ *recipes.Hold) error {
			ran++
			if len(r.line()) != 1 || ctx.Err() != nil {
				r.Errorf("line %v, %v", r.line(), ctx.Err())
			}
			return m.Do(ctx, func(context.Context, *recipes.Hold) error { // re-enters
				ran++
				return nil
			})
		}))
		err := m.Do(r.Ctx, func(context.Context, *recipes.Hold) error { return errWork })
		if ran != 2 || !errors.Is(err, errWork) || err.Error() != errWork.Error() {
			r.Errorf("ran %d, %v", ran, err)
		}
		if line := r.line(); len(line) != 0 {
			r.Errorf("left: %v", line)
		}
	})
}

func TestDoPanic(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		func() {
			defer func() {
				if p := recover(); p != "oops" {
					r.Errorf("recovered %v", p)
				}
			}()
			_ = m.Do(r.Ctx, func(context.Context, *recipes.Hold) error { panic("oops") })
		}()
		if line := r.line(); len(line) != 0 {
			r.Errorf("a panic keeps the lock: %v", line)
		}
		r.Check(r.held(m).Release(r.Ctx))
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// fn hears of the loss by its context, and the caller by the error, which
// keeps fn's.
func TestDoLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		for _, result := range []error{errWork, nil} {
			err := m.Do(r.Ctx, func(ctx context.Context, _ *recipes.Hold) error {
				r.Srv.ExpireSession(r.SessionID(c))
				<-ctx.Done()
				testrig.WantErr(t, context.Cause(ctx), recipes.ErrLost, client.ErrSessionLost)
				return result
			})
			testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
			if result != nil {
				testrig.WantErr(t, err, result)
			}
		}
		r.empty()

		// To return why the context ended is usual, and says nothing new.
		err := m.Do(r.Ctx, func(ctx context.Context, _ *recipes.Hold) error {
			r.Srv.ExpireSession(r.SessionID(c))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
		if n := strings.Count(fmt.Sprint(err), recipes.ErrLost.Error()); n != 1 {
			t.Errorf("the loss is told %d times: %v", n, err)
		}
	})
}

// The end of ctx reaches fn and does not take the lock from under it.
func TestDoContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		stop := errors.New("stop now")
		ctx, cancel := context.WithCancelCause(context.WithValue(r.Ctx, keyType{}, "v"))
		time.AfterFunc(time.Second, func() { cancel(stop) })
		err := m.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
			if ctx.Value(keyType{}) != "v" {
				r.Error("the values are missing")
			}
			<-ctx.Done()
			time.Sleep(time.Second) // cleaning up
			if len(r.line()) != 1 {
				r.Error("the lock was released while fn ran")
			}
			return context.Cause(ctx)
		})
		testrig.WantErr(t, err, stop)
		if errors.Is(err, recipes.ErrLost) || errors.Is(err, recipes.ErrReleased) {
			r.Errorf("error %v", err)
		}
		if line := r.line(); len(line) != 0 {
			r.Errorf("left: %v", line)
		}

		// What is not obtained is not done.
		h := r.held(r.mutex(r.Connect("b")))
		for _, ctx := range []context.Context{ctx, r.Within(time.Second)} {
			err = m.Do(ctx, func(context.Context, *recipes.Hold) error { r.Error("ran without the lock"); return nil })
			testrig.WantErr(t, err, ctx.Err())
		}
		r.Check(h.Release(r.Ctx))
		r.empty()
	})
}

// Work that was done and a release that failed: both are told.
func TestDoReleaseFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		err := m.Do(r.Ctx, func(context.Context, *recipes.Hold) error {
			r.Srv.Fail(zktest.Match{Op: zktest.OpDelete}, zktest.CodeNoAuth)
			return errWork
		})
		var lockErr *recipes.LockError
		if !errors.Is(err, errWork) || !errors.As(err, &lockErr) || lockErr.Op != "release" || errors.Is(err, recipes.ErrLost) {
			r.Errorf("Do = %v", err)
		}
		r.empty() // in the background
	})
}

// The usual mistake: fn returns its context's error. A loss is told as a loss
// alone, and the caller's end as that alone.
func TestDoTellsALossFromACancellation(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		untilEnd := func(ctx context.Context, _ *recipes.Hold) error {
			<-ctx.Done()
			return fmt.Errorf("writing: %w", ctx.Err())
		}
		time.AfterFunc(time.Second, func() { r.Srv.ExpireSession(r.SessionID(c)) })
		err := m.Do(r.Within(time.Minute), untilEnd)
		testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
		testrig.WantNoErr(t, err, context.Canceled, context.DeadlineExceeded)
		if !strings.Contains(fmt.Sprint(err), "writing: context canceled") {
			t.Errorf("what fn said is gone: %v", err)
		}

		// Of two timers that end at the same time either may be first.
		for range 20 {
			err = m.Do(r.Within(time.Second), untilEnd)
			testrig.WantErr(t, err, context.DeadlineExceeded)
			testrig.WantNoErr(t, err, context.Canceled, recipes.ErrLost, recipes.ErrReleased)
		}
		ctx, cancel := context.WithCancel(r.Ctx)
		time.AfterFunc(time.Second, cancel)
		err = m.Do(ctx, untilEnd)
		testrig.WantErr(t, err, context.Canceled)
		testrig.WantNoErr(t, err, context.DeadlineExceeded, recipes.ErrLost, recipes.ErrReleased)

		// Both: the caller has ended, and the lock is lost while fn cleans up.
		ctx, cancel = context.WithCancel(r.Ctx)
		defer cancel()
		err = m.Do(ctx, func(ctx context.Context, h *recipes.Hold) error {
			cancel()
			<-ctx.Done()
			r.Srv.ExpireSession(r.SessionID(c))
			<-h.Context().Done()
			return ctx.Err()
		})
		testrig.WantErr(t, err, recipes.ErrLost)
		testrig.WantNoErr(t, err, context.Canceled)

		// An error of fn's own is found, also as what it is.
		own := &os.PathError{Op: "write", Path: "/stock", Err: context.Canceled}
		err = m.Do(r.Ctx, func(ctx context.Context, _ *recipes.Hold) error {
			r.Srv.ExpireSession(r.SessionID(c))
			<-ctx.Done()
			return own
		})
		var found *os.PathError
		testrig.WantErr(t, err, recipes.ErrLost, own)
		if testrig.WantNoErr(t, err, context.Canceled); !errors.As(err, &found) || found != own {
			t.Errorf("%v, %v", err, found)
		}
		r.empty()
	})
}

// TryDo runs fn or names at once the holder in the way.
func TestTryDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m, other := r.mutex(r.Connect("a")), r.mutex(r.Connect("b"))
		h := r.held(other)
		begun := time.Now()
		err := m.TryDo(r.Ctx, func(context.Context, *recipes.Hold) error { panic("ran without the lock") })
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || busy.Holder.Path != h.Path() || time.Since(begun) > time.Second {
			t.Errorf("TryDo = %v after %v", err, time.Since(begun))
		}
		r.Check(h.Release(r.Ctx))
		ran := false
		err = m.TryDo(r.Ctx, func(ctx context.Context, h *recipes.Hold) error {
			ran = true
			if ctx.Err() != nil || h.Err() != nil || h.LockPath() != dir || len(r.line()) != 1 {
				t.Errorf("%v, %v, %q, line %v", ctx.Err(), h.Err(), h.LockPath(), r.line())
			}
			return errWork
		})
		if !ran || !errors.Is(err, errWork) {
			t.Errorf("ran %v, %v", ran, err)
		}
		r.empty()
	})
}

// A function that ends Do's context itself and returns nil has not failed.
func TestDoNilAfterCancel(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for range 200 {
			ctx, cancel := context.WithCancel(r.Ctx)
			r.Check(m.Do(ctx, func(context.Context, *recipes.Hold) error { cancel(); return nil }))
		}
	})
}

// Without a function there is nothing to do under a lock, so none is asked for.
func TestDoOfNoFunction(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m, e := r.mutex(c), r.latch(c, "a")
		h := r.held(m)
		for name, try := range map[string]func() error{
			"Do":    func() error { return m.Do(r.Ctx, nil) },
			"TryDo": func() error { return m.TryDo(r.Ctx, nil) },
			"lead":  func() error { return e.Do(r.Ctx, nil) },
			"Run":   func() error { return e.Run(r.Ctx, nil) },
		} {
			begun := time.Now()
			if err := try(); err == nil || err.Error() != "recipes: the function is nil; pass the work to do while the lock is held" || time.Since(begun) != 0 {
				r.Errorf("%s of a nil function: %v, after %v", name, err, time.Since(begun))
			}
		}
		r.Check(h.Close())
		r.inElection(0)
	})
}
