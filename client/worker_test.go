package client_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// workers counts the goroutines of clients in the caller's bubble that run
// calls or wait for the next.
func workers(t *testing.T) (n int) {
	t.Helper()
	for _, stack := range clientStacks(t) {
		if strings.Contains(stack, ".(*session).serve(") {
			n++
		}
	}
	return n
}

func TestCallsShareGoroutines(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		for range 50 {
			_, _, err := c.Exists(r.ctx, "/")
			r.check(err)
		}
		synctest.Wait()
		if n := workers(r.T); n != 1 {
			r.Errorf("%d goroutines for one call at a time, want 1", n)
		}
		for range 3 {
			var many sync.WaitGroup
			for range 50 {
				many.Go(func() {
					if _, _, err := c.Exists(r.ctx, "/"); err != nil {
						r.Error(err)
					}
				})
			}
			many.Wait()
			synctest.Wait()
			if n := workers(r.T); n > 8 {
				r.Errorf("%d goroutines rest after 50 calls at once, want 8 at most", n)
			}
		}
		r.check(c.Close(r.ctx))
		wantQuiet(r.T)
	})
}
