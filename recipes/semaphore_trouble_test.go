package recipes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// Every request of an acquire and of a release may be lost, before or after it is
// applied. There are as many leases as asked for, and none after the release.
func TestSemaphoreLostRequests(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		calm bool
		at   []zktest.Match
	}{
		"queued": {false, []zktest.Match{
			{Op: zktest.OpCreate},
			{Op: zktest.OpGetChildren2, Path: poolQueue},
			{Op: zktest.OpGetChildren2, Path: poolLeases},
			{Op: zktest.OpMulti},
			{Op: zktest.OpMulti, Nth: 2},
			{Op: zktest.OpDelete},
			{Op: zktest.OpCreateContainer, Path: poolLeases},
		}},
		"at once": {true, []zktest.Match{
			{Op: zktest.OpMulti},
			{Op: zktest.OpGetChildren2, Path: poolQueue},
			{Op: zktest.OpGetChildren2, Path: poolLeases},
			{Op: zktest.OpGetChildren2, Path: pool},
			{Op: zktest.OpMulti, Nth: 2},
			{Op: zktest.OpDelete},
			{Op: zktest.OpCreateContainer, Path: poolLeases},
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.connect("a")
				for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
					"reply": r.srv.LoseReply, "request": r.srv.DropBefore, "stalled": r.srv.StallReply, "after": r.srv.DropAfter,
				} {
					for _, at := range tt.at {
						for n := 1; n <= 3; n++ {
							if at.Op == zktest.OpMulti && at.Nth == 2 && n == 1 || at.Op == zktest.OpDelete && n != 1 {
								continue // one lease is deleted, several are in a transaction
							}
							s := r.semaphore(c, 3)
							if tt.calm {
								r.calm(s)
								time.Sleep(2 * time.Second) // no watch on the path any more
							}
							r.loses(s, n, name, fault, at)
						}
					}
				}
				wantNoGoroutine(r.T)
			})
		})
	}
}

// loses acquires and releases n permits while a fault strikes, and checks that
// exactly n leases were there.
func (r *rig) loses(s *recipes.InterProcessSemaphoreV2, n int, name string, fault func(zktest.Match) *zktest.Rule, at zktest.Match) {
	r.Helper()
	if at.Op == zktest.OpCreateContainer {
		_ = r.srv.Delete(poolLeases)
	}
	rule := fault(at)
	l := r.lease(s, n)
	r.wantLeases(n)
	for _, path := range l.Paths() {
		if node, there := r.srv.Node(path); !there || node.Stat.Czxid != l.FencingToken() {
			r.Errorf("%s of %v lost: %s: %+v, token %d", name, at.Op, path, node, l.FencingToken())
		}
	}
	r.check(l.Release(r.ctx))
	r.wantLeases(0)
	if rule.Fired() != 1 {
		r.Errorf("%s of %v, %d permits: the fault happened %d times", name, at.Op, n, rule.Fired())
	}
	r.drained()
}

// Acquire returns when its context ends at any moment of its way, and leaves
// nothing (testInterruptAcquire, CURATOR-462; testNoOrphanedNodes).
func TestSemaphoreCancelledAtEveryStep(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 2)
		other := r.semaphore(r.connect("b"), 2)
		for _, free := range []bool{true, false} {
			for step := range 80 {
				var l *recipes.Lease
				if !free {
					l = r.lease(other, 1)
				}
				limit := time.Duration(step) * 73 * time.Microsecond
				ctx, cancel := context.WithTimeout(r.ctx, limit)
				start := time.Now()
				got, err := s.Acquire(ctx, 2)
				if took := time.Since(start); took > limit {
					r.Errorf("limit %v: took %v", limit, took)
				}
				cancel()
				switch {
				case err == nil && !free:
					r.Fatal("three permits of two")
				case err == nil:
					r.check(got.Release(r.ctx))
				default:
					wantErr(t, err, context.DeadlineExceeded)
				}
				if l != nil {
					r.check(l.Release(r.ctx))
				}
			}
			r.drained()
		}
		wantNoGoroutine(r.T)
	})
}

