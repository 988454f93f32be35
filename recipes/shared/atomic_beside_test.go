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
		c := r.connect("a")
		n := r.long(c)
		_, err := n.Increment(r.ctx)
		r.check(err)
		r.srv.Delay(zktest.Match{Op: zktest.OpMulti, Client: "a"}, 100*time.Millisecond)
		id := r.session(c)
		rule := r.srv.BeforeReply(zktest.Match{Op: zktest.OpMulti, Client: "a", Nth: 2}, func(context.Context, zktest.Request) { r.srv.ExpireSession(id) })
		var wg sync.WaitGroup
		wg.Go(func() { _, err := n.Increment(r.ctx); r.check(err) }) // keeps the next ones waiting
		time.Sleep(time.Millisecond)
		fails := func(unknown bool, f func() error) {
			wg.Go(func() {
				if err := f(); err == nil || client.UnknownOutcome(err) != unknown {
					r.Errorf("in doubt: %v, want %v: %v", client.UnknownOutcome(err), unknown, err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		fails(true, func() error { _, err := n.Increment(r.ctx); return err })
		fails(false, func() error { _, err := n.Add(r.ctx, math.MaxInt64); return err })
		fails(false, func() error { _, err := n.CompareAndSet(r.ctx, 77, 78); return err })
		wg.Wait()
		if rule.Fired() != 1 {
			r.Errorf("%d sessions ended", rule.Fired())
		}
		r.wantLong(n, 3)
		r.rested()
	})
}
