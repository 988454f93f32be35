package shared_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// Every request of an addition may be lost, before or after it is applied: it counts
// once.
func TestAtomicLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n, want := r.long(r.Connect("a")), int64(0)
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti} {
				for _, fresh := range []bool{true, false} {
					if op != zktest.OpMulti && !fresh {
						continue // what is known needs a transaction only
					}
					if fresh {
						r.rested()
					}
					rule := fault(zktest.Match{Op: op, PathPrefix: longPath})
					v, err := n.Increment(r.Ctx)
					want++
					if err != nil || v.PostValue != want || rule.Fired() != 1 {
						r.Errorf("%s of %v: %+v, %v after %d faults", name, op, v, err, rule.Fired())
					}
					r.wantLong(n, want)
				}
			}
		}
		r.rested()
	})
}

// The answer is lost, and another client has set the same bytes of the same version:
// whose they are decides, not what they look like. The same bytes are no answer.
func TestAtomicLostToTheSameValue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.long(r.Connect("a")), r.long(r.Connect("b"))
		r.Check(a.ForceSet(r.Ctx, 1))
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpMulti, Client: "a", Where: func(zktest.Request) bool {
			go func() { r.Check(b.ForceSet(r.Ctx, 2)) }()
			return true
		}})
		if v, err := a.Increment(r.Ctx); v.PreValue != 2 || v.PostValue != 3 || err != nil {
			r.Errorf("after the other's 2: %+v, %v", v, err)
		}
		r.wantLong(a, 3)
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Client: "a", Where: func(zktest.Request) bool {
			go func() { r.Check(b.ForceSet(r.Ctx, 90)) }()
			return true
		}})
		if v, err := a.Increment(r.Ctx); v.PostValue != 4 || err != nil {
			r.Errorf("its own 4, overwritten: %+v, %v", v, err)
		}
		r.wantLong(a, 90)
		r.rested()
	})
}

// The session ends, or the context does, at every step. The error says that
// nothing was added, or that this is not known, and the error is true.
func TestAtomicInterrupted(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]shared.AtomicOption{nil, {shared.WithoutMark()}} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			n, watcher := r.long(c, opts...), r.Connect("b")
			now := func() int64 {
				r.Helper()
				v, err := r.long(watcher).Get(r.Ctx)
				r.Check(err)
				return v.PostValue
			}
			r.Check(n.ForceSet(r.Ctx, 0))
			for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti, zktest.OpSetData} {
				for _, when := range []func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule{r.Srv.BeforeApply, r.Srv.BeforeReply} {
					time.Sleep(5 * time.Second) // there is no mark any more
					was, id := now(), r.SessionID(c)
					rule := when(zktest.Match{Op: op, PathPrefix: longPath, Session: id}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
					v, err := n.Increment(r.Ctx)
					r.Srv.ClearRules()
					plain := len(opts) > 0
					if needed := op == zktest.OpGetData || plain == (op == zktest.OpSetData); needed != (rule.Fired() > 0) {
						r.Errorf("%v: the fault happened %d times", op, rule.Fired())
					}
					if added := now() != was; added != v.Succeeded && !client.UnknownOutcome(err) || (err == nil) != v.Succeeded {
						r.Errorf("%v: %+v, %v; added: %v", op, v, err, added)
					}
				}
			}
			for step := range 60 {
				was, limit := now(), time.Duration(step)*97*time.Microsecond
				ctx, cancel := context.WithTimeout(r.Ctx, limit)
				start := time.Now()
				v, err := n.Increment(ctx)
				if took := time.Since(start); took > limit {
					r.Errorf("limit %v: took %v", limit, took)
				}
				cancel()
				if err != nil {
					testrig.WantErr(t, err, context.DeadlineExceeded)
				}
				time.Sleep(time.Duration(1+step%3) * time.Second)
				if added := now() != was; added != v.Succeeded && !client.UnknownOutcome(err) {
					r.Errorf("limit %v: %+v, %v; added: %v", limit, v, err, added)
				}
			}
			r.rested()
		})
	}
}

// One caller that gives up takes nothing from the others that go in the same write, and
// the write goes on without it.
func TestAtomicMergedCallerLeaves(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.long(r.Connect("a"))
		_, err := n.Increment(r.Ctx)
		r.Check(err)
		r.Srv.Delay(zktest.Match{Op: zktest.OpMulti, Times: zktest.Always}, time.Second)
		var wg sync.WaitGroup
		wg.Go(func() { _, err := n.Add(r.Ctx, 10); r.Check(err) }) // keeps the next waiting
		time.Sleep(10 * time.Millisecond)
		var early, late error
		wg.Go(func() { _, early = n.Add(r.Within(500*time.Millisecond), 100) })  // gives up in the queue
		wg.Go(func() { _, late = n.Add(r.Within(1500*time.Millisecond), 1000) }) // gives up in the write
		wg.Go(func() {
			if v, err := n.Add(r.Ctx, 10000); err != nil || v.PostValue-v.PreValue != 10000 || v.Stats.Merged != 2 {
				r.Errorf("the caller that stays: %+v, %v", v, err)
			}
		})
		wg.Wait()
		if early == nil || client.UnknownOutcome(early) || !client.UnknownOutcome(late) {
			r.Errorf("left in the queue: %v; left in the write: %v", early, late)
		}
		r.Srv.ClearRules()
		r.wantLong(n, 11011)
		r.rested()
	})
}

