package recipes_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
)

// What it costs to hand a mutex over. docs/decisions/0052-early-list.md says what each request
// between sessions is for.
func TestMutexLine(t *testing.T) {
	t.Parallel()
	mutex := func(r *rig, c *client.Client) contending { return each(r.mutex(c)) }
	work := 5 * time.Millisecond
	measure(t, map[string]handOver{
		"one session":               {false, 0, mutex, cost{2.1, 0.05, 1.05}},
		"one session, with work":    {false, work, mutex, cost{3.1, 1.05, 1.05}},
		"eight sessions":            {true, 0, mutex, cost{6.1, 2.1, 2.1}},
		"eight sessions, with work": {true, work, mutex, cost{6.1, 2.1, 2.1}},
	}, (*rig).empty)
}
