package barrier_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/barrier"
)

// Servers sweep empty containers. Persistent parents stay when their last child is gone.
func TestPersistentParents(t *testing.T) {
	t.Parallel()
	for _, stay := range []bool{true, false} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			var opts []barrier.Option
			if stay {
				opts = append(opts, barrier.WithPersistentParents())
			}
			b, err := barrier.NewDistributedBarrier(c, "/barriers/nightly/go", opts...)
			r.Check(err)
			r.Check(b.Set(r.Ctx))
			r.Check(b.Remove(r.Ctx))
			d, err := barrier.NewDistributedDoubleBarrier(c, "/barriers/daily", 1, opts...)
			r.Check(err)
			round, err := d.Enter(r.Ctx)
			r.Check(err)
			r.Check(round.Leave(r.Ctx))
			time.Sleep(30 * time.Minute)
			for _, path := range []string{"/barriers", "/barriers/nightly", "/barriers/daily"} {
				if exists, _, err := c.Exists(r.Ctx, path); err != nil || exists != stay {
					r.Errorf("%s stands: %v, %v; want %v", path, exists, err, stay)
				}
			}
		})
	}
}
