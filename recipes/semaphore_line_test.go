package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// What it costs to hand permits over. Within a session a contender makes its node, and one
// transaction of a release grants it. Between sessions a contender lists what is ahead, and
// the first watches the leases.
func TestSemaphoreLine(t *testing.T) {
	t.Parallel()
	one := func(r *rig, c *client.Client) contending { return onePermit(r.semaphore(c, 1)) }
	four := func(r *rig, c *client.Client) contending { return onePermit(r.semaphore(c, 4)) }
	work := 5 * time.Millisecond
	measure(t, map[string]handOver{
		"of 1, one session":               {false, 0, one, cost{2.1, 0.05, 1.05}},
		"of 1, one session, with work":    {false, work, one, cost{2.1, 0.05, 1.05}},
		"of 4, one session":               {false, 0, four, cost{2.1, 0.05, 1.05}},
		"of 4, one session, with work":    {false, work, four, cost{2.1, 0.05, 1.05}},
		"of 1, eight sessions":            {true, 0, one, cost{8.2, 1.1, 3}},
		"of 1, eight sessions, with work": {true, work, one, cost{8.2, 2.05, 2.05}},
		"of 4, eight sessions":            {true, 0, four, cost{8.2, 1.1, 2.1}},
		"of 4, eight sessions, with work": {true, work, four, cost{8.2, 1.1, 2.05}},
	}, (*rig).drained)
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
