package observe_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// leases is a sink that keeps what heartbeats had left.
type leases struct {
	ledger

	mu   sync.Mutex
	left []float64
}

func (l *leases) Histogram(m observe.Metric, values ...string) func(context.Context, float64) {
	if m.Name != observe.LeaseRemaining {
		return l.ledger.Histogram(m, values...)
	}
	return func(_ context.Context, left float64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.left = append(l.left, left)
	}
}

func (l *leases) take() []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.left
	l.left = nil
	return all
}

// nearlyLost is the bound of DocentLeaseNearlyLost in alerts.yaml.
const nearlyLost = 0.2

// One bound tells a lease that is nearly lost from a healthy one, whatever the session
// timeout is.
func TestLeaseNearlyLost(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if bound := fmt.Sprintf(`docent_session_lease_remaining_ratio_bucket{le="%v"}`, nearlyLost); !strings.Contains(string(rules), bound) {
		t.Errorf("no rule has %s", bound)
	}
	for _, timeout := range []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second, 15 * time.Second, 40 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.NewServer(t, zktest.WithSessionTimeouts(timeout, timeout), zktest.WithLatency(50*time.Microsecond, 5*time.Millisecond))
				var told leases
				c := testrig.Connect(t.Context(), t, "zk:2181", srv.Client("a").DialContext, client.WithSessionTimeout(timeout), client.WithObserver(observe.NewMeasures(&told, nil).Observer()))
				defer func() { _ = c.Close() }()
				lock, err := recipes.NewInterProcessMutex(c, "/lock")
				if err != nil {
					t.Fatal(err)
				}
				hold, err := lock.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * timeout)
				healthy := told.take()
				if len(healthy) < 20 || slices.Min(healthy) < 1.5*nearlyLost || slices.Max(healthy) > 1 {
					t.Errorf("of %d healthy heartbeats the least had left %v, the most %v", len(healthy), slices.Min(healthy), slices.Max(healthy))
				}
				srv.Partition()
				<-hold.Context().Done()
				srv.Heal()
				time.Sleep(timeout)
				if late := told.take(); len(late) == 0 || slices.Min(late) > nearlyLost || slices.Min(late) < 0 {
					t.Errorf("in a network that was silent until the hold was lost, heartbeats had left %v", late)
				}
			})
		})
	}
}
