package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

const countPath = "/counts/permits"

func (r *rig) sharedCount(c *client.Client, seed int32) *recipes.SharedCount {
	r.Helper()
	s, err := recipes.NewSharedCount(c, countPath, seed)
	r.check(err)
	return s
}

func (r *rig) wantCount(s *recipes.SharedCount, want int32) recipes.VersionedCount {
	r.Helper()
	now, err := s.Get(r.ctx)
	r.check(err)
	if now.Value != want {
		r.Errorf("the count is %d, want %d", now.Value, want)
	}
	return now
}

// noMarks checks that nothing is left below the count.
func (r *rig) noMarks() {
	r.Helper()
	time.Sleep(5 * time.Second)
	if left := r.srv.Children(countPath); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
	wantNoGoroutine(r.T)
}

// The node is Curator's: four bytes, the highest first, persistent, below
// containers (SharedCount.toBytes; TestSharedCount.testSimple).
func TestSharedCountNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 7)
		if _, there := r.srv.Node(countPath); there {
			r.Error("the constructor did I/O")
		}
		r.wantCount(s, 7)
		n, _ := r.srv.Node(countPath)
		if !bytes.Equal(n.Data, []byte{0, 0, 0, 7}) || n.Container || n.Stat.EphemeralOwner != 0 {
			r.Errorf("node %+v", n)
		}
		if up, _ := r.srv.Node("/counts"); !up.Container || len(up.Data) != 0 {
			r.Errorf("parent %+v", up)
		}
		for v, data := range map[int32][]byte{
			-1: {255, 255, 255, 255}, math.MaxInt32: {127, 255, 255, 255}, math.MinInt32: {128, 0, 0, 0}, 258: {0, 0, 1, 2},
		} {
			r.check(s.Set(r.ctx, v))
			r.wantCount(s, v)
			if n, _ := r.srv.Node(countPath); !bytes.Equal(n.Data, data) {
				r.Errorf("%d is % x", v, n.Data)
			}
		}
		// Curator reads the first four of more bytes.
		r.check(r.srv.SetData(countPath, []byte{0, 0, 0, 9, 1, 2}))
		r.wantCount(s, 9)
		if s.Path() != countPath {
			r.Errorf("Path = %s", s.Path())
		}
	})
}

func TestSharedCountInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		if s, err := recipes.NewSharedCount(nil, countPath, 1); s != nil || err == nil {
			r.Errorf("without a client: %v", err)
		}
		c := r.connect("a", client.WithNamespace("ns"))
		if s, err := recipes.NewSharedCount(c, "counts", 1); s != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
			r.Errorf("path: %v", err)
		}
		s := r.sharedCount(c, 1)
		r.wantCount(s, 1)
		if _, there := r.srv.Node("/ns" + countPath); !there {
			r.Error("not in the namespace")
		}
		acl := zk.ACL{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}
		mine, err := recipes.NewSharedCount(c, "/other", 3, recipes.WithNodeACL(acl))
		r.check(err)
		r.wantCount(mine, 3)
		wantErr(t, mine.Set(r.ctx, 4), zk.ErrNoAuth)
		prev := r.wantCount(mine, 3)
		set, err := mine.TrySet(r.ctx, prev, 4)
		wantErr(t, err, zk.ErrNoAuth)
		if set || client.UnknownOutcome(err) {
			r.Errorf("TrySet = %v, %v", set, err)
		}
	})
}

// Less than four bytes are an error with a type, for a read and for who
// follows the count, which goes on when it is repaired.
func TestSharedCountData(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.check(r.srv.Create("/counts", nil))
		r.check(r.srv.Create(countPath, []byte{1, 2, 3}))
		s := r.sharedCount(r.connect("a"), 1)
		_, err := s.Get(r.ctx)
		wantErr(t, err, recipes.ErrCountData)
		var got []any
		for now, err := range s.Changes(r.ctx) {
			if err != nil {
				got = append(got, errors.Is(err, recipes.ErrCountData))
				r.srv.CutAll() // wakes it, and is no news
				go func() {
					time.Sleep(time.Second)
					r.check(s.Set(r.ctx, 5))
				}()
				continue
			}
			got = append(got, now.Value)
			break
		}
		if !slices.Equal(got, []any{true, int32(5)}) {
			r.Errorf("followed %v", got)
		}
		wantNoGoroutine(r.T)
	})
}

// TrySet is about what was read: whoever wrote since stands in its way, also
// by writing the same (TestSharedCount.testSimpleVersioned,
// testMultiClientVersioned).
func TestTrySet(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.sharedCount(r.connect("a"), 1), r.sharedCount(r.connect("b"), 1)
		prev := r.wantCount(a, 1)
		for name, tt := range map[string]struct {
			meanwhile func()
			prev      recipes.VersionedCount
			want      bool
		}{
			"nothing":      {func() {}, prev, true},
			"set the same": {func() { r.check(b.Set(r.ctx, 1)) }, prev, false},
			"set twice":    {func() { r.check(b.Set(r.ctx, 2)); r.check(b.Set(r.ctx, 1)) }, prev, false},
			"never read":   {func() {}, recipes.VersionedCount{Value: 1}, false},
			"deleted":      {func() { r.check(r.srv.Delete(countPath)) }, prev, false},
			"made anew": {func() {
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

// A node that is deleted and made anew in the very moment of the set is not
// confused with the one that was read: the mark keeps it.
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

// The answer is lost, and somebody else has set the same value of the same
// version: whose it is decides, not what it looks like.
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
			r.Errorf("the own set, overwritten: TrySet = %v, %v", set, err)
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

// The session ends at every step: false or an error never stands for a set
// that was applied unless the error says that it may have been.
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

// Every request of Get and Set may be lost, on a node that is there and on one
// that is missing.
func TestSharedCountLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 7)
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.srv.LoseReply, r.srv.DropBefore, r.srv.StallReply, r.srv.DropAfter} {
			for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpCreate, zktest.OpCreateContainer, zktest.OpSetData} {
				_ = r.srv.Delete("/counts")
				rule := fault(zktest.Match{Op: op, PathPrefix: "/counts"})
				r.wantCount(s, 7)
				r.check(s.Set(r.ctx, 8))
				r.wantCount(s, 8)
				_ = r.srv.Delete("/counts")
				r.check(s.Set(r.ctx, 9)) // makes it
				r.wantCount(s, 9)
				if rule.Fired() != 1 {
					r.Errorf("%v: the fault happened %d times", op, rule.Fired())
				}
			}
		}
		wantNoGoroutine(r.T)
	})
}
