package zkcontainer_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// sinceStart is how long ago the youngest of the containers started. The engine is on this
// machine.
func sinceStart(t *testing.T, members ...*zkcontainer.Container) time.Duration {
	t.Helper()
	now := time.Now()
	var youngest time.Time
	for _, c := range members {
		state := must(c.State(t.Context()))(t)
		began := must(time.Parse(time.RFC3339Nano, state.StartedAt))(t)
		if began.After(youngest) {
			youngest = began
		}
	}
	return now.Sub(youngest)
}

// After a start every first request is served, of twenty servers that start side by side,
// with fifty requests each. Nothing tries again.
func TestFirstRequests(t *testing.T) {
	const servers, requests = 20, 50
	ctx := limited(t, 6*time.Minute)
	var mu sync.Mutex
	var took []time.Duration
	refused := 0
	var group sync.WaitGroup
	for range servers {
		group.Go(func() {
			c, err := zkcontainer.Run(ctx, image(), zkcontainer.WithHost("127.0.0.1"), zkcontainer.WithStartLimit(5*time.Minute), zkcontainer.WithHeap(64))
			defer func() {
				if err := c.Terminate(ctx); err != nil {
					t.Error(err)
				}
			}()
			if err != nil {
				t.Error(err)
				return
			}
			ready := sinceStart(t, c)
			var each sync.WaitGroup
			for range requests {
				each.Go(func() {
					err := zkcontainer.FirstRequest(ctx, c)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused++
						t.Error(err)
					}
				})
			}
			each.Wait()
			mu.Lock()
			defer mu.Unlock()
			took = append(took, ready)
		})
	}
	group.Wait()
	slices.Sort(took)
	t.Logf("%d of %d first requests refused; ready after %v", refused, servers*requests, took)
}

// How long after the start of its container a server is ready, and three members.
func TestReady(t *testing.T) {
	for _, n := range []int{1, 3} {
		var took []time.Duration
		for range 3 {
			e := zkcontainer.StartEnsemble(t, image(), n, zkcontainer.WithHost("127.0.0.1"))
			took = append(took, sinceStart(t, e.Members()...))
			check(t, e.Terminate(limited(t, time.Minute)))
		}
		t.Logf("%d servers: ready after %v", n, took)
	}
}
