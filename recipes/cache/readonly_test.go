package cache_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
)

// What a server without a quorum shows may be old, so a cache that reads there is not Synced,
// and says why. It is Synced again when the quorum is back.
func TestReadOnlyServerIsStale(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		r.Check(r.Srv.Create("/d/a", []byte("x")))
		c := r.Connect("a", client.WithReadOnly())
		tree, err := cache.NewTree(c, "/d", cache.Text)
		r.Check(err)
		r.Check(tree.Start(r.Ctx))
		defer tree.Close()
		wait := func(want cache.Phase) {
			t.Helper()
			time.Sleep(time.Minute)
			if s := tree.State(); s.Phase != want {
				t.Errorf("%v, want %v", s, want)
			}
		}
		wait(cache.Synced)
		r.Srv.SetReadOnly(true)
		wait(cache.Stale)
		if !r.Session(c).ReadOnly() {
			t.Error("the client does not read from that server")
		}
		r.Srv.SetReadOnly(false)
		wait(cache.Synced)
	})
}
