package recipes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func (r *rig) mutexOn(c *client.Client, path string) *recipes.InterProcessMutex {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.check(err)
	return m
}

// With one order of locks everywhere no callers wait in a circle. A caller that
// takes the locks one within the other meets a multi-lock that came in between.
func TestMultiLockBesideNestedLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		single, multi := r.connect("single"), r.connect("multi")
		pool := func(c *client.Client) *recipes.InterProcessSemaphoreV2 {
			s, err := recipes.NewInterProcessSemaphoreV2(c, "/c", 3)
			r.check(err)
			return s
		}
		outer := r.held(r.mutexOn(single, "/a"))
		waits := multiAcquire(r.within(time.Hour), r.multiOf(r.mutexOn(multi, "/a"), r.mutexOn(multi, "/b"), pool(multi).Permits(3)))
		time.Sleep(time.Second)
		begun := time.Now()
		inner := r.under(outer, single, "/b")
		permits, err := pool(single).Acquire(inner.Context(), 3)
		r.check(err)
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("the locks behind were taken after %v", took)
		}
		r.check(permits.Close())
		r.check(inner.Close())
		r.check(outer.Close())
		got := <-waits
		r.check(got.err)
		r.check(got.hold.Close())
		r.nothingIn("/a", "/b", "/c/locks", "/c/leases")
		wantNoGoroutine(t)
	})
}

// A multi-lock that waits in the middle holds the locks before, and stands in no
// queue behind. So a holder of the locks behind gets on.
func TestMultiLockBesideAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		middle := r.held(r.mutexOn(r.connect("x"), "/b"))
		a, b := r.connect("a"), r.connect("b")
		first := multiAcquire(r.within(time.Hour), r.multi(a, "/a", "/b", "/c"))
		time.Sleep(time.Second)
		if len(r.srv.Children("/a")) != 1 || len(r.srv.Children("/b")) != 2 || len(r.srv.Children("/c")) != 0 {
			t.Errorf("stands in %v, %v, %v", r.srv.Children("/a"), r.srv.Children("/b"), r.srv.Children("/c"))
		}
		last := r.held(r.mutexOn(b, "/c"))
		second := multiAcquire(r.within(time.Hour), r.multi(b, "/b", "/d"))
		time.Sleep(time.Second)
		r.check(middle.Close())
		time.Sleep(time.Second)
		if len(first) != 0 || len(second) != 0 {
			t.Error("a multi-lock was granted a lock that is held")
		}
		r.check(last.Close())
		got := <-first
		r.check(got.err)
		r.check(got.hold.Close())
		got = <-second
		r.check(got.err)
		r.check(got.hold.Close())
		r.nothingIn("/a", "/b", "/c", "/d")
		wantNoGoroutine(t)
	})
}

// Nested single locks and multi-locks of the same order, all of them busy.
func TestMultiLocksAndNestedLocksDoNotDeadlock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const each, rounds = 3, 60
		done := make(chan error, 2*each)
		for i := range each {
			multi, single := r.multi(r.connect(name(i)), "/a", "/b", "/c"), r.connect(name(each+i))
			outer, inner := r.mutexOn(single, []string{"/a", "/b", "/a"}[i]), r.mutexOn(single, []string{"/b", "/c", "/c"}[i])
			go func() {
				for range rounds {
					h, err := multi.Acquire(r.within(time.Minute))
					if err != nil {
						done <- fmt.Errorf("multi: %w", err)
						return
					}
					time.Sleep(time.Millisecond)
					r.check(h.Close())
				}
				done <- nil
			}()
			go func() {
				for range rounds {
					h, err := outer.Acquire(r.within(time.Minute))
					if err != nil {
						done <- fmt.Errorf("outer: %w", err)
						return
					}
					ctx, cancel := contextWithin(h, time.Minute)
					in, err := inner.Acquire(ctx)
					cancel()
					if err != nil {
						done <- fmt.Errorf("inner: %w", err)
						return
					}
					r.check(in.Close())
					r.check(h.Close())
				}
				done <- nil
			}()
		}
		for range 2 * each {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		r.nothingIn("/a", "/b", "/c")
		wantNoGoroutine(t)
	})
}

// If the servers refuse to delete a node behind, a multi-lock does not wait: it would
// hold that lock out of order.
func TestMultiLockThatCannotWithdraw(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		single, multi := r.connect("single"), r.connect("multi")
		outer := r.held(r.mutexOn(single, "/a"))
		refused := r.srv.Fail(zktest.Match{Client: "multi", Op: zktest.OpDelete, PathPrefix: "/b", Times: zktest.Always}, zktest.CodeNoAuth)
		_, err := r.multi(multi, "/a", "/b").Acquire(r.ctx)
		wantErr(t, err, zk.ErrNoAuth)
		if text := fmt.Sprint(err); !strings.Contains(text, "could not be withdrawn before the wait") || !strings.Contains(text, "/b/_c_") {
			t.Error(err)
		}
		refused.Remove()
		r.check(r.under(outer, single, "/b").Close()) // once the background has deleted the node
		r.check(outer.Close())
	})
}
