package shared_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// promoted is a number whose operations have one try each, and then wait for a mutex
// without a bound; and the mutex.
func (r *rig) promoted(c *client.Client) (*shared.DistributedAtomicLong, *recipes.InterProcessMutex, []shared.AtomicOption) {
	r.Helper()
	mutex, err := recipes.NewInterProcessMutex(c, "/locks/long")
	r.Check(err)
	opts := []shared.AtomicOption{shared.WithTries(retry.None()), shared.PromotedToLock(mutex, 0, retry.NTimes(5, time.Millisecond))}
	return r.long(c, opts...), mutex, opts
}

// beaten makes the next times writes of client a lose a race against other.
func (r *rig) beaten(other *shared.DistributedAtomicLong, times int) *zktest.Rule {
	on := func(q zktest.Request) bool { return q.Path == longPath }
	return r.Srv.BeforeApply(zktest.Match{Client: "a", Times: times, Where: func(q zktest.Request) bool {
		return on(q) && (q.Op == zktest.OpMulti || q.Op == zktest.OpSetData)
	}}, func(context.Context, zktest.Request) { r.Check(other.ForceSet(r.Ctx, 5)) })
}

// An add waits for the lock of PromotedToLock, which another goroutine holds. The holder
// adds with the context of its hold, and is done at once; so is an add that meets no
// contention. The waiting add goes in when the holder does, for it has the lock then.
func TestAtomicHolderOfTheLockAdds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, other := r.Connect("a"), r.long(r.Connect("b"))
		r.Check(other.ForceSet(r.Ctx, 5))
		n, mutex, _ := r.promoted(c)
		hold, err := mutex.Acquire(r.Ctx)
		r.Check(err)
		rule := r.beaten(other, 1)
		var wg sync.WaitGroup
		waits := make(chan struct{})
		wg.Go(func() {
			defer close(waits)
			if v, err := n.Increment(r.Ctx); err != nil || v.Stats.PromotedTries != 1 || v.Stats.OptimisticTries != 1 {
				r.Errorf("%+v, %v", v, err)
			}
		})
		time.Sleep(time.Second)
		if v, err := n.Increment(r.Within(time.Minute)); err != nil || v.Stats.PromotedTries != 0 {
			r.Errorf("an add that nobody contends with: %+v, %v", v, err)
		}
		r.beaten(other, 2) // the first is of what n knows from before, and no try is lost
		begun := time.Now()
		if v, err := n.Add(within(hold.Context(), r), 10); err != nil || v.Stats.PromotedTries != 1 || time.Since(begun) > time.Second {
			r.Errorf("the holder: %+v, %v after %v", v, err, time.Since(begun))
		}
		<-waits // before the release
		if hold.Err() != nil || rule.Fired() != 1 {
			r.Errorf("%v, %d lost races", hold.Err(), rule.Fired())
		}
		r.Check(hold.Release(r.Ctx))
		wg.Wait()
		r.wantLong(n, 16)
		r.rested()
	})
}

func within(hold context.Context, r *rig) context.Context {
	ctx, cancel := context.WithTimeout(hold, time.Minute)
	r.Cleanup(cancel)
	return ctx
}

