package recipes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
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
				c := r.Connect("a")
				for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
					"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
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
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// loses acquires and releases n permits while a fault strikes, and checks that
// exactly n leases were there.
func (r *rig) loses(s *recipes.InterProcessSemaphoreV2, n int, name string, fault func(zktest.Match) *zktest.Rule, at zktest.Match) {
	r.Helper()
	if at.Op == zktest.OpCreateContainer {
		_ = r.Srv.Delete(poolLeases)
	}
	rule := fault(at)
	l := r.lease(s, n)
	r.wantLeases(n)
	for _, path := range l.Paths() {
		if node, there := r.Srv.Node(path); !there || node.Stat.Czxid != l.FencingToken() {
			r.Errorf("%s of %v lost: %s: %+v, token %d", name, at.Op, path, node, l.FencingToken())
		}
	}
	r.Check(l.Release(r.Ctx))
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
		s := r.semaphore(r.Connect("a"), 2)
		other := r.semaphore(r.Connect("b"), 2)
		for _, free := range []bool{true, false} {
			for step := range 80 {
				var l *recipes.Lease
				if !free {
					l = r.lease(other, 1)
				}
				limit := time.Duration(step) * 73 * time.Microsecond
				ctx, cancel := context.WithTimeout(r.Ctx, limit)
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
					r.Check(got.Release(r.Ctx))
				default:
					testrig.WantErr(t, err, context.DeadlineExceeded)
				}
				if l != nil {
					r.Check(l.Release(r.Ctx))
				}
			}
			r.drained()
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
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
		"expired":           {func(r *rig, c *client.Client, _ *recipes.Lease) { r.Srv.ExpireSession(r.SessionID(c)) }, client.ErrSessionLost},
		"partition":         {func(r *rig, _ *client.Client, _ *recipes.Lease) { r.Srv.Client("a").Partition() }, client.ErrLeaseExpired},
		"first deleted":     {func(r *rig, _ *client.Client, l *recipes.Lease) { r.Check(r.Srv.Delete(l.Paths()[0])) }, recipes.ErrNodeDeleted},
		"last deleted":      {func(r *rig, _ *client.Client, l *recipes.Lease) { r.Check(r.Srv.Delete(l.Paths()[2])) }, recipes.ErrNodeDeleted},
		"directory deleted": {func(r *rig, _ *client.Client, _ *recipes.Lease) { r.Check(r.Srv.Delete(poolLeases)) }, recipes.ErrNodeDeleted},
		"closed":            {func(r *rig, c *client.Client, _ *recipes.Lease) { r.Check(c.CloseContext(r.Ctx)) }, client.ErrClosed},
	} {
		for _, age := range []time.Duration{0, time.Minute} {
			t.Run(name+" after "+age.String(), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.Connect("a")
					l := r.lease(r.semaphore(c, 4), 3)
					time.Sleep(age)
					waits := acquireLease(r.Ctx, r.semaphore(r.Connect("b"), 4), 4)
					began := time.Now()
					tt.lose(r, c, l)
					<-l.Context().Done()
					if took := time.Since(began); took > testrig.SessionTimeout {
						r.Errorf("told after %v", took)
					}
					testrig.WantErr(t, context.Cause(l.Context()), recipes.ErrLost, tt.want)
					testrig.WantErr(t, l.Release(r.Ctx), recipes.ErrLost, tt.want)
					got := <-waits
					r.Check(got.err)
					r.Check(got.lease.Release(r.Ctx))
					r.Srv.Client("a").Heal()
					r.drained()
					testrig.WantNoGoroutine(r.T, ourFrames)
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
		s := r.semaphore(r.Connect("a"), 4)
		for n := 1; n <= 3; n++ {
			l := r.lease(s, n)
			r.Check(r.Srv.Delete(l.Paths()[n-1]))
			testrig.WantErr(t, l.Release(r.Ctx), recipes.ErrLost, recipes.ErrNodeDeleted)
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
		"expired": {func(r *rig, c *client.Client) { r.Srv.ExpireSession(r.SessionID(c)) }, client.ErrSessionLost},
		"silence": {func(r *rig, _ *client.Client) { r.Srv.Client("a").Freeze() }, client.ErrSessionLost},
		"closed":  {func(r *rig, c *client.Client) { r.Check(c.CloseContext(r.Ctx)) }, client.ErrClosed},
		"node deleted": {func(r *rig, _ *client.Client) {
			r.Check(r.Srv.Delete(poolQueue + "/" + r.named(poolQueue, queueName)[0]))
		}, recipes.ErrNodeDeleted},
		"queue deleted": {func(r *rig, _ *client.Client) { r.Check(r.Srv.Delete(poolQueue)) }, recipes.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				other := r.semaphore(r.Connect("b"), 2)
				l := r.lease(other, 1)
				c := r.Connect("a")
				s := r.semaphore(c, 2)
				waits := acquireLease(r.Ctx, s, 2)
				r.wantWaiting(waits)
				tt.lose(r, c)
				if errors.Is(tt.want, recipes.ErrNodeDeleted) { // it learns when its turn would come
					time.Sleep(time.Second)
					r.Check(l.Release(r.Ctx))
				}
				got := <-waits
				testrig.WantErr(t, got.err, tt.want)
				if got.lease != nil {
					r.Error("holds")
				}
				if err := l.Release(r.Ctx); err != nil {
					t.Error(err)
				}
				r.Srv.Client("a").Thaw()
				r.Check(r.lease(other, 2).Close())
				r.drained()
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// The node is deleted when it was found first and before it takes its leases;
// another is first then, and takes them.
func TestSemaphoreNodeDeletedAtTheGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, other := r.semaphore(r.Connect("a"), 1), r.semaphore(r.Connect("b"), 1)
		r.Check(r.lease(other, 1).Close())
		var first *recipes.Lease
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a"}, func(ctx context.Context, _ zktest.Request) {
			r.Check(r.Srv.Delete(poolQueue + "/" + r.named(poolQueue, queueName)[0]))
			first, _ = other.Acquire(ctx, 1)
		})
		l, err := s.Acquire(r.Ctx, 1)
		testrig.WantErr(t, err, recipes.ErrNodeDeleted)
		if l != nil || first == nil {
			r.Errorf("leases %v, %v", l, first)
		}
		r.Check(first.Err())
		r.wantLeases(1)
		r.Check(first.Close())
		r.drained()
	})
}

