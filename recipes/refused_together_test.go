package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A multi-lock beside kazoo is refused because the counter of a queue is at its end. Once the
// counter is in order again, the refused acquire has left no trace: nothing counts it as a
// contender, and nobody waits behind its node.
func TestRefusedTogetherLeavesNoMember(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]recipes.LockOption{"control": nil, "kazoo": {recipes.WithKazoo()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				lock := func(path string) *recipes.InterProcessMutex {
					m, err := recipes.NewInterProcessMutex(c, path, opts...)
					r.Check(err)
					return m
				}
				x, y := lock("/x"), lock("/y")
				m := r.multiOf(x, y)
				transactions := func() int {
					time.Sleep(time.Minute) // no acquire has waited lately
					r.Srv.ResetCounts()
					h := r.multiHeld(m)
					r.Check(h.Release(r.Ctx))
					return r.Srv.Counts()[zktest.OpCreate2] + r.Srv.Counts()[zktest.OpCreate]
				}
				transactions()
				before := transactions()
				r.Check(r.Srv.SetCounter("/y", 1<<31-2))
				_, err := m.Acquire(r.Ctx)
				testrig.WantErr(t, err, recipes.ErrSequenceExhausted)
				time.Sleep(time.Second)
				r.nothingIn("/x", "/y")
				r.Check(r.Srv.Delete("/y"))
				r.Check(r.Srv.Create("/y", nil))
				if after := transactions(); after != before {
					t.Errorf("%d creates of single nodes, %d before the refusal", after, before)
				}

				// 64 wait for /y, and one more in the process.
				h := r.held(x)
				_ = h.Release(r.Ctx)
				other, err := recipes.NewInterProcessMutex(r.Connect("b"), "/y", opts...)
				r.Check(err)
				held := r.held(other)
				ctx, cancel := context.WithCancel(r.Ctx)
				var all sync.WaitGroup
				for range 70 {
					all.Go(func() { _, _ = y.Acquire(ctx) })
				}
				time.Sleep(time.Second)
				line, err := y.Queue(r.Ctx)
				r.Check(err)
				if last := line[len(line)-1]; last.WaitingBehind != 6 {
					t.Errorf("%d wait without a node behind %s", last.WaitingBehind, last.Path)
				}
				short, end := context.WithTimeout(r.Ctx, time.Second)
				defer end()
				_, err = y.Acquire(short)
				var wait *recipes.WaitError
				if !errors.As(err, &wait) {
					t.Errorf("ends with %v", err)
				} else if _, ok := r.Srv.Node(wait.Ahead.Path); !ok {
					t.Errorf("waited behind %s, which has not been there for minutes", wait.Ahead.Path)
				}
				cancel()
				all.Wait()
				r.Check(held.Release(r.Ctx))
			})
		})
	}
}

// All recipes on one directory share the window. An acquire that waits in the process for the
// nodes of another recipe says so, and Queue tells how many wait.
func TestWaitsInProcessBehindOtherRecipe(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		e, err := recipes.NewLeaderSelector(c, dir)
		r.Check(err)
		m := r.mutex(c)
		held := r.held(r.mutex(r.Connect("b")))
		ctx, cancel := context.WithCancel(r.Ctx)
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { _, _ = e.Campaign(ctx) })
		}
		time.Sleep(time.Second)
		for range 5 {
			all.Go(func() { _, _ = m.Acquire(ctx) })
		}
		time.Sleep(time.Second)
		line, err := m.Queue(r.Ctx)
		r.Check(err)
		if last := line[len(line)-1]; last.WaitingBehind != 5 {
			t.Errorf("WaitingBehind of the last of %d contenders is %d, and 5 acquires wait", len(line), last.WaitingBehind)
		}
		short, end := context.WithTimeout(r.Ctx, time.Second)
		defer end()
		_, err = m.Acquire(short)
		var wait *recipes.WaitError
		if !errors.As(err, &wait) || !wait.SameClient {
			t.Errorf("an acquire without a node does not say behind whom it has waited: %v", err)
		}
		cancel()
		all.Wait()
		r.Check(held.Release(r.Ctx))
	})
}
