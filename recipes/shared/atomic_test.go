package shared_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
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

const longPath = "/counts/long"

func (r *rig) long(c *client.Client, opts ...shared.AtomicOption) *shared.DistributedAtomicLong {
	r.Helper()
	n, err := shared.NewDistributedAtomicLong(c, longPath, opts...)
	r.Check(err)
	return n
}

func (r *rig) wantLong(n *shared.DistributedAtomicLong, want int64) {
	r.Helper()
	v, err := n.Get(r.Ctx)
	r.Check(err)
	if !v.Succeeded || v.PreValue != want || v.PostValue != want {
		r.Errorf("the number is %+v, want %d", v, want)
	}
}

// rested checks that no mark is left when nothing goes on.
func (r *rig) rested() {
	r.Helper()
	time.Sleep(5 * time.Second)
	r.WantNoChild(longPath)
	testrig.WantNoGoroutine(r.T, ourFrames)
}

// The node is Curator's and so is every result
// (TestDistributedAtomicLong.testBasic, testCompareAndSet, testInitialize,
// testForceSet, testCorrectIncrementFrom0, testGetWithEmptyNode).
func TestDistributedAtomicLong(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]shared.AtomicOption{"mark": nil, "plain": {shared.WithoutMark()}} {
		bubble(t, func(r *rig) {
			n := r.long(r.Connect("a"), opts...)
			is := func(what string, v shared.AtomicValue[int64], err error, ok bool, pre, post int64) {
				r.Helper()
				r.Check(err)
				if v.Succeeded != ok || v.PreValue != pre || v.PostValue != post {
					r.Errorf("%s: %s: %+v, want %v, %d, %d", name, what, v, ok, pre, post)
				}
			}
			v, err := n.Get(r.Ctx)
			is("get of none", v, err, true, 0, 0)
			v, err = n.CompareAndSet(r.Ctx, 0, 5)
			is("compare with none", v, err, false, 0, 0)
			if _, there := r.Srv.Node(longPath); there {
				r.Error("a compare has made the node")
			}
			v, err = n.Add(r.Ctx, 258)
			is("add to none", v, err, true, 0, 258)
			if node, _ := r.Srv.Node(longPath); !bytes.Equal(node.Data, []byte{0, 0, 0, 0, 0, 0, 1, 2}) || node.Stat.EphemeralOwner != 0 || node.Container {
				r.Errorf("%s: node %+v", name, node)
			}
			if up, _ := r.Srv.Node("/counts"); !up.Container {
				r.Errorf("parent %+v", up)
			}
			if first, err := n.Initialize(r.Ctx, 3); first || err != nil {
				r.Errorf("initialized again: %v", err)
			}
			v, err = n.Increment(r.Ctx)
			is("increment", v, err, true, 258, 259)
			v, err = n.Decrement(r.Ctx)
			is("decrement", v, err, true, 259, 258)
			v, err = n.Subtract(r.Ctx, 300)
			is("subtract", v, err, true, 258, -42)
			v, err = n.CompareAndSet(r.Ctx, -42, 77)
			is("compare", v, err, true, -42, 77)
			v, err = n.CompareAndSet(r.Ctx, -42, 78)
			is("compare with another value", v, err, false, 77, 0)
			v, err = n.TrySet(r.Ctx, 5)
			is("try", v, err, true, 77, 5)
			r.Check(n.ForceSet(r.Ctx, 6))
			v, err = n.Add(r.Ctx, 0)
			is("after a foreign set", v, err, true, 6, 6)
			r.Check(r.Srv.SetData(longPath, nil))
			r.wantLong(n, 0)
			v, err = n.Add(r.Ctx, 1)
			is("add to an empty node", v, err, true, 0, 1)
			r.rested()
			r.Check(r.Srv.Delete(longPath))
			if first, err := n.Initialize(r.Ctx, 3); !first || err != nil {
				r.Errorf("not initialized: %v", err)
			}
			r.wantLong(n, 3)
			if n.Path() != longPath {
				r.Error(n.Path())
			}
		})
	}
}

// Eight bytes under an integer, four under a long, and anything else is refused by
// all operations, with its length, and left as it is. Curator cuts what is too long.
func TestAtomicData(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		long := r.long(c)
		integer, err := shared.NewDistributedAtomicInteger(c, longPath)
		r.Check(err)
		v, err := integer.Add(r.Ctx, 1)
		if v.PostValue != 1 || err != nil {
			r.Fatalf("%+v, %v", v, err)
		}
		refused := func(what string, err error, length int) {
			r.Helper()
			var bad *shared.CountDataError
			if !errors.As(err, &bad) || !errors.Is(err, shared.ErrCountData) || bad.Length != length || client.UnknownOutcome(err) {
				r.Errorf("%s of %d bytes: %v", what, length, err)
			}
		}
		for _, data := range [][]byte{{1}, {0, 0, 0, 5}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 5}, {0, 0, 0, 0, 0, 0, 0, 5, 1}} {
			r.Check(r.Srv.SetData(longPath, data))
			if len(data) != 8 {
				_, err := long.Get(r.Ctx)
				refused("Get", err, len(data))
				_, err = long.Add(r.Ctx, 1)
				refused("Add", err, len(data))
				_, err = long.CompareAndSet(r.Ctx, 5, 6)
				refused("CompareAndSet", err, len(data))
				_, err = long.TrySet(r.Ctx, 6)
				refused("TrySet", err, len(data))
				refused("ForceSet", long.ForceSet(r.Ctx, 6), len(data))
			}
			if len(data) != 4 {
				_, err := integer.Get(r.Ctx)
				refused("Get of an integer", err, len(data))
				_, err = integer.Add(r.Ctx, 1)
				refused("Add of an integer", err, len(data))
			}
			if n, _ := r.Srv.Node(longPath); !bytes.Equal(n.Data, data) {
				r.Errorf("% x became % x", data, n.Data)
			}
		}
		r.rested()
	})
}

