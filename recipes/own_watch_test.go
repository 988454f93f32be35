package recipes_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// Few goroutines, with few reads at a time, watch a lease of many permits. Every
// node of the lease is watched all the same.
func TestManyPermitsAreWatchedByFew(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const many, few = 1000, 16
		s := r.semaphore(r.Connect("a"), many)
		for _, lost := range []int{0, few, many - 1} {
			r.Srv.ResetCounts()
			l := r.lease(s, many)
			time.Sleep(25 * time.Millisecond) // the first reads are on their way
			if n := len(testrig.Goroutines(r.T, ourFrames)); n > few+1 {
				t.Errorf("%d goroutines", n)
			}
			time.Sleep(time.Second)
			if n := len(testrig.Goroutines(r.T, ourFrames)); n > few+1 {
				t.Errorf("%d goroutines wait", n)
			}
			if n := r.Srv.Count(zktest.OpGetData); n < many || n > many+few {
				t.Errorf("%d of %d nodes are watched", n, many)
			}
			r.Check(l.Err())
			r.Check(r.Srv.Delete(l.Paths()[lost]))
			select {
			case <-l.Context().Done():
				testrig.WantErr(t, l.Err(), recipes.ErrNodeDeleted)
			case <-time.After(100 * time.Millisecond):
				t.Errorf("node %d was deleted, and the holder was not told", lost)
			}
			testrig.WantErr(t, l.Close(), recipes.ErrLost)
			time.Sleep(time.Minute)
			testrig.WantNoGoroutine(t, ourFrames)
		}
		r.drained()
	})
}
