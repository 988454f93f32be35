package shared_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

// TrySet compares with what was read. Any write since stands in its way, also one
// of the same value (TestSharedCount.testSimpleVersioned,
// testMultiClientVersioned).
func TestTrySet(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.sharedCount(r.connect("a"), 1), r.sharedCount(r.connect("b"), 1)
		prev := r.wantCount(a, 1)
		for name, tt := range map[string]struct {
			meanwhile func()
			prev      shared.VersionedCount
			want      bool
		}{
			"nothing":      {func() {}, prev, true},
			"set the same": {func() { r.check(b.Set(r.ctx, 1)) }, prev, false},
			"set twice":    {func() { r.check(b.Set(r.ctx, 2)); r.check(b.Set(r.ctx, 1)) }, prev, false},
			"never read":   {func() {}, shared.VersionedCount{Value: 1}, false},
			"deleted":      {func() { r.check(r.srv.Delete(countPath)) }, prev, false},
			"made again": {func() {
				r.check(r.srv.Delete(countPath))
				r.wantCount(b, 1) // the same value, of the same version
			}, prev, false},
		} {
			_ = r.srv.Delete(countPath)
			now := r.wantCount(a, 1)
			if tt.prev == prev {
				tt.prev = now
			}
			tt.meanwhile()
			set, err := a.TrySet(r.ctx, tt.prev, 2)
			r.check(err)
			if set != tt.want {
				r.Errorf("%s: TrySet = %v", name, set)
			}
			if n, there := r.srv.Node(countPath); there && (n.Data[3] == 2) != tt.want {
				r.Errorf("%s: data % x", name, n.Data)
			}
			r.noMarks()
		}
	})
}

// A node that is deleted and made again in the very moment of the set is not
// confused with the node that was read. The mark prevents it.
func TestTrySetIdentityAtTheLastMoment(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		other := r.connect("b")
		s := r.sharedCount(r.connect("a"), 1)
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti} {
			prev := r.wantCount(s, 1)
			rule := r.srv.BeforeApply(zktest.Match{Op: op, Client: "a"}, func(ctx context.Context, _ zktest.Request) {
				if err := other.Delete(ctx, countPath, client.AnyVersion); err == nil {
					_, _ = other.Create(ctx, countPath, []byte{0, 0, 0, 1})
				}
			})
			set, err := s.TrySet(r.ctx, prev, 2)
			r.check(err)
			n, _ := r.srv.Node(countPath)
			if rule.Fired() != 1 || set != (n.Data[3] == 2) || set != (op != zktest.OpCreate) {
				r.Errorf("%v: TrySet = %v, data % x", op, set, n.Data)
			}
			r.noMarks()
			r.check(s.Set(r.ctx, 1))
		}
	})
}

// Every request of a TrySet may be lost, before or after it is applied: it says
// what happened, and it happens once.
func TestTrySetLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 0)
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.srv.LoseReply, "request": r.srv.DropBefore, "stalled": r.srv.StallReply, "after": r.srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti} {
				was, err := s.Get(r.ctx)
				r.check(err)
				rule := fault(zktest.Match{Op: op, PathPrefix: countPath})
				set, err := s.TrySet(r.ctx, was, was.Value+1)
				if !set || err != nil || rule.Fired() != 1 {
					r.Errorf("%s of %v: TrySet = %v, %v after %d faults", name, op, set, err, rule.Fired())
				}
				if now := r.wantCount(s, was.Value+1); now.Version != was.Version+1 {
					r.Errorf("%s of %v: set %d times", name, op, now.Version-was.Version)
				}
			}
		}
		r.noMarks()
	})
}

// The answer is lost, and another client has set the same value of the same
// version. TrySet goes by which client set the value, not by what the value looks
// like.
func TestTrySetLostToTheSameValue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.sharedCount(r.connect("a"), 1), r.sharedCount(r.connect("b"), 1)
		prev := r.wantCount(a, 1)
		r.srv.DropBefore(zktest.Match{Op: zktest.OpMulti, Client: "a", Where: func(zktest.Request) bool {
			go func() { r.check(b.Set(r.ctx, 2)) }()
			return true
		}})
		set, err := a.TrySet(r.ctx, prev, 2)
		if set || err != nil {
			r.Errorf("the other's set: TrySet = %v, %v", set, err)
		}
		prev = r.wantCount(a, 2)
		r.srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Client: "a", Where: func(zktest.Request) bool {
			go func() { r.check(b.Set(r.ctx, 9)) }()
			return true
		}})
		set, err = a.TrySet(r.ctx, prev, 3)
		if !set || err != nil {
			r.Errorf("a's set, overwritten: TrySet = %v, %v", set, err)
		}
		r.wantCount(a, 9)
		r.noMarks()
	})
}

