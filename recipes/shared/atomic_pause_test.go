package shared_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// The context ends in a pause between two tries. The write before it was refused, so
// it is known that nothing was applied.
func TestAtomicLeftBetweenTries(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]shared.AtomicOption{nil, {shared.WithoutMark()}} {
		bubble(t, func(r *rig) {
			n, other := r.long(r.Connect("a"), append(opts, shared.WithTries(retry.Forever(time.Minute)))...), r.long(r.Connect("b"))
			r.Check(other.ForceSet(r.Ctx, 5))
			for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpSetData} {
				r.Srv.BeforeApply(zktest.Match{Op: op, Client: "a", Path: longPath}, func(context.Context, zktest.Request) { r.Check(other.ForceSet(r.Ctx, 5)) })
			}
			_, err := n.Increment(r.Within(10 * time.Second))
			testrig.WantErr(r.T, err, context.DeadlineExceeded)
			if client.UnknownOutcome(err) {
				r.Errorf("after a refusal: %v", err)
			}
			r.wantLong(n, 5)
			r.rested()
		})
	}
}
