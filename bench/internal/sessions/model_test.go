package sessions_test

import (
	"math"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/sessions"
	"github.com/docent-go/docent/client"
)

func TestExpected(t *testing.T) {
	t.Parallel()
	const timeout = 15 * time.Second
	for _, c := range []struct {
		load    sessions.Load
		policy  client.LeasePolicy
		beats   float64
		pings   float64
		watches int
		nodes   int
	}{
		{sessions.Load{Idle: 1000, Timeout: timeout}, client.LeasePolicy{}, 0, 200, 0, 0},
		{sessions.Load{Holding: 1000, Timeout: timeout}, client.LeasePolicy{}, 400, 200, 1000, 1000},
		{sessions.Load{Waiting: 900, Holding: 100, Timeout: timeout}, client.LeasePolicy{}, 40, 200, 2700, 1000},
		{sessions.Load{Holding: 1000, Timeout: 2 * timeout}, client.LeasePolicy{}, 200, 100, 1000, 1000},
		{sessions.Load{Holding: 1000, Timeout: 4 * timeout}, client.LeasePolicy{}, 200, 50, 1000, 1000},
		{sessions.Load{Holding: 1000, Timeout: timeout}, client.LeasePolicy{HeartbeatPeriod: 3 * time.Second}, 1000.0 / 3, 200, 1000, 1000},
	} {
		e := c.load.Expected(c.policy)
		if math.Abs(e.Heartbeats-c.beats) > 1e-9 || math.Abs(e.Pings-c.pings) > 1e-9 || e.Watches != c.watches || e.Ephemerals != c.nodes {
			t.Errorf("%+v, %+v: %+v", c.load, c.policy, e)
		}
	}
}

// Each size is measured idle, waiting and holding, with no session more or less.
func TestLoads(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 9, 10, 11, 5000} {
		for _, l := range sessions.Loads(n, time.Second) {
			if l.Sessions() != n || l.Waiting > 0 && l.Holding*9 < l.Waiting {
				t.Errorf("%d: %+v", n, l)
			}
		}
	}
}
