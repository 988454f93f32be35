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
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

const longPath = "/counts/long"

func (r *rig) long(c *client.Client, opts ...shared.AtomicOption) *shared.DistributedAtomicLong {
	r.Helper()
	n, err := shared.NewDistributedAtomicLong(c, longPath, opts...)
	r.check(err)
	return n
}

func (r *rig) wantLong(n *shared.DistributedAtomicLong, want int64) {
	r.Helper()
	v, err := n.Get(r.ctx)
	r.check(err)
	if !v.Succeeded || v.PreValue != want || v.PostValue != want {
		r.Errorf("the number is %+v, want %d", v, want)
	}
}

// rested checks that no mark is left when nothing goes on.
func (r *rig) rested() {
	r.Helper()
	time.Sleep(5 * time.Second)
	if left := r.srv.Children(longPath); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
	wantNoGoroutine(r.T)
}

// The node is Curator's and so is every result
// (TestDistributedAtomicLong.testBasic, testCompareAndSet, testInitialize,
// testForceSet, testCorrectIncrementFrom0, testGetWithEmptyNode).
func TestDistributedAtomicLong(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]shared.AtomicOption{"mark": nil, "plain": {shared.WithoutMark()}} {
		bubble(t, func(r *rig) {
			n := r.long(r.connect("a"), opts...)
			is := func(what string, v shared.AtomicValue[int64], err error, ok bool, pre, post int64) {
				r.Helper()
				r.check(err)
				if v.Succeeded != ok || v.PreValue != pre || v.PostValue != post {
					r.Errorf("%s: %s: %+v, want %v, %d, %d", name, what, v, ok, pre, post)
				}
			}
			v, err := n.Get(r.ctx)
			is("get of none", v, err, true, 0, 0)
			v, err = n.CompareAndSet(r.ctx, 0, 5)
			is("compare with none", v, err, false, 0, 0)
			if _, there := r.srv.Node(longPath); there {
				r.Error("a compare has made the node")
			}
			v, err = n.Add(r.ctx, 258)
			is("add to none", v, err, true, 0, 258)
			if node, _ := r.srv.Node(longPath); !bytes.Equal(node.Data, []byte{0, 0, 0, 0, 0, 0, 1, 2}) || node.Stat.EphemeralOwner != 0 || node.Container {
				r.Errorf("%s: node %+v", name, node)
			}
			if up, _ := r.srv.Node("/counts"); !up.Container {
				r.Errorf("parent %+v", up)
			}
			if first, err := n.Initialize(r.ctx, 3); first || err != nil {
				r.Errorf("initialized again: %v", err)
			}
			v, err = n.Increment(r.ctx)
			is("increment", v, err, true, 258, 259)
			v, err = n.Decrement(r.ctx)
			is("decrement", v, err, true, 259, 258)
			v, err = n.Subtract(r.ctx, 300)
			is("subtract", v, err, true, 258, -42)
			v, err = n.CompareAndSet(r.ctx, -42, 77)
			is("compare", v, err, true, -42, 77)
			v, err = n.CompareAndSet(r.ctx, -42, 78)
			is("compare with another value", v, err, false, 77, 0)
			v, err = n.TrySet(r.ctx, 5)
			is("try", v, err, true, 77, 5)
			r.check(n.ForceSet(r.ctx, 6))
			v, err = n.Add(r.ctx, 0)
			is("after a foreign set", v, err, true, 6, 6)
			r.check(r.srv.SetData(longPath, nil))
			r.wantLong(n, 0)
			v, err = n.Add(r.ctx, 1)
			is("add to an empty node", v, err, true, 0, 1)
			r.rested()
			r.check(r.srv.Delete(longPath))
			if first, err := n.Initialize(r.ctx, 3); !first || err != nil {
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
		c := r.connect("a")
		long := r.long(c)
		integer, err := shared.NewDistributedAtomicInteger(c, longPath)
		r.check(err)
		v, err := integer.Add(r.ctx, 1)
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
			r.check(r.srv.SetData(longPath, data))
			if len(data) != 8 {
				_, err := long.Get(r.ctx)
				refused("Get", err, len(data))
				_, err = long.Add(r.ctx, 1)
				refused("Add", err, len(data))
				_, err = long.CompareAndSet(r.ctx, 5, 6)
				refused("CompareAndSet", err, len(data))
				_, err = long.TrySet(r.ctx, 6)
				refused("TrySet", err, len(data))
				refused("ForceSet", long.ForceSet(r.ctx, 6), len(data))
			}
			if len(data) != 4 {
				_, err := integer.Get(r.ctx)
				refused("Get of an integer", err, len(data))
				_, err = integer.Add(r.ctx, 1)
				refused("Add of an integer", err, len(data))
			}
			if n, _ := r.srv.Node(longPath); !bytes.Equal(n.Data, data) {
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
		c := r.connect("a")
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
			r.check(n.ForceSet(r.ctx, tt.from))
			v, err := tt.f(r.ctx, tt.delta)
			if !errors.Is(err, shared.ErrOverflow) || v.Succeeded || client.UnknownOutcome(err) {
				r.Errorf("%d and %d: %+v, %v", tt.from, tt.delta, v, err)
			}
			if why := fmt.Sprint(err); !strings.HasPrefix(why, "client: "+tt.op) || !strings.Contains(why, fmt.Sprintf("to %s %d", tt.op, tt.delta)) {
				r.Error(why)
			}
			r.wantLong(n, tt.from)
		}
		wrapping := r.long(c, shared.WithWrapping())
		r.check(n.ForceSet(r.ctx, math.MaxInt64))
		if v, err := wrapping.Increment(r.ctx); v.PostValue != math.MinInt64 || err != nil {
			r.Errorf("%+v, %v", v, err)
		}
		integer, err := shared.NewDistributedAtomicInteger(c, "/counts/integer")
		r.check(err)
		_, err = integer.TrySet(r.ctx, math.MaxInt32)
		r.check(err)
		_, err = integer.Increment(r.ctx)
		wantErr(r.T, err, shared.ErrOverflow)
		_, err = integer.Subtract(r.ctx, -1)
		wantErr(r.T, err, shared.ErrOverflow)
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
				r.srv.LoseReply(m)
				r.srv.DropBefore(m)
			}
			var mu sync.Mutex
			seen := map[int64]bool{}
			merged, tries := 0, 0
			var wg sync.WaitGroup
			for i := range clients {
				c := r.connect(name + string(rune('a'+i)))
				var opts []shared.AtomicOption
				if promoted {
					lock, err := recipes.NewInterProcessMutex(c, "/locks/long")
					r.check(err)
					opts = append(opts, shared.WithTries(retry.None()), shared.PromotedToLock(lock, 0, retry.Default()))
				}
				n := r.long(c, opts...)
				for range goroutines {
					wg.Go(func() {
						for range rounds {
							v, err := n.Increment(r.ctx)
							r.check(err)
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
			r.srv.ClearRules()
			r.wantLong(r.long(r.connect("z")), clients*goroutines*rounds)
			if merged < 2 || promoted != (tries > 0) {
				r.Errorf("%s: at most %d merged, %d tries under the lock", name, merged, tries)
			}
			r.rested()
		})
	}
}