// A sum that does not fit is an error of its own operation, unless it may wrap.
func TestAtomicOverflow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.long(c)
		for _, tt := range []struct {
			from  int64
			op    string
			f     func(context.Context, int64) (shared.AtomicValue[int64], error)
			delta int64
		}{
			{math.MaxInt64, "add", n.Add, 1},
			{math.MinInt64, "add", n.Add, -1},
			{math.MinInt64, "subtract", n.Subtract, 1},
			{0, "subtract", n.Subtract, math.MinInt64},
			{math.MaxInt64, "subtract", n.Subtract, -1},
		} {
			r.Check(n.ForceSet(r.Ctx, tt.from))
			v, err := tt.f(r.Ctx, tt.delta)
			if !errors.Is(err, shared.ErrOverflow) || v.Succeeded || client.UnknownOutcome(err) {
				r.Errorf("%d and %d: %+v, %v", tt.from, tt.delta, v, err)
			}
			if why := fmt.Sprint(err); !strings.HasPrefix(why, "client: "+tt.op) || !strings.Contains(why, fmt.Sprintf("to %s %d", tt.op, tt.delta)) {
				r.Error(why)
			}
			r.wantLong(n, tt.from)
		}
		wrapping := r.long(c, shared.WithWrapping())
		r.Check(n.ForceSet(r.Ctx, math.MaxInt64))
		if v, err := wrapping.Increment(r.Ctx); v.PostValue != math.MinInt64 || err != nil {
			r.Errorf("%+v, %v", v, err)
		}
		integer, err := shared.NewDistributedAtomicInteger(c, "/counts/integer")
		r.Check(err)
		_, err = integer.TrySet(r.Ctx, math.MaxInt32)
		r.Check(err)
		_, err = integer.Increment(r.Ctx)
		testrig.WantErr(r.T, err, shared.ErrOverflow)
		_, err = integer.Subtract(r.Ctx, -1)
		testrig.WantErr(r.T, err, shared.ErrOverflow)
	})
}

// Many goroutines of several processes add, with answers lost all the time. Each sum
// after an addition is handed out once, and the end is the number of additions
// (TestDistributedAtomicLong.testMulti, testMutexOnly, testOptimisticOnly).
func TestAtomicCounts(t *testing.T) {
	t.Parallel()
	for name, promoted := range map[string]bool{"optimistic": false, "promoted": true} {
		bubble(t, func(r *rig) {
			const clients, goroutines, rounds = 4, 4, 20
			for _, m := range []zktest.Match{{Op: zktest.OpMulti}, {Op: zktest.OpGetData}, {Op: zktest.OpExists}, {Op: zktest.OpCreate}} {
				m.Prob, m.Times = 0.05, zktest.Always
				r.Srv.LoseReply(m)
				r.Srv.DropBefore(m)
			}
			var mu sync.Mutex
			seen := map[int64]bool{}
			merged, tries := 0, 0
			var wg sync.WaitGroup
			for i := range clients {
				c := r.Connect(name + string(rune('a'+i)))
				var opts []shared.AtomicOption
				if promoted {
					lock, err := recipes.NewInterProcessMutex(c, "/locks/long")
					r.Check(err)
					opts = append(opts, shared.WithTries(retry.None()), shared.PromotedToLock(lock, 0, retry.Default()))
				}
				n := r.long(c, opts...)
				for range goroutines {
					wg.Go(func() {
						for range rounds {
							v, err := n.Increment(r.Ctx)
							r.Check(err)
							mu.Lock()
							if seen[v.PostValue] || v.PostValue != v.PreValue+1 || !v.Succeeded {
								r.Errorf("%s: %+v again", name, v)
							}
							seen[v.PostValue] = true
							merged = max(merged, v.Stats.Merged)
							tries += v.Stats.PromotedTries
							mu.Unlock()
						}
					})
				}
			}
			wg.Wait()
			r.Srv.ClearRules()
			r.wantLong(r.long(r.Connect("z")), clients*goroutines*rounds)
			if merged < 2 || promoted != (tries > 0) {
				r.Errorf("%s: at most %d merged, %d tries under the lock", name, merged, tries)
			}
			r.rested()
		})
	}
}
