package shared_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

// TrySet compares with what was read. Any write since stands in its way, also one
// of the same value (TestSharedCount.testSimpleVersioned,
// testMultiClientVersioned).
func TestTrySet(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.sharedCount(r.Connect("a"), 1), r.sharedCount(r.Connect("b"), 1)
		prev := r.wantCount(a, 1)
		for name, tt := range map[string]struct {
			meanwhile func()
			prev      shared.VersionedCount
			want      bool
		}{
			"nothing":      {func() {}, prev, true},
			"set the same": {func() { r.Check(b.Set(r.Ctx, 1)) }, prev, false},
			"set twice":    {func() { r.Check(b.Set(r.Ctx, 2)); r.Check(b.Set(r.Ctx, 1)) }, prev, false},
			"never read":   {func() {}, shared.VersionedCount{Value: 1}, false},
			"deleted":      {func() { r.Check(r.Srv.Delete(countPath)) }, prev, false},
			"made again": {func() {
				r.Check(r.Srv.Delete(countPath))
				r.wantCount(b, 1) // the same value, of the same version
			}, prev, false},
		} {
			_ = r.Srv.Delete(countPath)
			now := r.wantCount(a, 1)
			if tt.prev == prev {
				tt.prev = now
			}
			tt.meanwhile()
			set, err := a.TrySet(r.Ctx, tt.prev, 2)
			r.Check(err)
			if set != tt.want {
				r.Errorf("%s: TrySet = %v", name, set)
			}
			if n, there := r.Srv.Node(countPath); there && (n.Data[3] == 2) != tt.want {
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
		other := r.Connect("b")
		s := r.sharedCount(r.Connect("a"), 1)
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti} {
			prev := r.wantCount(s, 1)
			rule := r.Srv.BeforeApply(zktest.Match{Op: op, Client: "a"}, func(ctx context.Context, _ zktest.Request) {
				if err := other.Delete(ctx, countPath, client.AnyVersion); err == nil {
					_, _ = other.Create(ctx, countPath, []byte{0, 0, 0, 1})
				}
			})
			set, err := s.TrySet(r.Ctx, prev, 2)
			r.Check(err)
			n, _ := r.Srv.Node(countPath)
			if rule.Fired() != 1 || set != (n.Data[3] == 2) || set != (op != zktest.OpCreate) {
				r.Errorf("%v: TrySet = %v, data % x", op, set, n.Data)
			}
			r.noMarks()
			r.Check(s.Set(r.Ctx, 1))
		}
	})
}

// Every request of a TrySet may be lost, before or after it is applied: it says
// what happened, and it happens once.
func TestTrySetLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.Connect("a"), 0)
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti} {
				was, err := s.Get(r.Ctx)
				r.Check(err)
				rule := fault(zktest.Match{Op: op, PathPrefix: countPath})
				set, err := s.TrySet(r.Ctx, was, was.Value+1)
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
		a, b := r.sharedCount(r.Connect("a"), 1), r.sharedCount(r.Connect("b"), 1)
		prev := r.wantCount(a, 1)
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpMulti, Client: "a", Where: func(zktest.Request) bool {
			go func() { r.Check(b.Set(r.Ctx, 2)) }()
			return true
		}})
		set, err := a.TrySet(r.Ctx, prev, 2)
		if set || err != nil {
			r.Errorf("the other's set: TrySet = %v, %v", set, err)
		}
		prev = r.wantCount(a, 2)
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Client: "a", Where: func(zktest.Request) bool {
			go func() { r.Check(b.Set(r.Ctx, 9)) }()
			return true
		}})
		set, err = a.TrySet(r.Ctx, prev, 3)
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
		s := r.sharedCount(r.Connect("a"), 1)
		r.wantCount(s, 1)
		r.Check(r.Srv.SetVersion(countPath, -1))
		prev := r.wantCount(s, 1)
		if set, err := s.TrySet(r.Ctx, prev, 2); set || err == nil {
			r.Errorf("TrySet = %v, %v", set, err)
		}
		r.Check(s.Set(r.Ctx, 3))
		prev = r.wantCount(s, 3)
		if set, err := s.TrySet(r.Ctx, prev, 4); !set || err != nil {
			r.Errorf("TrySet = %v, %v at version %d", set, err, prev.Version)
		}
	})
}

// The session ends at every step. TrySet never returns false for a set that was
// applied. Its error may stand for an applied set only if it says so.
func TestTrySetSessionLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.sharedCount(c, 0)
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetData, zktest.OpMulti} {
			for _, when := range []func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule{r.Srv.BeforeApply, r.Srv.BeforeReply} {
				was, err := s.Get(r.Ctx)
				r.Check(err)
				id := r.SessionID(c)
				when(zktest.Match{Op: op, PathPrefix: countPath, Session: id}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
				set, err := s.TrySet(r.Ctx, was, was.Value+1)
				now, e := s.Get(r.Ctx)
				r.Check(e)
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
		s := r.sharedCount(r.Connect("a"), 0)
		for step := range 60 {
			was, err := s.Get(r.Ctx)
			r.Check(err)
			limit := time.Duration(step) * 97 * time.Microsecond
			ctx, cancel := context.WithTimeout(r.Ctx, limit)
			start := time.Now()
			set, err := s.TrySet(ctx, was, was.Value+1)
			if took := time.Since(start); took > limit {
				r.Errorf("limit %v: took %v", limit, took)
			}
			cancel()
			if err != nil {
				testrig.WantErr(t, err, context.DeadlineExceeded)
			}
			time.Sleep(time.Second)
			now, e := s.Get(r.Ctx)
			r.Check(e)
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
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Prob: 0.1, Times: zktest.Always})
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpMulti, Prob: 0.1, Times: zktest.Always})
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpExists, Prob: 0.1, Times: zktest.Always})
		var wg sync.WaitGroup
		for i := range clients {
			s := r.sharedCount(r.Connect(name(i)), 0)
			wg.Go(func() {
				for done := 0; done < rounds; {
					was, err := s.Get(r.Ctx)
					r.Check(err)
					set, err := s.TrySet(r.Ctx, was, was.Value+1)
					r.Check(err)
					if set {
						done++
					}
				}
			})
		}
		wg.Wait()
		r.Srv.ClearRules()
		r.wantCount(r.sharedCount(r.Connect("z"), 0), clients*rounds)
		r.noMarks()
	})
}
