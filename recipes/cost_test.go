package recipes_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
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
					h, err := m(r.ctx)
					if err != nil {
						r.Error(err)
						return
					}
					work.Add(1)
					time.Sleep(hold)
					if err := h.Release(r.ctx); err != nil {
						r.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	cycles(warm)
	r.srv.ResetCounts()
	events, began := r.srv.EventCount(), time.Now()
	cycles(counted)
	n := float64(counted * len(locks))
	if want := int64(warm+counted) * int64(len(locks)); work.Load() != want {
		r.Errorf("%d grants, want %d", work.Load(), want)
	}
	requests := 0
	for op, count := range r.srv.Counts() {
		if op != zktest.OpPing {
			requests += count
		}
	}
	c := cost{float64(requests) / n, float64(r.srv.EventCount()-events) / n, (time.Since(began).Seconds()/n - hold.Seconds()) / trip.Seconds()}
	r.Logf("%d contenders, hold %v: %.2f requests %v, %.2f events, %.2f round trips", len(locks), hold, c.requests, r.srv.Counts(), c.events, c.trips)
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
				c := r.connect("a")
				var locks []contending
				for i := range 8 {
					if h.sessions {
						c = r.connect(string(rune('b' + i)))
					}
					locks = append(locks, h.lock(r, c))
				}
				if got := r.contend(trip, h.hold, locks...); got.requests > h.want.requests || got.events > h.want.events || got.trips > h.want.trips {
					t.Errorf("a cycle costs %.2f requests, %.2f events, %.2f round trips, want at most %v", got.requests, got.events, got.trips, h.want)
				}
				left(r)
				wantNoGoroutine(t)
			}, zktest.WithLatency(trip/2, trip/2))
		})
	}
}

// besideCrowd lets a crowd in one process contend with one goroutine of another process. That one
// must have its turn after 70 grants at most from when its node is in the queue: before that, the
// crowd goes on for as long as the request of the node takes. check looks while they contend.
func (r *rig) besideCrowd(queue string, crowd, other contending, session int64, check func()) {
	r.Helper()
	const members, turns = crowdBeside, turnsBeside
	grants, last, over := 0, -1, make(chan struct{})
	var mu sync.Mutex // guards grants and last
	r.srv.OnCommit(func(c zktest.Commit) {
		if c.Session != session {
			return
		}
		for _, path := range c.Created {
			if strings.HasPrefix(path, queue+"/") {
				mu.Lock()
				last = grants
				mu.Unlock()
			}
		}
	})
	var all sync.WaitGroup
	for range members {
		all.Go(func() {
			for {
				h, err := crowd(r.ctx)
				if err != nil {
					r.Error(err)
					return
				}
				mu.Lock()
				grants++
				mu.Unlock()
				if err := h.Release(r.ctx); err != nil {
					r.Error(err)
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	for range turns {
		h, err := other(r.ctx)
		r.check(err)
		mu.Lock()
		if got := grants - last; last < 0 || got > 70 {
			r.Errorf("%d grants of the crowd before one of the other, whose node stood since %d", got, last)
		}
		last = -1
		mu.Unlock()
		r.check(h.Release(r.ctx))
	}
	check()
	close(over)
	all.Wait()
}