// A holder hears of the loss of any of its leases. The others are deleted with
// its release, and a waiter gets the permits. Closing a client frees its leases
// (testClientClose).
func TestSemaphoreLossWhileHolding(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client, l *recipes.Lease)
		want error
	}{
		"expired":           {func(r *rig, c *client.Client, _ *recipes.Lease) { r.srv.ExpireSession(r.session(c)) }, client.ErrSessionLost},
		"partition":         {func(r *rig, _ *client.Client, _ *recipes.Lease) { r.srv.Client("a").Partition() }, client.ErrLeaseExpired},
		"first deleted":     {func(r *rig, _ *client.Client, l *recipes.Lease) { r.check(r.srv.Delete(l.Paths()[0])) }, recipes.ErrNodeDeleted},
		"last deleted":      {func(r *rig, _ *client.Client, l *recipes.Lease) { r.check(r.srv.Delete(l.Paths()[2])) }, recipes.ErrNodeDeleted},
		"directory deleted": {func(r *rig, _ *client.Client, _ *recipes.Lease) { r.check(r.srv.Delete(poolLeases)) }, recipes.ErrNodeDeleted},
		"closed":            {func(r *rig, c *client.Client, _ *recipes.Lease) { r.check(c.CloseContext(r.ctx)) }, client.ErrClosed},
	} {
		for _, age := range []time.Duration{0, time.Minute} {
			t.Run(name+" after "+age.String(), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.connect("a")
					l := r.lease(r.semaphore(c, 4), 3)
					time.Sleep(age)
					waits := acquireLease(r.ctx, r.semaphore(r.connect("b"), 4), 4)
					began := time.Now()
					tt.lose(r, c, l)
					<-l.Context().Done()
					if took := time.Since(began); took > sessionTimeout {
						r.Errorf("told after %v", took)
					}
					wantErr(t, context.Cause(l.Context()), recipes.ErrLost, tt.want)
					wantErr(t, l.Release(r.ctx), recipes.ErrLost, tt.want)
					got := <-waits
					r.check(got.err)
					r.check(got.lease.Release(r.ctx))
					r.srv.Client("a").Heal()
					r.drained()
					wantNoGoroutine(r.T)
				})
			})
		}
	}
}

// If a lease is deleted before the hold has looked, the release finds that it is
// missing, and removes the others.
func TestSemaphoreReleaseFindsTheLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 4)
		for n := 1; n <= 3; n++ {
			l := r.lease(s, n)
			r.check(r.srv.Delete(l.Paths()[n-1]))
			wantErr(t, l.Release(r.ctx), recipes.ErrLost, recipes.ErrNodeDeleted)
			r.drained()
		}
	})
}

// A place in the queue that is lost is not taken again in silence, also by the
// one that is first and waits for room. Without its node it may be first no
// more: it takes nothing.
func TestSemaphoreLossWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client)
		want error
	}{
		"expired": {func(r *rig, c *client.Client) { r.srv.ExpireSession(r.session(c)) }, client.ErrSessionLost},
		"silence": {func(r *rig, _ *client.Client) { r.srv.Client("a").Freeze() }, client.ErrSessionLost},
		"closed":  {func(r *rig, c *client.Client) { r.check(c.CloseContext(r.ctx)) }, client.ErrClosed},
		"node deleted": {func(r *rig, _ *client.Client) {
			r.check(r.srv.Delete(poolQueue + "/" + r.named(poolQueue, queueName)[0]))
		}, recipes.ErrNodeDeleted},
		"queue deleted": {func(r *rig, _ *client.Client) { r.check(r.srv.Delete(poolQueue)) }, recipes.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				other := r.semaphore(r.connect("b"), 2)
				l := r.lease(other, 1)
				c := r.connect("a")
				s := r.semaphore(c, 2)
				waits := acquireLease(r.ctx, s, 2)
				r.wantWaiting(waits)
				tt.lose(r, c)
				if errors.Is(tt.want, recipes.ErrNodeDeleted) { // it learns when its turn would come
					time.Sleep(time.Second)
					r.check(l.Release(r.ctx))
				}
				got := <-waits
				wantErr(t, got.err, tt.want)
				if got.lease != nil {
					r.Error("holds")
				}
				if err := l.Release(r.ctx); err != nil {
					t.Error(err)
				}
				r.srv.Client("a").Thaw()
				r.check(r.lease(other, 2).Close())
				r.drained()
				wantNoGoroutine(r.T)
			})
		})
	}
}

