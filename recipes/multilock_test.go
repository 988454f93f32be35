package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

func (r *rig) multi(c *client.Client, paths ...string) *recipes.InterProcessMultiLock {
	r.Helper()
	locks := make([]recipes.Lock, len(paths))
	for i, path := range paths {
		m, err := recipes.NewInterProcessMutex(c, path)
		r.Check(err)
		locks[i] = m
	}
	m, err := recipes.NewInterProcessMultiLock(locks...)
	r.Check(err)
	return m
}

// nothingIn checks that no node is left in the locks.
func (r *rig) nothingIn(paths ...string) {
	r.Helper()
	time.Sleep(5 * time.Second)
	for _, path := range paths {
		if left := r.Srv.Children(path); len(left) != 0 {
			r.Errorf("left in %s: %v", path, left)
		}
	}
}

func TestMultiLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		h, err := r.multi(a, "/x", "/y", "/z").Acquire(r.Ctx)
		r.Check(err)
		token := h.FencingToken()
		for i, one := range h.Holds() {
			if one.FencingToken() != token || one.Path()[:2] != []string{"/x", "/y", "/z"}[i] {
				t.Errorf("hold %d: %s, token %d, want %d", i, one.Path(), one.FencingToken(), token)
			}
		}
		var busy *recipes.BusyError
		if _, err := r.multi(b, "/free", "/z").TryAcquire(r.Ctx); !errors.As(err, &busy) || busy.Holder.Path != h.Holds()[2].Path() {
			t.Errorf("TryAcquire = %v", err)
		}
		single, err := recipes.NewInterProcessMutex(b, "/y")
		r.Check(err)
		waiting := acquire(r.Ctx, single)
		time.Sleep(time.Second)
		r.Check(h.Err())
		r.Check(h.Close())
		testrig.WantErr(t, h.Err(), recipes.ErrReleased)
		testrig.WantErr(t, context.Cause(h.Context()), recipes.ErrReleased)
		got := <-waiting
		r.Check(got.err)
		if got.hold.FencingToken() <= token {
			t.Errorf("token %d after %d", got.hold.FencingToken(), token)
		}
		r.Check(got.hold.Close())
		r.nothingIn("/x", "/y", "/z", "/free")
	})
}

// Whatever locks they share, they never wait for each other as long as all name
// them in one order.
func TestMultiLocksDoNotDeadlock(t *testing.T) {
	t.Parallel()
	for name, orders := range map[string][][]string{
		"same":        {{"/y", "/x"}, {"/y", "/x"}},
		"overlapping": {{"/x", "/y"}, {"/y", "/z"}, {"/x", "/z"}},
		"both":        {{"/x", "/y"}, {"/x", "/y"}, {"/x", "/y", "/z"}, {"/y", "/z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { r.doNotDeadlock(orders) })
		})
	}
}

func (r *rig) doNotDeadlock(orders [][]string) {
	r.Helper()
	const rounds = overlappingTurns
	done := make(chan error, len(orders))
	inside := map[string]string{} // one at a time, or -race tells
	for i, order := range orders {
		m := r.multi(r.Connect(name(i)), order...)
		work := func(context.Context, *recipes.MultiHold) error {
			for _, path := range order {
				if inside[path] != "" {
					return fmt.Errorf("%s and %s in %s", inside[path], name(i), path)
				}
				inside[path] = name(i)
			}
			time.Sleep(time.Millisecond)
			for _, path := range order {
				inside[path] = ""
			}
			return nil
		}
		go func() {
			for range rounds / len(orders) {
				ctx, cancel := context.WithTimeout(r.Ctx, time.Minute)
				err := m.Do(ctx, work)
				cancel()
				if err != nil {
					done <- fmt.Errorf("%v: %w", order, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range orders {
		if err := <-done; err != nil {
			r.Error(err)
		}
	}
	r.nothingIn("/x", "/y")
	testrig.WantNoGoroutine(r.T, ourFrames)
}

// While a multi-lock waits for a lock it stands in no queue behind, in the order
// named, whatever the paths. So a Curator client that takes its locks in the same
// order is ahead in all of them, or behind in all.
func TestMultiLockWithdraws(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		single, err := recipes.NewInterProcessMutex(r.Connect("b"), "/y")
		r.Check(err)
		first := r.held(single)
		m := r.multi(r.Connect("a"), "/y", "/x")
		got := make(chan error, 1)
		go func() {
			h, err := m.Acquire(r.Ctx)
			if err == nil {
				err = h.Close()
			}
			got <- err
		}()
		time.Sleep(time.Second)
		if in := r.Srv.Children("/x"); len(in) != 0 || len(r.Srv.Children("/y")) != 2 {
			t.Errorf("waiting in /x as well: %v", in)
		}
		r.Check(first.Close())
		r.Check(<-got)
		r.nothingIn("/x", "/y")
	})
}
