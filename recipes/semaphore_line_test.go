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
