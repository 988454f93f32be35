package recipes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// An acquire whose leases stand already lists the queue first and the leases
// behind. So it sees a contender that leaves the queue for a lease between the
// two lists. The two never hold at once.
func TestSemaphoreAtOnceBesideAGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.calm(r.semaphore(r.Connect("a"), 1))
		b := r.semaphore(r.Connect("b"), 1)
		r.Check(r.lease(b, 1).Close())
		begun, grant, granted := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r.Srv.BeforeApply(zktest.Match{Client: "b", Op: zktest.OpMulti, Times: 1}, func(context.Context, zktest.Request) {
			close(begun) // it has joined the queue and has seen room
			<-grant
		})
		second := acquireLease(r.Ctx, b, 1)
		<-begun
		lists := 0
		for _, dir := range []string{poolQueue, poolLeases} {
			r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: dir, Times: 1}, func(context.Context, zktest.Request) {
				if lists++; lists == 2 { // b leaves the queue between the two lists
					close(grant)
					time.Sleep(time.Second)
					close(granted)
				}
			})
		}
		first := acquireLease(r.Ctx, a, 1)
		got := <-second
		r.Check(got.err)
		<-granted
		r.wantWaiting(first)
		r.Check(got.lease.Err())
		r.Check(got.lease.Close())
		got = <-first
		r.Check(got.err)
		r.Check(got.lease.Close())
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// If a contender stands in the queue, leases that were made at once are
// withdrawn, also if there is room for them. The transaction that joins the queue
// does that. The first to ask is served first.
func TestSemaphoreWithdraws(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		fault func(*rig) *zktest.Rule
	}{
		"in peace": {},
		"the answer is lost": {func(r *rig) *zktest.Rule {
			return r.Srv.LoseReply(zktest.Match{Client: "a", Op: zktest.OpMulti, Nth: 2})
		}},
		"the request is lost": {func(r *rig) *zktest.Rule {
			return r.Srv.DropBefore(zktest.Match{Client: "a", Op: zktest.OpMulti, Nth: 2})
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				a := r.calm(r.semaphore(r.Connect("a"), 2))
				other := r.semaphore(r.Connect("b"), 2)
				holds := r.lease(other, 1) // one is free, and the waiter ahead wants two
				ahead := acquireLease(r.Ctx, other, 2)
				r.wantWaiting(ahead)
				var rule *zktest.Rule
				if tt.fault != nil {
					rule = tt.fault(r)
				}
				r.Srv.ResetCounts()
				waits := acquireLease(r.Ctx, a, 1)
				time.Sleep(50 * time.Millisecond)
				if rule == nil && (r.Srv.Count(zktest.OpMulti) != 2 || r.Srv.Count(zktest.OpCreate)+r.Srv.Count(zktest.OpDelete) != 0) {
					r.Errorf("two transactions: %v", r.Srv.Counts())
				}
				r.wantWaiting(waits)
				time.Sleep(testrig.SessionTimeout)
				r.wantLeases(1) // of the holder
				if rule != nil && rule.Fired() != 1 {
					r.Errorf("the fault happened %d times", rule.Fired())
				}
				r.Check(holds.Close())
				got := <-ahead
				r.Check(got.err)
				r.wantWaiting(waits)
				r.Check(got.lease.Close())
				got = <-waits
				r.Check(got.err)
				r.wantLeases(1)
				r.Check(got.lease.Close())
				r.drained()
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// If another client deletes a lease before it is withdrawn, the acquire joins the queue
// all the same, and the others of its leases go.
func TestSemaphoreWithdrawsWhatIsLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.calm(r.semaphore(r.Connect("a"), 3))
		holds := r.lease(r.semaphore(r.Connect("b"), 3), 1)
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, Nth: 2}, func(context.Context, zktest.Request) {
			for _, name := range r.named(poolLeases, leaseName) {
				if path := poolLeases + "/" + name; path != holds.Path() {
					r.Check(r.Srv.Delete(path))
					return
				}
			}
		})
		waits := acquireLease(r.Ctx, a, 3)
		r.wantWaiting(waits)
		time.Sleep(testrig.SessionTimeout)
		r.wantLeases(1)
		r.Check(holds.Close())
		got := <-waits
		r.Check(got.err)
		r.wantLeases(3)
		r.Check(got.lease.Close())
		r.drained()
	})
}

