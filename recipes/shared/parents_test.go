package shared_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
)

// Servers sweep empty containers. Persistent parents stay when the value is deleted.
func TestPersistentParents(t *testing.T) {
	t.Parallel()
	for _, stay := range []bool{true, false} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			var opts []shared.Option
			if stay {
				opts = append(opts, shared.WithPersistentParents())
			}
			count, err := shared.NewSharedCount(c, "/counts/permits", 1, opts...)
			r.Check(err)
			r.Check(count.Set(r.Ctx, 2))
			r.Check(c.Delete(r.Ctx, "/counts/permits", client.AnyVersion))
			time.Sleep(30 * time.Minute)
			if exists, _, err := c.Exists(r.Ctx, "/counts"); err != nil || exists != stay {
				r.Errorf("/counts stands: %v, %v; want %v", exists, err, stay)
			}
		})
	}
}
