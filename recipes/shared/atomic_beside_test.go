package shared_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// The session ends while a write is out. Of operations that came with it and changed
// nothing it is known that they did not.
func TestAtomicBesideAWriteInDoubt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.long(c)
		_, err := n.Increment(r.Ctx)
		r.Check(err)
		r.Srv.Delay(zktest.Match{Op: zktest.OpMulti, Client: "a"}, 100*time.Millisecond)
		id := r.SessionID(c)
		rule := r.Srv.BeforeReply(zktest.Match{Op: zktest.OpMulti, Client: "a", Nth: 2}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
		var wg sync.WaitGroup
		wg.Go(func() { _, err := n.Increment(r.Ctx); r.Check(err) }) // keeps the next ones waiting
		time.Sleep(time.Millisecond)
		fails := func(unknown bool, f func() error) {
			wg.Go(func() {
				if err := f(); err == nil || client.UnknownOutcome(err) != unknown {
					r.Errorf("in doubt: %v, want %v: %v", client.UnknownOutcome(err), unknown, err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		fails(true, func() error { _, err := n.Increment(r.Ctx); return err })
		fails(false, func() error { _, err := n.Add(r.Ctx, math.MaxInt64); return err })
		fails(false, func() error { _, err := n.CompareAndSet(r.Ctx, 77, 78); return err })
		wg.Wait()
		if rule.Fired() != 1 {
			r.Errorf("%d sessions ended", rule.Fired())
		}
		r.wantLong(n, 3)
		r.rested()
	})
}
