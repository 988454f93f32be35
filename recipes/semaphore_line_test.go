package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// What it costs to hand permits over. Within a session a contender makes its node, and one
// transaction of a release grants it. Between sessions a contender lists what is ahead, and
// the first watches the leases.
func TestSemaphoreLine(t *testing.T) {
	t.Parallel()
	const trip = 2 * time.Millisecond
	for name, tt := range map[string]struct {
		permits  int
		sessions bool
		hold     time.Duration
		want     cost
	}{
		"of 1, one session":               {1, false, 0, cost{2.1, 0.05, 1.05}},
		"of 1, one session, with work":    {1, false, 5 * time.Millisecond, cost{2.1, 0.05, 1.05}},
		"of 4, one session":               {4, false, 0, cost{2.1, 0.05, 1.05}},
		"of 4, one session, with work":    {4, false, 5 * time.Millisecond, cost{2.2, 0.05, 1.05}},
		"of 1, eight sessions":            {1, true, 0, cost{8.2, 2.05, 3}},
		"of 1, eight sessions, with work": {1, true, 5 * time.Millisecond, cost{8.2, 2.05, 2.05}},
		"of 4, eight sessions":            {4, true, 0, cost{8.2, 2.05, 3}},
		"of 4, eight sessions, with work": {4, true, 5 * time.Millisecond, cost{9, 2.05, 2.05}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleWith(t, func(r *rig) {
				c := r.connect("a")
				var locks []contending
				for i := range 8 {
					if tt.sessions {
						c = r.connect(string(rune('b' + i)))
					}
					locks = append(locks, onePermit(r.semaphore(c, tt.permits)))
				}
				if got := r.contend(trip, tt.hold, locks...); got.requests > tt.want.requests || got.events > tt.want.events || got.trips > tt.want.trips {
					t.Errorf("a cycle costs %.2f requests, %.2f events, %.2f round trips, want at most %v", got.requests, got.events, got.trips, tt.want)
				}
				r.drained()
				wantNoGoroutine(t)
			}, zktest.WithLatency(trip/2, trip/2))
		})
	}
}

// onePermit acquires one permit.
func onePermit(s *recipes.InterProcessSemaphoreV2) contending {
	return func(ctx context.Context) (recipes.AnyHold, error) { return s.Acquire(ctx, 1) }
}

// A crowd in one process stands in the window of the queue. So a goroutine of another process
// has its turn at least once in 70 grants.
func TestSemaphoreCrowdBesideOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		crowd, other := r.semaphore(r.connect("crowd"), 1), r.semaphore(r.connect("other"), 1)
		r.besideCrowd(onePermit(crowd), onePermit(other), func() {
			if line := len(r.named(poolQueue, queueName)); line > 66 {
				t.Errorf("%d nodes in the queue", line)
			}
		})
		r.drained()
		wantNoGoroutine(t)
	})
}