// The version -1 stands for any in a request (CURATOR-688).
func TestTrySetVersionComesRound(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 1)
		r.wantCount(s, 1)
		r.check(r.srv.SetVersion(countPath, -1))
		prev := r.wantCount(s, 1)
		if set, err := s.TrySet(r.ctx, prev, 2); set || err == nil {
			r.Errorf("TrySet = %v, %v", set, err)
		}
		r.check(s.Set(r.ctx, 3))
		prev = r.wantCount(s, 3)
		if set, err := s.TrySet(r.ctx, prev, 4); !set || err != nil {
			r.Errorf("TrySet = %v, %v at version %d", set, err, prev.Version)
		}
	})
}

// The session ends at every step. TrySet never returns false for a set that was
// applied. Its error may stand for an applied set only if it says so.
func TestTrySetSessionLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.sharedCount(c, 0)
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti} {
			for _, when := range []func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule{r.srv.BeforeApply, r.srv.BeforeReply} {
				was, err := s.Get(r.ctx)
				r.check(err)
				id := r.session(c)
				when(zktest.Match{Op: op, PathPrefix: countPath, Session: id}, func(context.Context, zktest.Request) { r.srv.ExpireSession(id) })
				set, err := s.TrySet(r.ctx, was, was.Value+1)
				now, e := s.Get(r.ctx)
				r.check(e)
				if applied := now.Value != was.Value; applied != set && !client.UnknownOutcome(err) {
					r.Errorf("%v: TrySet = %v, %v; applied: %v", op, set, err, applied)
				}
			}
		}
		r.noMarks()
	})
}

// TrySet returns when its context ends at any moment of its way, leaves nothing
// and says what is not known.
func TestTrySetCancelledAtEveryStep(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 0)
		for step := range 60 {
			was, err := s.Get(r.ctx)
			r.check(err)
			limit := time.Duration(step) * 97 * time.Microsecond
			ctx, cancel := context.WithTimeout(r.ctx, limit)
			start := time.Now()
			set, err := s.TrySet(ctx, was, was.Value+1)
			if took := time.Since(start); took > limit {
				r.Errorf("limit %v: took %v", limit, took)
			}
			cancel()
			if err != nil {
				wantErr(t, err, context.DeadlineExceeded)
			}
			time.Sleep(time.Second)
			now, e := s.Get(r.ctx)
			r.check(e)
			if applied := now.Value != was.Value; applied != set && !client.UnknownOutcome(err) {
				r.Errorf("limit %v: TrySet = %v, %v; applied: %v", limit, set, err, applied)
			}
		}
		r.noMarks()
	})
}

// Increments by many, with connections cut and answers lost all the time, count
// exactly once each (Curator's DistributedAtomicLong may count one twice).
func TestTrySetCounts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const clients, rounds = 4, 25
		r.srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Prob: 0.1, Times: zktest.Always})
		r.srv.DropBefore(zktest.Match{Op: zktest.OpMulti, Prob: 0.1, Times: zktest.Always})
		r.srv.DropBefore(zktest.Match{Op: zktest.OpExists, Prob: 0.1, Times: zktest.Always})
		var wg sync.WaitGroup
		for i := range clients {
			s := r.sharedCount(r.connect(name(i)), 0)
			wg.Go(func() {
				for done := 0; done < rounds; {
					was, err := s.Get(r.ctx)
					r.check(err)
					set, err := s.TrySet(r.ctx, was, was.Value+1)
					r.check(err)
					if set {
						done++
					}
				}
			})
		}
		wg.Wait()
		r.srv.ClearRules()
		r.wantCount(r.sharedCount(r.connect("z"), 0), clients*rounds)
		r.noMarks()
	})
}
