package recipes_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// crowds runs f with the locks whose waiters stand in one long line.
func crowds(t *testing.T, f func(r *rig, lock func(*client.Client) func(context.Context) (*recipes.Hold, error))) {
	t.Helper()
	for name, lock := range map[string]func(r *rig, c *client.Client) func(context.Context) (*recipes.Hold, error){
		"mutex": func(r *rig, c *client.Client) func(context.Context) (*recipes.Hold, error) {
			return r.mutex(c).Acquire
		},
		"write": func(r *rig, c *client.Client) func(context.Context) (*recipes.Hold, error) {
			l, err := recipes.NewInterProcessReadWriteLock(c, dir)
			r.Check(err)
			return func(ctx context.Context) (*recipes.Hold, error) {
				h, err := l.WriteLock().Acquire(ctx)
				if err != nil {
					return nil, err
				}
				return h.Hold, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				f(r, func(c *client.Client) func(context.Context) (*recipes.Hold, error) { return lock(r, c) })
			})
		})
	}
}

// Ten thousand waiters that give up, two thousand under the race detector, leave one
// watch, no node and no goroutine.
// (Curator's leave a watch each.)
func TestWaitersThatGiveUp(t *testing.T) {
	t.Parallel()
	crowds(t, func(r *rig, lock func(*client.Client) func(context.Context) (*recipes.Hold, error)) {
		const goroutines, each = 20, givingUpEach
		h, err := lock(r.Connect("holder"))(r.Ctx)
		r.Check(err)
		time.Sleep(time.Second)
		wait := lock(r.Connect("waiter"))
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range each {
					ctx, cancel := context.WithTimeout(r.Ctx, 5*time.Millisecond)
					_, err := wait(ctx)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						r.Errorf("Acquire = %v", err)
						return
					}
				}
			})
		}
		all.Wait()
		if gone := r.Srv.Count(zktest.OpDelete); gone < goroutines*each*9/10 {
			r.Errorf("%d nodes were deleted: they never stood in line", gone)
		}
		time.Sleep(2 * time.Second) // a watch stays for one without readers
		if left := r.Srv.Children(dir); len(left) != 1 {
			r.Errorf("in line: %d", len(left))
		}
		watches := slices.DeleteFunc(r.Srv.Watches(), func(w zktest.Watch) bool { return w.Client != "waiter" })
		if len(watches) > 1 {
			r.Errorf("%d watches", len(watches))
		}
		if n := len(testrig.Goroutines(r.T, ourFrames)); n > 1 { // the holder's own watch
			r.Errorf("%d goroutines", n)
		}
		r.Check(h.Release(r.Ctx))
		r.empty()
		r.WantNoWatch()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A thousand waiters, three hundred under the race detector, get the lock one after the other. Each hand-over takes at
// most three requests. It wakes one waiter once, and the holder that leaves once.
// No more nodes of a client stand in line than the default allows.
func TestLongQueueDrains(t *testing.T) {
	t.Parallel()
	crowds(t, func(r *rig, lock func(*client.Client) func(context.Context) (*recipes.Hold, error)) {
		const clients, each = drainingClients, 100
		const n = clients * each
		h, err := lock(r.Connect("holder"))(r.Ctx)
		r.Check(err)
		had := 0
		var all sync.WaitGroup
		for i := range clients {
			wait := lock(r.Connect(name(i)))
			for range each {
				all.Go(func() {
					h, err := wait(r.Ctx)
					if err != nil {
						r.Error(err)
						return
					}
					had++ // one at a time, or -race tells
					if err := h.Release(r.Ctx); err != nil {
						r.Error(err)
					}
				})
			}
		}
		time.Sleep(time.Minute)
		if line, watches := len(r.Srv.Children(dir)), r.Srv.WatchCount(); line != clients*64+1 || watches > 2*line {
			r.Fatalf("%d in line, %d watches", line, watches)
		}
		requests := func() (sum int) {
			for op, count := range r.Srv.Counts() {
				if op != zktest.OpPing {
					sum += count
				}
			}
			return sum
		}
		r.Srv.ResetCounts()
		before := r.Srv.EventCount()
		r.Check(h.Release(r.Ctx))
		all.Wait()
		if had != n {
			r.Errorf("%d of %d had the lock", had, n)
		}
		events := r.Srv.EventCount() - before
		r.Logf("%d hand-overs: %d requests %v, %d events", n, requests(), r.Srv.Counts(), events)
		if got := requests(); got > 3*n {
			r.Errorf("%d requests for %d hand-overs", got, n)
		}
		if events > 2*(n+1) {
			r.Errorf("%d wake-ups for %d hand-overs", events, n)
		}
		r.empty()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
