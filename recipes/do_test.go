package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

var errWork = errors.New("work failed")

func TestDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m := r.mutex(c)
		ran := 0
		r.check(m.Do(r.ctx, func(ctx context.Context) error {
			ran++
			if len(r.line()) != 1 || ctx.Err() != nil {
				r.Errorf("line %v, %v", r.line(), ctx.Err())
			}
			return m.Do(ctx, func(context.Context) error { // re-enters
				ran++
				return nil
			})
		}))
		err := m.Do(r.ctx, func(context.Context) error { return errWork })
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
		m := r.mutex(r.connect("a"))
		func() {
			defer func() {
				if p := recover(); p != "oops" {
					r.Errorf("recovered %v", p)
				}
			}()
			_ = m.Do(r.ctx, func(context.Context) error { panic("oops") })
		}()
		if line := r.line(); len(line) != 0 {
			r.Errorf("a panic keeps the lock: %v", line)
		}
		r.check(r.held(m).Release(r.ctx))
		wantNoGoroutine(r.T)
	})
}

// fn hears of the loss by its context, and the caller by the error, which
// keeps fn's.
func TestDoLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m := r.mutex(c)
		for _, result := range []error{errWork, nil} {
			err := m.Do(r.ctx, func(ctx context.Context) error {
				r.srv.ExpireSession(r.session(c))
				<-ctx.Done()
				wantErr(t, context.Cause(ctx), recipes.ErrLost, client.ErrSessionLost)
				return result
			})
			wantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
			if result != nil {
				wantErr(t, err, result)
			}
		}
		r.empty()

		// To return why the context ended is usual, and says nothing new.
		err := m.Do(r.ctx, func(ctx context.Context) error {
			r.srv.ExpireSession(r.session(c))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		wantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
		if n := strings.Count(fmt.Sprint(err), recipes.ErrLost.Error()); n != 1 {
			t.Errorf("the loss is told %d times: %v", n, err)
		}
	})
}

// The end of ctx reaches fn and does not take the lock from under it.
func TestDoContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.connect("a"))
		stop := errors.New("stop now")
		ctx, cancel := context.WithCancelCause(context.WithValue(r.ctx, keyType{}, "v"))
		time.AfterFunc(time.Second, func() { cancel(stop) })
		err := m.Do(ctx, func(ctx context.Context) error {
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
		wantErr(t, err, stop)
		if errors.Is(err, recipes.ErrLost) || errors.Is(err, recipes.ErrReleased) {
			r.Errorf("error %v", err)
		}
		if line := r.line(); len(line) != 0 {
			r.Errorf("left: %v", line)
		}

		// What is not obtained is not done.
		h := r.held(r.mutex(r.connect("b")))
		for _, ctx := range []context.Context{ctx, r.within(time.Second)} {
			err = m.Do(ctx, func(context.Context) error { r.Error("ran without the lock"); return nil })
			wantErr(t, err, ctx.Err())
		}
		r.check(h.Release(r.ctx))
		r.empty()
	})
}

// Work that was done and a release that failed: both are told.
func TestDoReleaseFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.connect("a"))
		err := m.Do(r.ctx, func(context.Context) error {
			r.srv.Fail(zktest.Match{Op: zktest.OpDelete}, zktest.CodeNoAuth)
			return errWork
		})
		var lockErr *recipes.LockError
		if !errors.Is(err, errWork) || !errors.As(err, &lockErr) || lockErr.Op != "release" || errors.Is(err, recipes.ErrLost) {
			r.Errorf("Do = %v", err)
		}
		r.empty() // in the background
	})
}