// Without the right to list the queue or the leases nothing is granted at once. Without
// the right to make leases nothing is left.
func TestSemaphoreAtOnceWithoutRights(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, dir := range []string{poolQueue, poolLeases} {
			s := r.calm(r.semaphore(c, 2))
			r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Path: dir, Times: 1}, zktest.CodeNoAuth)
			r.Srv.ResetCounts()
			l := r.lease(s, 1)
			if r.Srv.Count(zktest.OpMulti) != 3 { // made, withdrawn, claimed
				r.Errorf("%s: %v", dir, r.Srv.Counts())
			}
			r.Check(l.Close())
		}
		s := r.calm(r.semaphore(c, 2))
		r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, Times: 1}, zktest.CodeNoAuth)
		_, err := s.Acquire(r.Ctx, 1)
		testrig.WantErr(t, err, client.ErrNoAuth)
		r.drained()
	})
}

// Curator makes its lease first and counts every child then, with its node in the queue.
// It never counts fewer leases than are held, and at the end all are withdrawn.
func TestSemaphoreAtOnceBesideCurator(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.calm(r.semaphore(r.Connect("a"), 1))
		peer := r.Connect("curator")
		queue, err := recipes.NewInterProcessMutex(peer, poolQueue)
		r.Check(err)
		var theirs string
		var lock *recipes.Hold
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1}, func(ctx context.Context, _ zktest.Request) {
			lock, err = queue.Acquire(ctx) // a's lease stands, and it has not looked yet
			r.Check(err)
			theirs, err = peer.Create(ctx, poolLeases+"/"+curatorsID+"lease-", nil, client.Ephemeral(), client.Sequential())
			r.Check(err)
			if in, _, err := peer.Children(ctx, poolLeases); err != nil || len(in) != 2 {
				r.Errorf("Curator sees %v, %v, and must wait", in, err)
			}
		})
		waits := acquireLease(r.Ctx, a, 1)
		r.wantWaiting(waits)
		if in := r.Srv.Children(poolLeases); len(in) != 1 || poolLeases+"/"+in[0] != theirs {
			r.Errorf("Curator sees %v", in)
		}
		r.Check(lock.Close())
		r.wantWaiting(waits)
		r.Check(peer.Delete(r.Ctx, theirs, client.AnyVersion))
		got := <-waits
		r.Check(got.err)
		r.Check(got.lease.Close())
		r.drained()
	})
}

// A hundred permits are taken and released at once, and what the context of the acquire
// cuts short is deleted.
func TestSemaphoreManyAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.calm(r.semaphore(r.Connect("a"), 128))
		r.Srv.ResetCounts()
		l := r.lease(s, 100)
		if r.Srv.Count(zktest.OpMulti) != 1 || r.Srv.Count(zktest.OpCreate) != 0 {
			r.Errorf("%v", r.Srv.Counts())
		}
		r.wantLeases(100)
		paths := l.Paths()
		slices.Sort(paths)
		if len(slices.Compact(paths)) != 100 {
			r.Errorf("paths %v", paths)
		}
		r.Check(l.Close())
		for step := range 60 {
			s := r.calm(r.semaphore(r.Connect(name(step)), 128))
			ctx, cancel := context.WithTimeout(r.Ctx, time.Duration(step)*40*time.Microsecond)
			l, err := s.Acquire(ctx, 100)
			cancel()
			if err == nil {
				r.Check(l.Close())
			} else {
				testrig.WantErr(t, err, context.DeadlineExceeded)
			}
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