// The session ends when the server has granted the leases and the client has
// not heard: it must not believe the answer.
func TestSemaphoreExpiryAtTheGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, calm := range []bool{false, true} {
			for _, at := range []zktest.Match{{Op: zktest.OpCreate}, {Op: zktest.OpGetChildren2, Path: poolLeases}, {Op: zktest.OpMulti}} {
				for _, when := range []func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule{r.Srv.BeforeApply, r.Srv.BeforeReply} {
					s := r.semaphore(c, 2)
					r.Check(r.lease(s, 1).Close())
					if calm {
						r.calm(s)
					}
					if calm && at.Op == zktest.OpCreate {
						continue
					}
					id := r.SessionID(c)
					at.Session = id
					when(at, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
					l, err := s.Acquire(r.Ctx, 2)
					if err == nil { // it had no place yet, and took one in the next session
						r.wantLeases(2)
						if at.Op != zktest.OpCreate && !calm || r.SessionID(c) == id {
							r.Errorf("%v: holds leases of a session that is over", at.Op)
						}
						r.Check(l.Close())
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
		s := r.semaphore(r.Connect("a"), 1)
		r.Check(r.lease(s, 1).Close())
		for _, at := range []zktest.Match{
			{Op: zktest.OpGetChildren2, Path: poolLeases, Times: 2}, // with the queue, and by itself
			{Op: zktest.OpMulti}, {Op: zktest.OpGetChildren2, Path: poolQueue},
		} {
			r.Srv.Fail(at, zktest.CodeNoAuth)
			l, err := s.Acquire(r.Ctx, 1)
			if at.Path == poolQueue { // it is asked for again
				r.Check(err)
				r.Check(l.Close())
			} else {
				testrig.WantErr(t, err, zk.ErrNoAuth)
			}
			r.drained()
			r.Check(r.lease(s, 1).Close())
		}
		held := r.lease(s, 1)
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, PathPrefix: poolLeases}, zktest.CodeBadArguments)
		_, err := s.Acquire(r.Ctx, 1)
		testrig.WantErr(t, err, zk.ErrBadArguments)
		r.Check(held.Close())
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
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
					r.Check(got.err)
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
					l, err := semaphores[i].Acquire(r.Ctx, 1)
					if !errors.Is(err, client.ErrSessionLost) {
						done <- leased{l, err}
						return
					}
				}
			}()
		}
		for i := range clients {
			semaphores[i] = r.semaphore(r.Connect(name(i)), 1)
			again(i)
		}
		time.Sleep(time.Second)
		for range 5 {
			r.Srv.CutAll()
			time.Sleep(time.Second)
		}
		if n := count(); n != 1 {
			r.Errorf("%d holders", n)
		}
		r.Srv.Freeze()
		time.Sleep(2 * testrig.SessionTimeout)
		if n := count(); n != 0 {
			r.Errorf("%d holders without a server", n)
		}
		r.Srv.Thaw()
		time.Sleep(2 * testrig.SessionTimeout)
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
		s := r.semaphore(r.Connect("a"), 3)
		for n := 1; n <= 3; n++ {
			l := r.lease(s, n)
			r.Srv.Freeze()
			testrig.WantErr(t, l.Release(r.Within(time.Second)), context.DeadlineExceeded)
			testrig.WantErr(t, l.Err(), recipes.ErrReleased)
			r.Srv.Thaw()
			r.drained()
			l = r.lease(s, n)
			testrig.WantErr(t, l.Release(r.Within(-1)), context.DeadlineExceeded)
			r.drained()
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// The counter of the leases may pass its end, for their order does not matter.
// Leases with a negative number take room, and are listed, like all others.
func TestSemaphoreLeasesPastTheEndOfTheCounter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 3)
		r.Check(r.lease(s, 1).Close())
		r.Check(r.Srv.SetCounter(poolLeases, 1<<31-1))
		l := r.lease(s, 2)
		if !strings.HasSuffix(l.Paths()[1], "-lease--2147483648") {
			r.Fatalf("the leases are %v: nothing is tested", l.Paths())
		}
		_, err := s.TryAcquire(r.Within(time.Second), 2)
		testrig.WantErr(t, err, recipes.ErrBusy)
		q, err := s.Queue(r.Ctx)
		if err != nil || len(q) != 2 {
			r.Errorf("Queue = %v, %v", q, err)
		}
		third := r.lease(s, 1)
		r.Check(l.Release(r.Ctx))
		r.Check(third.Release(r.Ctx))
		r.drained()
		r.WantNoChild(poolLeases)
	})
}

// Waiters that give up leave two watches, no node and no goroutine. That is so for waiters in
// the queue and for the first. The watches are the queue's guard and one on the lease.
func TestSemaphoreWaitersThatGiveUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.lease(r.semaphore(r.Connect("holder"), 1), 1)
		time.Sleep(time.Second)
		s := r.semaphore(r.Connect("waiter"), 1)
		for range 500 {
			first := acquireLease(r.Within(12*time.Millisecond), s, 1)
			_, err := s.Acquire(r.Within(11*time.Millisecond), 1)
			testrig.WantErr(t, err, context.DeadlineExceeded)
			testrig.WantErr(t, (<-first).err, context.DeadlineExceeded)
		}
		time.Sleep(time.Second)
		watches := 0
		for _, w := range r.Srv.Watches() {
			if w.Client == "waiter" {
				watches++
			}
		}
		if in := r.named(poolQueue, queueName); len(in) != 0 || watches > 2 || len(testrig.Goroutines(r.T, ourFrames)) > 1 { // the holder's own
			r.Errorf("in the queue %v, %d watches, goroutines %v", in, watches, testrig.Goroutines(r.T, ourFrames))
		}
		r.Check(l.Release(r.Ctx))
		r.drained()
		r.WantNoWatch()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
