package recipes_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func TestSemaphoreTryAcquire(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s, other := r.semaphore(c, 3), r.semaphore(r.Connect("b"), 3)
		l, err := s.TryAcquire(r.Ctx, 2)
		r.Check(err)
		r.Srv.ResetCounts()
		_, err = other.TryAcquire(r.Ctx, 2)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || !busy.Holder.Holder || busy.Holder.Path != l.Path() || busy.Holder.FencingToken != l.FencingToken() {
			r.Errorf("TryAcquire = %v", err)
		}
		testrig.WantErr(t, err, recipes.ErrBusy)
		one, err := other.TryAcquire(r.Ctx, 1)
		r.Check(err)
		waits := acquireLease(r.Ctx, s, 2)
		r.wantWaiting(waits)
		r.Check(one.Release(r.Ctx)) // there is room for one
		r.Srv.ResetCounts()
		_, err = other.TryAcquire(r.Ctx, 1)
		in := r.named(poolQueue, queueName)
		if !errors.As(err, &busy) || busy.Holder.Holder || len(in) != 1 || busy.Holder.Path != poolQueue+"/"+in[0] {
			r.Errorf("TryAcquire behind a waiter = %v", err)
		}
		if r.Srv.Count(zktest.OpCreate) != 0 {
			r.Error("made a node")
		}
		r.Check(l.Release(r.Ctx))
		got := <-waits
		r.Check(got.err)
		r.Check(got.lease.Release(r.Ctx))
		r.drained()
	})
}

// Of many callers that try in the same moment no more than fit get a permit, and
// no node stays.
func TestSemaphoreTryAcquireTogether(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for range 10 {
			var mu sync.Mutex
			var leases []*recipes.Lease
			var wg sync.WaitGroup
			for i := range 6 {
				s := r.semaphore(r.Connect(name(i)), 4)
				wg.Go(func() {
					l, err := s.TryAcquire(r.Ctx, 2)
					if err != nil {
						testrig.WantErr(t, err, recipes.ErrBusy)
						return
					}
					mu.Lock()
					leases = append(leases, l)
					mu.Unlock()
				})
			}
			wg.Wait()
			if len(leases) > 2 {
				r.Errorf("%d leases of 2 out of 4", len(leases))
			}
			for _, l := range leases {
				r.Check(l.Release(r.Ctx))
			}
			r.drained()
		}
	})
}

// The leases are listed, and behind them the waiters (testGetParticipantNodes).
func TestSemaphoreQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.semaphore(c, 3, recipes.WithNodeData([]byte("10.0.0.1")))
		if q, err := s.Queue(r.Ctx); err != nil || len(q) != 0 {
			r.Errorf("of a free semaphore: %v, %v", q, err)
		}
		l := r.lease(s, 2)
		r.Check(r.Srv.Create(poolLeases+"/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lease-0000000007", nil))
		first := acquireLease(r.Ctx, s, 2)
		time.Sleep(time.Second)
		second := acquireLease(r.Ctx, s, 1)
		time.Sleep(time.Second)
		q, err := s.Queue(r.Ctx)
		r.Check(err)
		if len(q) != 4 || !q[0].Holder || !q[1].Holder || q[2].Holder || q[3].Holder || q[0].Path != l.Paths()[0] || q[1].Path != l.Paths()[1] ||
			q[2].Sequence >= q[3].Sequence || q[0].Mode != recipes.ModeLease || q[2].Mode != recipes.ModeLease || string(q[1].Data) != "10.0.0.1" || q[0].Session != r.SessionID(c) || q[0].FencingToken != l.FencingToken() {
			r.Errorf("Queue = %+v", q)
		}
		r.Check(l.Close())
		for _, waits := range []<-chan leased{first, second} {
			got := <-waits
			r.Check(got.err)
			r.Check(got.lease.Close())
		}
	})
}
