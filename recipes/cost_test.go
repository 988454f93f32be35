package recipes_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// contending acquires a lock.
type contending func(context.Context) (recipes.AnyHold, error)

// each is the Acquire of a lock.
func each[H recipes.AnyHold](lock interface {
	Acquire(ctx context.Context) (H, error)
},
) contending {
	return func(ctx context.Context) (recipes.AnyHold, error) { return lock.Acquire(ctx) }
}

// cost is what a cycle costs: an acquire and its release.
type cost struct {
	requests, events float64
	trips            float64 // round trips
}

// contend lets contenders in a loop take their locks, and returns what a cycle costs.
func (r *rig) contend(trip, hold time.Duration, locks ...contending) cost {
	r.Helper()
	const warm, counted = 10, countedCycles
	var work atomic.Int64
	cycles := func(each int) {
		var all sync.WaitGroup
		for _, m := range locks {
			all.Go(func() {
				for range each {
					h, err := m(r.Ctx)
					if err != nil {
						r.Error(err)
						return
					}
					work.Add(1)
					time.Sleep(hold)
					if err := h.Release(r.Ctx); err != nil {
						r.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	cycles(warm)
	r.Srv.ResetCounts()
	events, began := r.Srv.EventCount(), time.Now()
	cycles(counted)
	n := float64(counted * len(locks))
	if want := int64(warm+counted) * int64(len(locks)); work.Load() != want {
		r.Errorf("%d grants, want %d", work.Load(), want)
	}
	requests := 0
	for op, count := range r.Srv.Counts() {
		if op != zktest.OpPing {
			requests += count
		}
	}
	c := cost{float64(requests) / n, float64(r.Srv.EventCount()-events) / n, (time.Since(began).Seconds()/n - hold.Seconds()) / trip.Seconds()}
	r.Logf("%d contenders, hold %v: %.2f requests %v, %.2f events, %.2f round trips", len(locks), hold, c.requests, r.Srv.Counts(), c.events, c.trips)
	return c
}

// handOver is eight contenders in a loop, of one session or of eight, and what a cycle may cost.
type handOver struct {
	sessions bool
	hold     time.Duration
	lock     func(r *rig, c *client.Client) contending
	want     cost
}

// measure plays each, and looks whether anything is left.
func measure(t *testing.T, all map[string]handOver, left func(r *rig)) {
	t.Helper()
	const trip = 2 * time.Millisecond
	for name, h := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleWith(t, func(r *rig) {
				c := r.Connect("a")
				var locks []contending
				for i := range 8 {
					if h.sessions {
						c = r.Connect(string(rune('b' + i)))
					}
					locks = append(locks, h.lock(r, c))
				}
				if got := r.contend(trip, h.hold, locks...); got.requests > h.want.requests || got.events > h.want.events || got.trips > h.want.trips {
					t.Errorf("a cycle costs %.2f requests, %.2f events, %.2f round trips, want at most %v", got.requests, got.events, got.trips, h.want)
				}
				left(r)
				testrig.WantNoGoroutine(t, ourFrames)
			}, zktest.WithLatency(trip/2, trip/2))
		})
	}
}

// beside counts the grants of a crowd in one process, from when the node of a contender in another
// process stands in the queue until that one has its turn. Before, the crowd goes on for as long as
// the request of the node takes.
type beside struct {
	*rig

	mu            sync.Mutex // guards the rest
	grants, since int        // since is -1 while there is no node
}

func (r *rig) beside(queue string, other *client.Client) *beside {
	r.Helper()
	b := &beside{rig: r, since: -1}
	session := r.SessionID(other)
	r.Srv.OnCommit(func(c zktest.Commit) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if c.Session == session && b.since < 0 && slices.ContainsFunc(c.Created, func(path string) bool { return strings.HasPrefix(path, queue+"/") }) {
			b.since = b.grants
		}
	})
	return b
}

// contend takes part in the crowd until over is closed.
func (b *beside) contend(acquire contending, over <-chan struct{}) {
	for {
		h, err := acquire(b.Ctx)
		if err != nil {
			b.Error(err)
			return
		}
		b.mu.Lock()
		b.grants++
		b.mu.Unlock()
		if err := h.Release(b.Ctx); err != nil {
			b.Error(err)
		}
		select {
		case <-over:
			return
		default:
		}
	}
}

// turn is one turn of the other contender. Unless it waits in a far queue too, it comes within
// 70 grants.
func (b *beside) turn(other contending, far bool) {
	b.Helper()
	h, err := other(b.Ctx)
	b.Check(err)
	b.mu.Lock()
	if got := b.grants - b.since; b.since < 0 || got > 70 && !far {
		b.Errorf("%d grants of the crowd, since the node of the other stands (since %d)", got, b.since)
	}
	b.since = -1
	b.mu.Unlock()
	b.Check(h.Release(b.Ctx))
}