// The node is deleted when it was found first and before it takes its leases;
// another is first then, and takes them.
func TestSemaphoreNodeDeletedAtTheGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, other := r.semaphore(r.connect("a"), 1), r.semaphore(r.connect("b"), 1)
		r.check(r.lease(other, 1).Close())
		var first *recipes.Lease
		r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a"}, func(ctx context.Context, _ zktest.Request) {
			r.check(r.srv.Delete(poolQueue + "/" + r.named(poolQueue, queueName)[0]))
			first, _ = other.Acquire(ctx, 1)
		})
		l, err := s.Acquire(r.ctx, 1)
		wantErr(t, err, recipes.ErrNodeDeleted)
		if l != nil || first == nil {
			r.Errorf("leases %v, %v", l, first)
		}
		r.check(first.Err())
		r.wantLeases(1)
		r.check(first.Close())
		r.drained()
	})
}

// The session ends when the server has granted the leases and the client has
// not heard: it must not believe the answer.
func TestSemaphoreExpiryAtTheGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		for _, calm := range []bool{false, true} {
			for _, at := range []zktest.Match{{Op: zktest.OpCreate}, {Op: zktest.OpGetChildren2, Path: poolLeases}, {Op: zktest.OpMulti}} {
				for _, when := range []func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule{r.srv.BeforeApply, r.srv.BeforeReply} {
					s := r.semaphore(c, 2)
					r.check(r.lease(s, 1).Close())
					if calm {
						r.calm(s)
					}
					if calm && at.Op == zktest.OpCreate {
						continue
					}
					id := r.session(c)
					at.Session = id
					when(at, func(context.Context, zktest.Request) { r.srv.ExpireSession(id) })
					l, err := s.Acquire(r.ctx, 2)
					if err == nil { // it had no place yet, and took one in the next session
						r.wantLeases(2)
						if at.Op != zktest.OpCreate && !calm || r.session(c) == id {
							r.Errorf("%v: holds leases of a session that is over", at.Op)
						}
						r.check(l.Close())
					} else if !errors.Is(err, client.ErrSessionLost) {
						r.Errorf("%v: %v", at.Op, err)
					}
					r.drained()
				}
			}
		}
	})
}

// A list of the leases that is refused leaves nothing, and later acquires work
// (testAcquireAfterLostServer, CURATOR-335).
func TestSemaphoreRefusedList(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 1)
		r.check(r.lease(s, 1).Close())
		for _, at := range []zktest.Match{
			{Op: zktest.OpGetChildren2, Path: poolLeases, Times: 2}, // with the queue, and by itself
			{Op: zktest.OpMulti}, {Op: zktest.OpGetChildren2, Path: poolQueue},
		} {
			r.srv.Fail(at, zktest.CodeNoAuth)
			l, err := s.Acquire(r.ctx, 1)
			if at.Path == poolQueue { // it is asked for again
				r.check(err)
				r.check(l.Close())
			} else {
				wantErr(t, err, zk.ErrNoAuth)
			}
			r.drained()
			r.check(r.lease(s, 1).Close())
		}
		held := r.lease(s, 1)
		r.srv.Fail(zktest.Match{Op: zktest.OpGetData, PathPrefix: poolLeases}, zktest.CodeBadArguments)
		_, err := s.Acquire(r.ctx, 1)
		wantErr(t, err, zk.ErrBadArguments)
		r.check(held.Close())
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// The server is away for less than the session's timeout: nothing happens. It is
// away for longer: one holder before and after, none in between
// (TestInterProcessSemaphoreCluster.testKilledServerWithEnsembleProvider,
// testCluster).
func TestSemaphoreServerAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const clients = 10
		var holds [clients]*recipes.Lease
		var ends [clients]<-chan leased
		count := func() (n int) {
			for i := range holds {
				select {
				case got := <-ends[i]:
					r.check(got.err)
					holds[i] = got.lease
				default:
				}
				if holds[i] != nil && holds[i].Err() == nil {
					n++
				}
			}
			return n
		}
		var semaphores [clients]*recipes.InterProcessSemaphoreV2
		again := func(i int) { // as a client that loses its session does
			done := make(chan leased, 1)
			ends[i] = done
			go func() {
				for {
					l, err := semaphores[i].Acquire(r.ctx, 1)
					if !errors.Is(err, client.ErrSessionLost) {
						done <- leased{l, err}
						return
					}
				}
			}()
		}
		for i := range clients {
			semaphores[i] = r.semaphore(r.connect(name(i)), 1)
			again(i)
		}
		time.Sleep(time.Second)
		for range 5 {
			r.srv.CutAll()
			time.Sleep(time.Second)
		}
		if n := count(); n != 1 {
			r.Errorf("%d holders", n)
		}
		r.srv.Freeze()
		time.Sleep(2 * sessionTimeout)
		if n := count(); n != 0 {
			r.Errorf("%d holders without a server", n)
		}
		r.srv.Thaw()
		time.Sleep(2 * sessionTimeout)
		for range clients - 1 { // but the one that lost it
			if n := count(); n != 1 {
				r.Errorf("%d holders after it", n)
			}
			for i, h := range holds {
				if h != nil {
					_ = h.Close()
					holds[i] = nil
				}
			}
			time.Sleep(time.Second)
		}
		r.drained()
	})
}

