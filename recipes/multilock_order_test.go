package recipes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func (r *rig) mutexOn(c *client.Client, path string) *recipes.InterProcessMutex {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	r.Check(err)
	return m
}

// With one order of locks everywhere no callers wait in a circle. A caller that
// takes the locks one within the other meets a multi-lock that came in between.
func TestMultiLockBesideNestedLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		single, multi := r.Connect("single"), r.Connect("multi")
		pool := func(c *client.Client) *recipes.InterProcessSemaphoreV2 {
			s, err := recipes.NewInterProcessSemaphoreV2(c, "/c", 3)
			r.Check(err)
			return s
		}
		outer := r.held(r.mutexOn(single, "/a"))
		waits := multiAcquire(r.Within(time.Hour), r.multiOf(r.mutexOn(multi, "/a"), r.mutexOn(multi, "/b"), pool(multi).Permits(3)))
		time.Sleep(time.Second)
		begun := time.Now()
		inner := r.under(outer, single, "/b")
		permits, err := pool(single).Acquire(inner.Context(), 3)
		r.Check(err)
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("the locks behind were taken after %v", took)
		}
		r.Check(permits.Close())
		r.Check(inner.Close())
		r.Check(outer.Close())
		got := <-waits
		r.Check(got.err)
		r.Check(got.hold.Close())
		r.nothingIn("/a", "/b", "/c/locks", "/c/leases")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A multi-lock that waits in the middle holds the locks before, and stands in no
// queue behind. So a holder of the locks behind gets on.
func TestMultiLockBesideAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		middle := r.held(r.mutexOn(r.Connect("x"), "/b"))
		a, b := r.Connect("a"), r.Connect("b")
		first := multiAcquire(r.Within(time.Hour), r.multi(a, "/a", "/b", "/c"))
		time.Sleep(time.Second)
		if len(r.Srv.Children("/a")) != 1 || len(r.Srv.Children("/b")) != 2 || len(r.Srv.Children("/c")) != 0 {
			t.Errorf("stands in %v, %v, %v", r.Srv.Children("/a"), r.Srv.Children("/b"), r.Srv.Children("/c"))
		}
		last := r.held(r.mutexOn(b, "/c"))
		second := multiAcquire(r.Within(time.Hour), r.multi(b, "/b", "/d"))
		time.Sleep(time.Second)
		r.Check(middle.Close())
		time.Sleep(time.Second)
		if len(first) != 0 || len(second) != 0 {
			t.Error("a multi-lock was granted a lock that is held")
		}
		r.Check(last.Close())
		got := <-first
		r.Check(got.err)
		r.Check(got.hold.Close())
		got = <-second
		r.Check(got.err)
		r.Check(got.hold.Close())
		r.nothingIn("/a", "/b", "/c", "/d")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// Nested single locks and multi-locks of the same order, all of them busy.
func TestMultiLocksAndNestedLocksDoNotDeadlock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const each, rounds = 3, 60
		done := make(chan error, 2*each)
		for i := range each {
			multi, single := r.multi(r.Connect(name(i)), "/a", "/b", "/c"), r.Connect(name(each+i))
			outer, inner := r.mutexOn(single, []string{"/a", "/b", "/a"}[i]), r.mutexOn(single, []string{"/b", "/c", "/c"}[i])
			go func() {
				for range rounds {
					h, err := multi.Acquire(r.Within(time.Minute))
					if err != nil {
						done <- fmt.Errorf("multi: %w", err)
						return
					}
					time.Sleep(time.Millisecond)
					r.Check(h.Close())
				}
				done <- nil
			}()
			go func() {
				for range rounds {
					h, err := outer.Acquire(r.Within(time.Minute))
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
					r.Check(in.Close())
					r.Check(h.Close())
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
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// If the servers refuse to delete a node behind, a multi-lock does not wait: it would
// hold that lock out of order.
func TestMultiLockThatCannotWithdraw(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		single, multi := r.Connect("single"), r.Connect("multi")
		outer := r.held(r.mutexOn(single, "/a"))
		refused := r.Srv.Fail(zktest.Match{Client: "multi", Op: zktest.OpDelete, PathPrefix: "/b", Times: zktest.Always}, zktest.CodeNoAuth)
		_, err := r.multi(multi, "/a", "/b").Acquire(r.Ctx)
		testrig.WantErr(t, err, zk.ErrNoAuth)
		if text := fmt.Sprint(err); !strings.Contains(text, "could not be withdrawn before the wait") || !strings.Contains(text, "/b/_c_") {
			t.Error(err)
		}
		refused.Remove()
		r.Check(r.under(outer, single, "/b").Close()) // once the background has deleted the node
		r.Check(outer.Close())
	})
}