// An operator deletes the mark, or the whole node, while it is in use.
func TestAtomicMarkDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n, want := r.long(c), int64(0)
		add := func(f func()) {
			r.Helper()
			f()
			v, err := n.Increment(r.Ctx)
			want++
			if err != nil || v.PostValue != want {
				r.Errorf("%+v, %v, want %d", v, err, want)
			}
		}
		add(func() {})
		mark := func() string { return longPath + "/" + r.Srv.Children(longPath)[0] }
		if !strings.HasSuffix(mark(), "-set") {
			r.Error(mark())
		}
		add(func() { r.Check(r.Srv.Delete(mark())) })
		add(func() { r.Check(r.Srv.SetData(mark(), []byte("looked at"))) }) // else every try is refused
		add(func() { r.Check(r.Srv.Delete(longPath)); want = 0 })
		add(func() { r.Check(r.Srv.Delete(longPath)); want = 0; r.Check(r.Srv.Create(longPath, make([]byte, 8))) })
		add(func() { r.Srv.ExpireSession(r.SessionID(c)); time.Sleep(5 * time.Second) })
		r.rested()
	})
}

// The tries and the lock are counted, and told to the observer.
func TestAtomicContended(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var told []client.AtomicResult
		c := r.Connect("a", client.WithObserver(client.Observer{
			Atomic: func(ctx context.Context, op client.AtomicInfo) (context.Context, func(client.AtomicResult)) {
				if op != (client.AtomicInfo{Recipe: "DistributedAtomicLong", Op: "add", Path: longPath}) {
					r.Errorf("%+v", op)
				}
				return ctx, func(res client.AtomicResult) { told = append(told, res) }
			},
		}))
		b := r.long(r.Connect("b"))
		r.Check(b.ForceSet(r.Ctx, 0))
		lock, err := recipes.NewInterProcessMutex(c, "/locks/long")
		r.Check(err)
		between := func(times int) {
			r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a", Times: times, Where: func(q zktest.Request) bool {
				return q.Path == longPath
			}}, func(context.Context, zktest.Request) { r.Check(b.ForceSet(r.Ctx, 5)) })
		}
		optimistic := r.long(c, shared.WithTries(retry.NTimes(2, time.Millisecond)))
		between(zktest.Always)
		v, err := optimistic.Increment(r.Ctx)
		r.Srv.ClearRules()
		testrig.WantErr(r.T, err, shared.ErrContended)
		if v.Succeeded || v.Stats.OptimisticTries != 3 || v.Stats.PromotedTries != 0 || client.UnknownOutcome(err) {
			r.Errorf("%+v, %v", v, err)
		}
		promoted := r.long(c, shared.WithTries(retry.NTimes(2, time.Millisecond)), shared.PromotedToLock(lock, time.Second, retry.NTimes(5, time.Millisecond)))
		between(5)
		v, err = promoted.Increment(r.Ctx)
		r.Check(err)
		if v.PostValue != 6 || v.Stats.OptimisticTries != 3 || v.Stats.PromotedTries != 3 || v.Stats.PromotedTime <= 0 || v.Stats.OptimisticTime <= 0 {
			r.Errorf("%+v", v)
		}
		hold, err := lock.Acquire(r.Ctx)
		r.Check(err)
		between(zktest.Always)
		v, err = promoted.Increment(r.Ctx)
		r.Srv.ClearRules()
		testrig.WantErr(r.T, err, shared.ErrContended, context.DeadlineExceeded)
		if v.Stats.PromotedTries != 0 || v.Stats.PromotedTime < time.Second {
			r.Errorf("%+v, %v", v, err)
		}
		r.Check(hold.Release(r.Ctx))
		if len(told) != 3 || told[0].Err == nil || !told[1].Succeeded || told[1].PromotedTries != 3 || told[1].Merged != 1 || told[2].PromotedTime < time.Second {
			r.Errorf("told %+v", told)
		}
		r.rested()
	})
}

// An operator deletes the mark, so that the write is refused. While a new mark is made, the
// caller gives up: nothing of its operation was written, and the error does not leave
// that open.
func TestAtomicLeavesAfterARefusedWrite(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.long(r.Connect("a"))
		_, err := n.Increment(r.Ctx)
		r.Check(err)
		r.Check(r.Srv.Delete(longPath + "/" + r.Srv.Children(longPath)[0]))
		slow := r.Srv.Delay(zktest.Match{Op: zktest.OpCreate, Client: "a"}, 2*time.Second)
		_, err = n.Add(r.Within(time.Second), 10)
		testrig.WantErr(r.T, err, context.DeadlineExceeded)
		if client.UnknownOutcome(err) || slow.Fired() == 0 {
			r.Errorf("%v, %d slow creates", err, slow.Fired())
		}
		r.wantLong(n, 1)
	})
}
