package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

const gate = "/gates/g"

func (r *rig) gate(c *client.Client) *barrier.DistributedBarrier {
	r.Helper()
	b, err := barrier.NewDistributedBarrier(c, gate)
	r.check(err)
	return b
}

// wait waits in another goroutine.
func (r *rig) wait(ctx context.Context, b *barrier.DistributedBarrier) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.Wait(ctx) }() // ends with ctx
	return done
}

// Without a barrier all pass (TestDistributedBarrier.testNoBarrier). While it
// stands no waiter passes, and all pass when it is removed (testBasic,
// testMultiClient).
func TestBarrier(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.gate(r.connect("a", client.WithDefaultData([]byte("me")))), r.gate(r.connect("b"))
		r.gone(r.wait(r.ctx, a))
		r.check(a.Remove(r.ctx))
		for range 2 {
			r.check(a.Set(r.ctx))
			r.check(b.Set(r.ctx))
			node, there := r.srv.Node(gate)
			if !there || node.Stat.EphemeralOwner != 0 || string(node.Data) != "me" {
				r.Errorf("%v, %+v", there, node)
			}
			wantErr(t, a.Wait(r.within(time.Second)), context.DeadlineExceeded)
			all := []<-chan error{r.wait(r.ctx, a), r.wait(r.ctx, b), r.wait(r.ctx, b)}
			waiting(r, all[0])
			waiting(r, all[2])
			r.check(b.Remove(r.ctx))
			r.gone(all...)
		}
		time.Sleep(5 * time.Second)
		if n := r.srv.WatchCount(); n != 0 { // CURATOR-654
			r.Errorf("%d watches left", n)
		}
	})
}

// A waiter outlives a crash of the server and a lost session (testServerCrash: Curator's
// fails), and its context bounds it even then.
func TestBarrierOverFaults(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.gate(r.connect("a")), r.gate(r.connect("b"))
		r.check(b.Set(r.ctx))
		all := []<-chan error{r.wait(r.ctx, a), r.wait(r.ctx, b)}
		r.srv.Stop()
		wantErr(t, a.Wait(r.within(time.Second)), context.DeadlineExceeded)
		waiting(r, all[0])
		r.srv.Resume()
		waiting(r, all[0])
		r.srv.Client("a").ExpireSession()
		waiting(r, all[0])
		// Removed and set again while the waiter is cut off: there was a moment without it.
		r.srv.Client("a").Partition()
		r.check(b.Remove(r.ctx))
		r.check(b.Set(r.ctx))
		r.gone(all[1])
		r.srv.Client("a").Heal()
		r.gone(all[0])
		r.check(b.Remove(r.ctx))
	})
}

// Any answer is lost, or the session ends at that moment.
func TestBarrierAnswerLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.gate(r.connect("a")), r.gate(r.connect("b"))
		for step := 1; step <= 4; step++ {
			rule := r.srv.LoseReply(zktest.Match{Client: "a", Nth: step, PathPrefix: "/gates"})
			r.check(a.Set(r.ctx))
			if _, there := r.srv.Node(gate); !there {
				r.Errorf("%d: not set", step)
			}
			rule.Remove()
			rule = r.srv.LoseReply(zktest.Match{Client: "a", Nth: step, PathPrefix: "/gates"})
			r.check(a.Remove(r.ctx))
			if _, there := r.srv.Node(gate); there {
				r.Errorf("%d: not removed", step)
			}
			rule.Remove()
		}
		// What another client sets after the lost answer stays.
		r.check(a.Set(r.ctx))
		rule := r.srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: "/gates"}, func(context.Context, zktest.Request) {
			r.srv.Client("a").Cut()
			r.check(r.srv.Create(gate, nil))
		})
		r.check(a.Remove(r.ctx))
		if _, there := r.srv.Node(gate); !there || rule.Fired() != 1 {
			r.Errorf("there: %v, fired: %d", there, rule.Fired())
		}
		r.check(b.Remove(r.ctx))
	})
}

// The right to read is not needed to wait. A refusal is the error of the call.
func TestBarrierNoRight(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.gate(r.connect("a"))
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpMulti} {
			r.srv.Fail(zktest.Match{Client: "a", Op: op, Path: gate}, zktest.CodeNoAuth)
		}
		wantErr(t, a.Set(r.ctx), client.ErrNoAuth)
		r.check(a.Set(r.ctx))
		wantErr(t, a.Remove(r.ctx), client.ErrNoAuth)
		r.srv.Fail(zktest.Match{Op: zktest.OpGetData, Times: zktest.Always, Path: gate}, zktest.CodeNoAuth)
		one := r.wait(r.ctx, a)
		waiting(r, one)
		r.check(a.Remove(r.ctx))
		r.gone(one)
	})
}

// A server that lags behind does not know the barrier yet: the waiter waits all the same.
func TestBarrierOnLaggingServer(t *testing.T) {
	t.Parallel()
	lagging(t, func(t *testing.T, e *zktest.Ensemble, leading, behind *client.Client) {
		set, err := barrier.NewDistributedBarrier(leading, gate)
		if err != nil {
			t.Fatal(err)
		}
		wait, err := barrier.NewDistributedBarrier(behind, gate)
		if err != nil {
			t.Fatal(err)
		}
		if err := set.Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, there := e.Server(3).Node(gate); there {
			t.Error("nothing was tested")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, wait.Wait(ctx), context.DeadlineExceeded)
	})
}

// A barrier that is removed and set again at once lets those pass that waited.
func TestBarrierPulse(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		bubble(t, func(r *rig) {
			a, b := r.gate(r.connect("a")), r.gate(r.connect("b"))
			r.check(a.Set(r.ctx))
			done := r.wait(r.ctx, b)
			time.Sleep(time.Second + time.Duration(i)*time.Microsecond)
			r.check(a.Remove(r.ctx))
			r.check(a.Set(r.ctx))
			r.gone(done)
		})
	}
}
