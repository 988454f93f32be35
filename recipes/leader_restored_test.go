package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// restorable connects a client to the server, and returns what puts a new server with an older
// history in its place, as when an ensemble is restored from a backup.
func (r *rig) restorable(name string) (c *client.Client, restore func()) {
	r.Helper()
	for range 100 {
		r.Check(r.Srv.Create("/x", nil))
		r.Check(r.Srv.Delete("/x"))
	}
	time.Sleep(time.Second) // a session's id is made of the time, and no two servers give the same
	restored := testrig.Server(r.T)
	c, move := r.Movable(name)
	return c, func() {
		move(restored)
		r.Srv.Stop()
	}
}

// An ensemble is restored from a backup: tokens go back. The process leads again, and
// Leading says so.
func TestLeadingAfterRestore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, restore := r.restorable("a")
		e, err := recipes.NewLeaderLatch(c, "/e")
		r.Check(err)
		one, err := e.Campaign(r.Ctx)
		r.Check(err)
		if !e.Leading() {
			r.Error("it does not lead at first")
		}
		restore()
		<-one.Context().Done()
		_ = one.Close() // the node is lost
		two, err := e.Campaign(r.Ctx)
		r.Check(err)
		if two.FencingToken() >= one.FencingToken() {
			r.Fatalf("tokens %d, %d: it was no older history", one.FencingToken(), two.FencingToken())
		}
		if !e.Leading() {
			r.Error("it leads, and Leading says that it does not")
		}
		r.Check(two.Close())
	})
}

// An observer says what it knew, in doubt, and then what is true in the restored ensemble.
func TestObserveAfterRestore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, restore := r.restorable("a")
		e, err := recipes.NewLeaderLatch(c, "/e", recipes.WithID("me"))
		r.Check(err)
		var seen []recipes.Leadership
		ctx, cancel := context.WithTimeout(r.Ctx, 2*time.Minute)
		defer cancel()
		go func() {
			_ = e.Run(ctx, func(ctx context.Context, _ *recipes.Term) error {
				<-ctx.Done()
				return nil
			})
		}()
		go func() {
			time.Sleep(time.Second)
			restore()
		}()
		for l, err := range e.Observe(ctx) {
			if err == nil {
				seen = append(seen, l)
			}
		}
		last := seen[len(seen)-1]
		if !seen[1].InDoubt || last.InDoubt || last.Term == 0 || last.Term >= seen[0].Term {
			r.Errorf("observed %v", seen)
		}
	})
}
