package zkcontainer_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// sinceStart is how long ago the first of the containers started. The engine is on this
// machine.
func sinceStart(t testing.TB, members ...*zkcontainer.Container) time.Duration {
	t.Helper()
	now := time.Now()
	first := now
	for _, c := range members {
		state := must(c.State(t.Context()))(t)
		began := must(time.Parse(time.RFC3339Nano, state.StartedAt))(t)
		if began.Before(first) {
			first = began
		}
	}
	return now.Sub(first)
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

// How long after the start of its first container a server is ready, and three members: all
// have answered a request of a session.
func BenchmarkReady(b *testing.B) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("servers=%d", n), func(b *testing.B) {
			var whole, longest time.Duration
			for b.Loop() {
				e := zkcontainer.StartEnsemble(b, image(), n, zkcontainer.WithHost("127.0.0.1"))
				took := sinceStart(b, e.Members()...)
				whole, longest = whole+took, max(longest, took)
				check(b, e.Terminate(limited(b, time.Minute)))
			}
			b.ReportMetric(float64(whole.Milliseconds())/float64(b.N), "ready-ms")
			b.ReportMetric(float64(longest.Milliseconds()), "longest-ms")
		})
	}
}
