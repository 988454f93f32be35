package shared_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
)

// An ensemble is restored from a backup, or comes back without its data. A follower of a count
// hears of what is set there, although the servers' zxids have gone back.
func TestChangesAfterRestore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for range 100 {
			r.Check(r.Srv.Create("/x", nil))
			r.Check(r.Srv.Delete("/x"))
		}
		c, move := r.Movable("a")
		count, err := shared.NewSharedCount(c, "/count", 7)
		r.Check(err)
		ctx, cancel := context.WithTimeout(r.Ctx, 3*time.Minute)
		defer cancel()
		go func() {
			time.Sleep(time.Second)
			restored := testrig.Server(r.T)
			move(restored)
			r.Srv.Stop()
			there, err := shared.NewSharedCount(r.On(restored).Connect("b"), "/count", 1)
			r.Check(err)
			// Writes go on while the follower waits.
			for n := range int32(8) {
				r.Check(there.Set(ctx, 70+n))
				time.Sleep(10 * time.Second)
			}
		}()
		var seen []int32
		for v, err := range count.Changes(ctx) {
			if err == nil {
				seen = append(seen, v.Value)
			}
		}
		if seen[0] != 7 || seen[len(seen)-1] != 77 {
			r.Errorf("yielded %v; want 7 at first and 77 at last", seen)
		}
	})
}
