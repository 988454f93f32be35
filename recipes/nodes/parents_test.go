package nodes_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/nodes"
)

// Servers sweep empty containers. Persistent parents stay when their last child is gone.
func TestPersistentParents(t *testing.T) {
	t.Parallel()
	for _, stay := range []bool{true, false} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			var opts []nodes.Option
			if stay {
				opts = append(opts, nodes.WithPersistentParents())
			}
			n, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/services/billing/a", nil, opts...)
			r.Check(err)
			r.Check(n.Start(r.Ctx))
			r.Check(n.Wait(r.Ctx))
			r.Check(n.Close())
			time.Sleep(30 * time.Minute)
			for _, path := range []string{"/services", "/services/billing"} {
				if exists, _, err := c.Exists(r.Ctx, path); err != nil || exists != stay {
					r.Errorf("%s stands: %v, %v; want %v", path, exists, err, stay)
				}
			}
		})
	}
}
