package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

const gate = "/gates/g"

func (r *rig) gate(c *client.Client) *barrier.DistributedBarrier {
	r.Helper()
	b, err := barrier.NewDistributedBarrier(c, gate)
	r.Check(err)
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
		a, b := r.gate(r.Connect("a", client.WithDefaultData([]byte("me")))), r.gate(r.Connect("b"))
		r.gone(r.wait(r.Ctx, a))
		r.Check(a.Remove(r.Ctx))
		for range 2 {
			r.Check(a.Set(r.Ctx))
			r.Check(b.Set(r.Ctx))
			node, there := r.Srv.Node(gate)
			if !there || node.Stat.EphemeralOwner != 0 || string(node.Data) != "me" {
				r.Errorf("%v, %+v", there, node)
			}
			testrig.WantErr(t, a.Wait(r.Within(time.Second)), context.DeadlineExceeded)
			all := []<-chan error{r.wait(r.Ctx, a), r.wait(r.Ctx, b), r.wait(r.Ctx, b)}
			waiting(r, all[0])
			waiting(r, all[2])
			r.Check(b.Remove(r.Ctx))
			r.gone(all...)
		}
		time.Sleep(5 * time.Second)
		r.WantNoWatch() // CURATOR-654
	})
}

// A waiter outlives a crash of the server and a lost session (testServerCrash: Curator's
// fails), and its context bounds it even then.
func TestBarrierOverFaults(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.gate(r.Connect("a")), r.gate(r.Connect("b"))
		r.Check(b.Set(r.Ctx))
		all := []<-chan error{r.wait(r.Ctx, a), r.wait(r.Ctx, b)}
		r.Srv.Stop()
		testrig.WantErr(t, a.Wait(r.Within(time.Second)), context.DeadlineExceeded)
		waiting(r, all[0])
		r.Srv.Resume()
		waiting(r, all[0])
		r.Srv.Client("a").ExpireSession()
		waiting(r, all[0])
		// Removed and set again while the waiter is cut off: there was a moment without it.
		r.Srv.Client("a").Partition()
		r.Check(b.Remove(r.Ctx))
		r.Check(b.Set(r.Ctx))
		r.gone(all[1])
		r.Srv.Client("a").Heal()
		r.gone(all[0])
		r.Check(b.Remove(r.Ctx))
	})
}

// Any answer is lost, or the session ends at that moment.
func TestBarrierAnswerLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.gate(r.Connect("a")), r.gate(r.Connect("b"))
		for step := 1; step <= 4; step++ {
			rule := r.Srv.LoseReply(zktest.Match{Client: "a", Nth: step, PathPrefix: "/gates"})
			r.Check(a.Set(r.Ctx))
			if _, there := r.Srv.Node(gate); !there {
				r.Errorf("%d: not set", step)
			}
			rule.Remove()
			rule = r.Srv.LoseReply(zktest.Match{Client: "a", Nth: step, PathPrefix: "/gates"})
			r.Check(a.Remove(r.Ctx))
			if _, there := r.Srv.Node(gate); there {
				r.Errorf("%d: not removed", step)
			}
			rule.Remove()
		}
		// What another client sets after the lost answer stays.
		r.Check(a.Set(r.Ctx))
		rule := r.Srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: "/gates"}, func(context.Context, zktest.Request) {
			r.Srv.Client("a").Cut()
			r.Check(r.Srv.Create(gate, nil))
		})
		r.Check(a.Remove(r.Ctx))
		if _, there := r.Srv.Node(gate); !there || rule.Fired() != 1 {
			r.Errorf("there: %v, fired: %d", there, rule.Fired())
		}
		r.Check(b.Remove(r.Ctx))
	})
}

// The right to read is not needed to wait. A refusal is the error of the call.
func TestBarrierNoRight(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.gate(r.Connect("a"))
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpMulti} {
			r.Srv.Fail(zktest.Match{Client: "a", Op: op, Path: gate}, zktest.CodeNoAuth)
		}
		testrig.WantErr(t, a.Set(r.Ctx), client.ErrNoAuth)
		r.Check(a.Set(r.Ctx))
		testrig.WantErr(t, a.Remove(r.Ctx), client.ErrNoAuth)
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Times: zktest.Always, Path: gate}, zktest.CodeNoAuth)
		one := r.wait(r.Ctx, a)
		waiting(r, one)
		r.Check(a.Remove(r.Ctx))
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
		testrig.WantErr(t, wait.Wait(ctx), context.DeadlineExceeded)
	})
}

// A barrier that is removed and set again at once lets those pass that waited.
func TestBarrierPulse(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		bubble(t, func(r *rig) {
			a, b := r.gate(r.Connect("a")), r.gate(r.Connect("b"))
			r.Check(a.Set(r.Ctx))
			done := r.wait(r.Ctx, b)
			time.Sleep(time.Second + time.Duration(i)*time.Microsecond)
			r.Check(a.Remove(r.Ctx))
			r.Check(a.Set(r.Ctx))
			r.gone(done)
		})
	}
}
