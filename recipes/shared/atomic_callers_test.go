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

type callerName struct{}

// Each write has the context values of the first of its own callers, and none of
// a caller whose operation has ended.
func TestAtomicContextOfAWrite(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var mu sync.Mutex
		seen := map[any]int{}
		n := r.long(r.Connect("a", client.WithObserver(client.Observer{
			Operation: func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
				mu.Lock()
				defer mu.Unlock()
				if op.Op == "multi" {
					seen[ctx.Value(callerName{})]++
				}
				return ctx, nil
			},
		})))
		_, err := n.Increment(context.WithValue(r.Ctx, callerName{}, "zero"))
		r.Check(err)
		r.Srv.Delay(zktest.Match{Op: zktest.OpMulti, Times: zktest.Always}, 100*time.Millisecond)
		var wg sync.WaitGroup
		for _, who := range []string{"one", "two", "three"} { // two and three go together
			wg.Go(func() { _, err := n.Increment(context.WithValue(r.Ctx, callerName{}, who)); r.Check(err) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		if len(seen) != 3 || seen["zero"] != 1 || seen["one"] != 1 || seen["two"] != 1 {
			r.Errorf("the writes were of %v", seen)
		}
	})
}

// A caller that holds the lock of PromotedToLock loses it. That concerns this
// caller alone: a caller behind it, or in the same write, is promoted all the
// same.
func TestAtomicLostHoldOfAnotherCaller(t *testing.T) {
	t.Parallel()
	for name, merged := range map[string]bool{"the next write": false, "the same write": true} {
		bubble(t, func(r *rig) {
			c, other := r.Connect("a"), r.long(r.Connect("b"))
			lock, err := recipes.NewInterProcessMutex(c, "/locks/long")
			r.Check(err)
			n := r.long(c, shared.WithTries(retry.None()), shared.PromotedToLock(lock, 20*time.Second, retry.NTimes(20, time.Millisecond)))
			_, err = n.Increment(r.Ctx)
			r.Check(err)
			hold, err := lock.Acquire(r.Ctx)
			r.Check(err)
			on := func(q zktest.Request) bool { return q.Path == longPath }
			r.Srv.Delay(zktest.Match{Op: zktest.OpMulti, Times: zktest.Always, Where: on}, 100*time.Millisecond)
			var wg sync.WaitGroup
			if merged {
				wg.Go(func() {
					if v, err := n.Add(r.Within(50*time.Millisecond), 1); err == nil {
						r.Errorf("%s: added in a lost session: %+v", name, v)
					}
				})
				time.Sleep(time.Millisecond)
			}
			wg.Go(func() {
				if v, err := n.Add(hold.Context(), 10); err == nil {
					r.Errorf("%s: added in the context of a lost hold: %+v", name, v)
				}
			})
			time.Sleep(time.Millisecond)
			wg.Go(func() {
				if v, err := n.Add(r.Ctx, 100); err != nil || v.Stats.PromotedTries == 0 {
					r.Errorf("%s: %+v, %v", name, v, err)
				}
			})
			time.Sleep(time.Millisecond)
			rule := r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a", Where: on}, func(context.Context, zktest.Request) { r.Check(other.ForceSet(r.Ctx, 50)) })
			r.Srv.ExpireSession(r.SessionID(c))
			wg.Wait()
			if rule.Fired() != 1 {
				r.Errorf("%s: %d lost races", name, rule.Fired())
			}
			r.rested()
		})
	}
}

// Another client deletes the node that a write has just made, and makes it with a
// value. A CompareAndSet in that write compares with this value.
func TestAtomicMadeAgainByAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.long(r.Connect("a"))
		_, err := n.Increment(r.Ctx)
		r.Check(err)
		r.Srv.Delay(zktest.Match{Op: zktest.OpMulti, Client: "a"}, 100*time.Millisecond)
		r.Srv.BeforeReply(zktest.Match{Op: zktest.OpMulti, Client: "a"}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(longPath + "/" + r.Srv.Children(longPath)[0]))
			r.Check(r.Srv.Delete(longPath))
		})
		born := r.Srv.BeforeReply(zktest.Match{Op: zktest.OpCreate, Client: "a", Path: longPath}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(longPath))
			r.Check(r.Srv.Create(longPath, []byte{0, 0, 0, 0, 0, 0, 0, 77}))
		})
		var wg sync.WaitGroup
		wg.Go(func() { _, err := n.Increment(r.Ctx); r.Check(err) }) // keeps the next two waiting
		time.Sleep(time.Millisecond)
		wg.Go(func() {
			if v, err := n.CompareAndSet(r.Ctx, 77, 78); err != nil || !v.Succeeded || v.PreValue != 77 {
				r.Errorf("%+v, %v", v, err)
			}
		})
		time.Sleep(time.Millisecond)
		wg.Go(func() { _, err := n.Add(r.Ctx, 1000); r.Check(err) })
		wg.Wait()
		if born.Fired() != 1 {
			r.Errorf("made again %d times", born.Fired())
		}
		r.wantLong(n, 1078)
		r.rested()
	})
}
