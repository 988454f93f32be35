package recipes_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// Concurrency reaches the number of permits and never exceeds it. That holds with
// one permit each and with several, in threads of one client and in many clients
// (testRelease1AtATime, testReleaseInChunks, testThreads, testMaxPerSession).
func TestSemaphoreNeverTooMany(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ permits, clients, workers, most int }{
		"one at a time":   {5, 1, 25, 1},
		"chunks":          {10, 1, 25, 10},
		"sessions":        {5, 10, 1, 5},
		"sessions, units": {3, 4, 6, 1},
		"one permit":      {1, 4, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var mu sync.Mutex // guards the three
				out, peak, tokens := 0, 0, map[int64]int{}
				count := func(n int, token int64) {
					mu.Lock()
					defer mu.Unlock()
					out += n
					peak = max(peak, out)
					tokens[token] += max(n, 0)
					if out > tt.permits || tokens[token] > tt.permits {
						r.Errorf("%d out of %d; token %d", out, tt.permits, token)
					}
				}
				var wg sync.WaitGroup
				for i := range tt.clients {
					s := r.semaphore(r.Connect(fmt.Sprint("c", i)), tt.permits)
					for j := range tt.workers {
						wg.Go(func() {
							for k := range 4 {
								n := 1 + (i+j+k)%tt.most
								l := r.lease(s, n)
								count(n, l.FencingToken())
								time.Sleep(time.Duration(1+n) * 20 * time.Millisecond)
								count(-n, l.FencingToken())
								r.Check(l.Release(r.Ctx))
							}
						})
					}
				}
				wg.Wait()
				if peak != tt.permits {
					r.Errorf("peak %d of %d", peak, tt.permits)
				}
				r.drained()
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// The first caller to ask gets its permits first, also if it asks for many. No
// caller passes one that waits for room.
func TestSemaphoreFIFO(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := r.lease(r.semaphore(r.Connect("holder"), 4), 3)
		var mu sync.Mutex // guards order
		var order []int
		var wg sync.WaitGroup
		for i, n := range []int{4, 1, 2, 1, 3} {
			s := r.semaphore(r.Connect(name(i)), 4)
			wg.Go(func() {
				l := r.lease(s, n)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				r.Check(l.Release(r.Ctx))
			})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		mu.Lock()
		if len(order) != 0 {
			r.Errorf("passed the first caller: %v", order)
		}
		mu.Unlock()
		r.Check(first.Release(r.Ctx))
		wg.Wait()
		if fmt.Sprint(order) != "[0 1 2 3 4]" {
			r.Errorf("order %v", order)
		}
		r.drained()
	})
}

// Two of Curator's acquire(2) on two permits hold one each and wait for ever,
// 20 times of 20. Ours take both or none, a thousand times.
func TestSemaphoreTwoForTwo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var both [2]*recipes.InterProcessSemaphoreV2
		for i := range both {
			both[i] = r.semaphore(r.Connect(name(i)), 2)
		}
		for range 1000 {
			var wg sync.WaitGroup
			for _, s := range both {
				wg.Go(func() {
					l, err := s.Acquire(r.Within(10*time.Second), 2)
					if err != nil {
						r.Errorf("stuck: %v", err)
						return
					}
					r.Check(l.Release(r.Ctx))
				})
			}
			wg.Wait()
			if r.Failed() {
				return
			}
		}
		r.drained()
	})
}
