package recipes_test

import (
	"bytes"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// One acquire fits into a request, and two of them do not. Then the waiters of one client
// get their permits one after the other. No more are held than there are.
func TestSemaphoreTogetherTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const permits, each, contenders = 64, 8, 8
		a := r.Connect("a")
		s := r.semaphore(a, permits, recipes.WithNodeData(bytes.Repeat([]byte("x"), 100<<10)))
		held := r.lease(r.semaphore(a, permits), permits)
		line := r.inLine(r.Ctx, s, each, contenders)
		r.Srv.OnCommit(func(zktest.Commit) {
			if n := len(r.named(poolLeases, leaseName)); n > permits {
				r.Errorf("%d leases", n)
			}
		})
		r.Check(held.Release(r.Ctx))
		leases := r.granted(line...)
		r.wantTokens(leases, 1, 1, 1, 1, 1, 1, 1)
		r.wantLeases(permits)
		for _, l := range leases {
			r.Check(l.Close())
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A contender of Curator's stands between waiters of one client. A release serves those
// ahead of it, and none behind it before it has its permit.
func TestSemaphoreTogetherAroundCurator(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const permits = 5
		s, peer := r.semaphore(r.Connect("a"), permits), r.Connect("curator")
		held := r.lease(s, permits)
		line := r.inLine(r.Ctx, s, 1, 2)
		place, err := peer.Create(r.Ctx, poolQueue+"/"+curatorsID+"lock-", nil, client.Ephemeral(), client.Sequential())
		r.Check(err)
		line = append(line, r.inLine(r.Ctx, s, 1, 2)...)
		r.Check(held.Release(r.Ctx))
		leases := r.granted(line[:2]...)
		r.wantTokens(leases, 0)
		for _, waits := range line[2:] {
			r.wantWaiting(waits)
		}
		theirs, err := peer.Create(r.Ctx, poolLeases+"/"+curatorsID+"lease-", nil, client.Ephemeral(), client.Sequential())
		r.Check(err)
		r.wantLeases(3) // what Curator counts
		r.Check(peer.Delete(r.Ctx, place, client.AnyVersion))
		leases = append(leases, r.granted(line[2:]...)...)
		r.wantTokens(leases[2:], 0)
		r.wantLeases(permits)
		r.Check(peer.Delete(r.Ctx, theirs, client.AnyVersion))
		for _, l := range leases {
			r.Check(l.Close())
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
