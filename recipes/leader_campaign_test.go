package recipes_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// If the context of a campaign ends when its node is found deleted, the error is that of
// the context.
func TestCampaignEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Ctx)
		hooks := client.Observer{Lock: func(ctx context.Context, _ client.LockInfo) (context.Context, client.LockHooks) {
			return ctx, client.LockHooks{Acquired: func(client.AcquireResult) { cancel() }}
		}}
		first := r.leads(r.latch(r.Connect("b"), "b"))
		waits := r.campaign(ctx, r.latch(r.Connect("a", client.WithObserver(hooks)), "a"), 2)
		all, err := r.latch(r.Connect("c"), "c").Participants(r.Ctx)
		r.Check(err)
		r.Check(r.Srv.Delete(all[1].Path))
		r.Check(first.Close())
		got := <-waits
		testrig.WantErr(t, got.err, context.Canceled, recipes.ErrNodeDeleted)
		r.inElection(0)
	})
}
