// The release of several holds at once.

package recipes

import (
	"context"
	"sync"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// releaseAll is [Hold.Release] of all holds at once. A hold that is nil was never given. The
// errors are in the order of the holds. Holds of one session leave together. Permits that a
// release may hand over leave by themselves.
func releaseAll(ctx context.Context, holds []*Hold) []error {
	type session struct {
		root *client.Client
		id   int64
	}
	errs := make([]error, len(holds))
	of := map[session][]int{}
	var all sync.WaitGroup
	for i, one := range holds {
		switch {
		case one == nil:
		case one.grant.of != nil:
			all.Go(func() { errs[i] = one.Release(ctx) })
		default:
			s := session{one.grant.key.root, one.grant.Session.ID()}
			of[s] = append(of[s], i)
		}
	}
	for _, some := range of {
		all.Go(func() { releaseTogether(ctx, holds, errs, some) })
	}
	all.Wait()
	return errs
}

// releaseTogether releases some of the holds, which are of one session: it ends all of them,
// and then deletes the nodes of those that were the last on their nodes.
func releaseTogether(ctx context.Context, holds []*Hold, errs []error, some []int) {
	ended, bounded := ctx.Err() != nil, false
	var own, begun []int // whose nodes it deletes; whose releases it is
	var nodes []seqqueue.Placed
	for _, i := range some {
		one := holds[i]
		one.answeredFor()
		if !one.released.Begin() {
			continue
		}
		begun = append(begun, i)
		lost, why := one.finish()
		bounded = bounded || !ended && context.Cause(ctx) == why //nolint:errorlint // as in ending.release
		if last := one.grant.countDown(one.ending); last && lost == nil {
			own, nodes = append(own, i), append(nodes, seqqueue.Placed{Own: one.grant.Own, In: one.grant.c})
		} else {
			errs[i] = one.grant.leaveAtOnce(last, lost)
		}
	}
	if bounded {
		longer, stop := holds[some[0]].outlived(ctx)
		defer stop()
		ctx = longer
	}
	for k, err := range seqqueue.VacateTogether(ctx, nodes) {
		g := holds[own[k]].grant
		errs[own[k]] = g.left(true, g.deleted(ctx, err))
	}
	for _, i := range begun {
		holds[i].released.End(errs[i])
	}
	for _, i := range some {
		if errs[i] == nil {
			errs[i] = holds[i].release(ctx) // the result, also of a release that has begun before
		}
	}
}