// The add of the holder loses its race in the same write as that of a goroutine before
// it, which does not hold the lock.
func TestAtomicHolderInTheSameWrite(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, other := r.Connect("a"), r.long(r.Connect("b"))
		n, mutex, _ := r.promoted(c)
		_, err := n.Increment(r.Ctx)
		r.Check(err)
		hold, err := mutex.Acquire(r.Ctx)
		r.Check(err)
		slow := r.Srv.Delay(zktest.Match{Op: zktest.OpMulti, Client: "a", Path: longPath}, 100*time.Millisecond)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a", Nth: 2, Times: 2, Path: longPath},
			func(context.Context, zktest.Request) { r.Check(other.ForceSet(r.Ctx, 5)) })
		var wg sync.WaitGroup
		add := func(ctx context.Context, tries int) {
			wg.Go(func() {
				if v, err := n.Increment(ctx); err != nil || v.Stats.PromotedTries != tries {
					r.Errorf("%+v, %v", v, err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		add(r.Ctx, 0) // keeps the next two waiting
		add(r.Within(time.Minute), 1)
		add(within(hold.Context(), r), 1)
		wg.Wait()
		if slow.Fired() != 1 || hold.Err() != nil {
			r.Errorf("%d, %v", slow.Fired(), hold.Err())
		}
		r.Check(hold.Release(r.Ctx))
		r.wantLong(n, 7)
		r.rested()
	})
}

// A caller waits for a block, and the add for it for the lock. The holder of the lock
// takes a number, too, and is not kept waiting. Numbers grow.
func TestBlocksOfAHolder(t *testing.T) {
	t.Parallel()
	for name, newNext := range map[string]func(r *rig, c *client.Client, opts []shared.AtomicOption) func(context.Context) (int64, error){
		"Sequence": func(r *rig, c *client.Client, opts []shared.AtomicOption) func(context.Context) (int64, error) {
			s, err := shared.NewSequence(c, longPath, 10, opts...)
			r.Check(err)
			return s.Next
		},
		"CachedAtomicLong": func(r *rig, c *client.Client, opts []shared.AtomicOption) func(context.Context) (int64, error) {
			n, err := shared.NewCachedAtomicLong(r.long(c, opts...), 10)
			r.Check(err)
			return func(ctx context.Context) (int64, error) { v, err := n.Next(ctx); return v.PostValue, err }
		},
	} {
		bubble(t, func(r *rig) {
			c, other := r.Connect("a"), r.long(r.Connect("b"))
			r.Check(other.ForceSet(r.Ctx, 5))
			_, mutex, opts := r.promoted(c)
			next := newNext(r, c, opts)
			hold, err := mutex.Acquire(r.Ctx)
			r.Check(err)
			rule := r.beaten(other, 1)
			var wg sync.WaitGroup
			wg.Go(func() { _, err := next(r.Ctx); r.Check(err) })
			time.Sleep(time.Second)
			last, err := next(within(hold.Context(), r))
			if err != nil || rule.Fired() != 1 {
				r.Errorf("%s: %v, %d lost races", name, err, rule.Fired())
			}
			r.Check(hold.Release(r.Ctx))
			wg.Wait()
			for range 30 {
				now, err := next(r.Ctx)
				if err != nil || now <= last {
					r.Fatalf("%s: %d after %d, %v", name, now, last, err)
				}
				last = now
			}
			r.rested()
		})
	}
}

// An operation gets the lock while another one pauses between its tries. The pause ends,
// and both go in one write under the lock.
func TestAtomicLockEndsAPause(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, other := r.Connect("a"), r.long(r.Connect("b"))
		r.Check(other.ForceSet(r.Ctx, 5))
		mutex, err := recipes.NewInterProcessMutex(c, "/locks/long")
		r.Check(err)
		n := r.long(c, shared.WithTries(retry.NTimes(1, 5*time.Minute)), shared.PromotedToLock(mutex, 0, retry.NTimes(5, time.Millisecond)))
		hold, err := mutex.Acquire(r.Ctx)
		r.Check(err)
		rule := r.beaten(other, 3)
		var wg sync.WaitGroup
		add := func(tries int) {
			wg.Go(func() {
				if v, err := n.Increment(r.Ctx); err != nil || v.Stats.OptimisticTries != tries || v.Stats.PromotedTries != 1 || v.Stats.Merged != 2 {
					r.Errorf("%+v, %v", v, err)
				}
			})
		}
		add(2)
		time.Sleep(6 * time.Minute) // it wants the lock
		add(1)
		time.Sleep(time.Minute) // and this one pauses
		begun := time.Now()
		r.Check(hold.Release(r.Ctx))
		wg.Wait()
		if took := time.Since(begun); took > time.Minute || rule.Fired() != 3 {
			r.Errorf("%v, %d lost races", took, rule.Fired())
		}
		r.wantLong(n, 7)
		r.rested()
	})
}