// A release that fails is made good in the background.
func TestSemaphoreReleaseInTrouble(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 3)
		for n := 1; n <= 3; n++ {
			l := r.lease(s, n)
			r.srv.Freeze()
			wantErr(t, l.Release(r.within(time.Second)), context.DeadlineExceeded)
			wantErr(t, l.Err(), recipes.ErrReleased)
			r.srv.Thaw()
			r.drained()
			l = r.lease(s, n)
			wantErr(t, l.Release(r.within(-1)), context.DeadlineExceeded)
			r.drained()
		}
		wantNoGoroutine(r.T)
	})
}

// The counter of the leases may pass its end, for their order does not matter.
// Leases with a negative number take room, and are listed, like all others.
func TestSemaphoreLeasesPastTheEndOfTheCounter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 3)
		r.check(r.lease(s, 1).Close())
		r.check(r.srv.SetCounter(poolLeases, 1<<31-1))
		l := r.lease(s, 2)
		if !strings.HasSuffix(l.Paths()[1], "-lease--2147483648") {
			r.Fatalf("the leases are %v: nothing is tested", l.Paths())
		}
		_, err := s.TryAcquire(r.within(time.Second), 2)
		wantErr(t, err, recipes.ErrBusy)
		q, err := s.Queue(r.ctx)
		if err != nil || len(q) != 2 {
			r.Errorf("Queue = %v, %v", q, err)
		}
		third := r.lease(s, 1)
		r.check(l.Release(r.ctx))
		r.check(third.Release(r.ctx))
		r.drained()
		if left := r.srv.Children(poolLeases); len(left) != 0 {
			r.Errorf("left: %v", left)
		}
	})
}

// Waiters that give up leave two watches, no node and no goroutine. That is so for waiters in
// the queue and for the first. The watches are the queue's guard and one on the lease.
func TestSemaphoreWaitersThatGiveUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.lease(r.semaphore(r.connect("holder"), 1), 1)
		time.Sleep(time.Second)
		s := r.semaphore(r.connect("waiter"), 1)
		for range 500 {
			first := acquireLease(r.within(12*time.Millisecond), s, 1)
			_, err := s.Acquire(r.within(11*time.Millisecond), 1)
			wantErr(t, err, context.DeadlineExceeded)
			wantErr(t, (<-first).err, context.DeadlineExceeded)
		}
		time.Sleep(time.Second)
		watches := 0
		for _, w := range r.srv.Watches() {
			if w.Client == "waiter" {
				watches++
			}
		}
		if in := r.named(poolQueue, queueName); len(in) != 0 || watches > 2 || len(busyGoroutines()) > 1 { // the holder's own
			r.Errorf("in the queue %v, %d watches, goroutines %v", in, watches, busyGoroutines())
		}
		r.check(l.Release(r.ctx))
		r.drained()
		if n := r.srv.WatchCount(); n != 0 {
			r.Errorf("%d watches", n)
		}
		wantNoGoroutine(r.T)
	})
}
