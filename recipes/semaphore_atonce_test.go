package recipes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// An acquire whose leases stand already lists the queue first and the leases
// behind. So it sees a contender that leaves the queue for a lease between the
// two lists. The two never hold at once.
func TestSemaphoreAtOnceBesideAGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.calm(r.semaphore(r.connect("a"), 1))
		b := r.semaphore(r.connect("b"), 1)
		r.check(r.lease(b, 1).Close())
		begun, grant, granted := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r.srv.BeforeApply(zktest.Match{Client: "b", Op: zktest.OpMulti, Times: 1}, func(context.Context, zktest.Request) {
			close(begun) // it has joined the queue and has seen room
			<-grant
		})
		second := acquireLease(r.ctx, b, 1)
		<-begun
		lists := 0
		for _, dir := range []string{poolQueue, poolLeases} {
			r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: dir, Times: 1}, func(context.Context, zktest.Request) {
				if lists++; lists == 2 { // b leaves the queue between the two lists
					close(grant)
					time.Sleep(time.Second)
					close(granted)
				}
			})
		}
		first := acquireLease(r.ctx, a, 1)
		got := <-second
		r.check(got.err)
		<-granted
		r.wantWaiting(first)
		r.check(got.lease.Err())
		r.check(got.lease.Close())
		got = <-first
		r.check(got.err)
		r.check(got.lease.Close())
		r.drained()
		wantNoGoroutine(r.T)
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
			return r.srv.LoseReply(zktest.Match{Client: "a", Op: zktest.OpMulti, Nth: 2})
		}},
		"the request is lost": {func(r *rig) *zktest.Rule {
			return r.srv.DropBefore(zktest.Match{Client: "a", Op: zktest.OpMulti, Nth: 2})
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				a := r.calm(r.semaphore(r.connect("a"), 2))
				other := r.semaphore(r.connect("b"), 2)
				holds := r.lease(other, 1) // one is free, and the waiter ahead wants two
				ahead := acquireLease(r.ctx, other, 2)
				r.wantWaiting(ahead)
				var rule *zktest.Rule
				if tt.fault != nil {
					rule = tt.fault(r)
				}
				r.srv.ResetCounts()
				waits := acquireLease(r.ctx, a, 1)
				time.Sleep(50 * time.Millisecond)
				if rule == nil && (r.srv.Count(zktest.OpMulti) != 2 || r.srv.Count(zktest.OpCreate)+r.srv.Count(zktest.OpDelete) != 0) {
					r.Errorf("two transactions: %v", r.srv.Counts())
				}
				r.wantWaiting(waits)
				time.Sleep(sessionTimeout)
				r.wantLeases(1) // of the holder
				if rule != nil && rule.Fired() != 1 {
					r.Errorf("the fault happened %d times", rule.Fired())
				}
				r.check(holds.Close())
				got := <-ahead
				r.check(got.err)
				r.wantWaiting(waits)
				r.check(got.lease.Close())
				got = <-waits
				r.check(got.err)
				r.wantLeases(1)
				r.check(got.lease.Close())
				r.drained()
				wantNoGoroutine(r.T)
			})
		})
	}
}

// If another client deletes a lease before it is withdrawn, the acquire joins the queue
// all the same, and the others of its leases go.
func TestSemaphoreWithdrawsWhatIsLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.calm(r.semaphore(r.connect("a"), 3))
		holds := r.lease(r.semaphore(r.connect("b"), 3), 1)
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, Nth: 2}, func(context.Context, zktest.Request) {
			for _, name := range r.named(poolLeases, leaseName) {
				if path := poolLeases + "/" + name; path != holds.Path() {
					r.check(r.srv.Delete(path))
					return
				}
			}
		})
		waits := acquireLease(r.ctx, a, 3)
		r.wantWaiting(waits)
		time.Sleep(sessionTimeout)
		r.wantLeases(1)
		r.check(holds.Close())
		got := <-waits
		r.check(got.err)
		r.wantLeases(3)
		r.check(got.lease.Close())
		r.drained()
	})
}

// Without the right to list the queue or the leases nothing is granted at once. Without
// the right to make leases nothing is left.
func TestSemaphoreAtOnceWithoutRights(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		for _, dir := range []string{poolQueue, poolLeases} {
			s := r.calm(r.semaphore(c, 2))
			r.srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Path: dir, Times: 1}, zktest.CodeNoAuth)
			r.srv.ResetCounts()
			l := r.lease(s, 1)
			if r.srv.Count(zktest.OpMulti) != 3 { // made, withdrawn, claimed
				r.Errorf("%s: %v", dir, r.srv.Counts())
			}
			r.check(l.Close())
		}
		s := r.calm(r.semaphore(c, 2))
		r.srv.Fail(zktest.Match{Op: zktest.OpMulti, Times: 1}, zktest.CodeNoAuth)
		_, err := s.Acquire(r.ctx, 1)
		wantErr(t, err, client.ErrNoAuth)
		r.drained()
	})
}

// Curator makes its lease first and counts every child then, with its node in the queue.
// It never counts fewer leases than are held, and at the end all are withdrawn.
func TestSemaphoreAtOnceBesideCurator(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.calm(r.semaphore(r.connect("a"), 1))
		peer := r.connect("curator")
		queue, err := recipes.NewInterProcessMutex(peer, poolQueue)
		r.check(err)
		var theirs string
		var lock *recipes.Hold
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolQueue, Times: 1}, func(ctx context.Context, _ zktest.Request) {
			lock, err = queue.Acquire(ctx) // a's lease stands, and it has not looked yet
			r.check(err)
			theirs, err = peer.Create(ctx, poolLeases+"/"+curatorsID+"lease-", nil, client.Ephemeral(), client.Sequential())
			r.check(err)
			if in, _, err := peer.Children(ctx, poolLeases); err != nil || len(in) != 2 {
				r.Errorf("Curator sees %v, %v, and must wait", in, err)
			}
		})
		waits := acquireLease(r.ctx, a, 1)
		r.wantWaiting(waits)
		if in := r.srv.Children(poolLeases); len(in) != 1 || poolLeases+"/"+in[0] != theirs {
			r.Errorf("Curator sees %v", in)
		}
		r.check(lock.Close())
		r.wantWaiting(waits)
		r.check(peer.Delete(r.ctx, theirs, client.AnyVersion))
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Close())
		r.drained()
	})
}

// A hundred permits are taken and released at once, and what the context of the acquire
// cuts short is deleted.
func TestSemaphoreManyAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.calm(r.semaphore(r.connect("a"), 128))
		r.srv.ResetCounts()
		l := r.lease(s, 100)
		if r.srv.Count(zktest.OpMulti) != 1 || r.srv.Count(zktest.OpCreate) != 0 {
			r.Errorf("%v", r.srv.Counts())
		}
		r.wantLeases(100)
		paths := l.Paths()
		slices.Sort(paths)
		if len(slices.Compact(paths)) != 100 {
			r.Errorf("paths %v", paths)
		}
		r.check(l.Close())
		for step := range 60 {
			s := r.calm(r.semaphore(r.connect(name(step)), 128))
			ctx, cancel := context.WithTimeout(r.ctx, time.Duration(step)*40*time.Microsecond)
			l, err := s.Acquire(ctx, 100)
			cancel()
			if err == nil {
				r.check(l.Close())
			} else {
				wantErr(t, err, context.DeadlineExceeded)
			}
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}
