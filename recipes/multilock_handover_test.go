package recipes_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// What it costs to hand a multi-lock of three locks over. Within a session the first lock is
// handed over in memory. Its waiter then joins the other queues by one transaction, and a
// release is one transaction.
func TestMultiLockHandOver(t *testing.T) {
	t.Parallel()
	three := func(r *rig, c *client.Client) contending { return each(r.multi(c, "/x", "/y", "/z")) }
	measure(t, map[string]handOver{
		"one session":               {false, 0, three, cost{3.1, 0.05, 1.05}},
		"one session, with work":    {false, 5 * time.Millisecond, three, cost{4.1, 1.05, 1.05}}, // each waiter watches its own node
		"eight sessions":            {true, 0, three, cost{9.1, 2.1, 2.1}},
		"eight sessions, with work": {true, 5 * time.Millisecond, three, cost{9.1, 2.1, 2.1}},
	}, func(r *rig) { r.nothingIn("/x", "/y", "/z") })
}

// A multi-lock that had to wait in the middle joins the queues of all locks behind in one
// transaction, and not one by one.
func TestMultiLockJoinsTheRestTogether(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.multi(r.Connect("a"), "/v", "/w", "/x", "/y", "/z")
		middle := r.held(r.mutexOn(r.Connect("b"), "/w"))
		r.Srv.ResetCounts()
		waits := multiAcquire(r.Ctx, m)
		time.Sleep(time.Second)
		for dir, want := range map[string]int{"/v": 1, "/w": 2, "/x": 0, "/y": 0, "/z": 0} {
			if in := r.Srv.Children(dir); len(in) != want {
				t.Errorf("waiting: %v in %s, want %d", in, dir, want)
			}
		}
		joined := r.Srv.Count(zktest.OpMulti)
		r.Check(middle.Release(r.Ctx))
		got := <-waits
		r.Check(got.err)
		if n := r.Srv.Count(zktest.OpMulti) - joined; n != 1 {
			t.Errorf("%d transactions for the locks behind", n)
		}
		holds := got.hold.Holds()
		if a, b := holds[2].FencingToken(), holds[4].FencingToken(); a != b || a <= got.hold.FencingToken() {
			t.Errorf("tokens %d, %d behind %d", a, b, got.hold.FencingToken())
		}
		r.Check(got.hold.Release(r.Ctx))
		r.nothingIn("/v", "/w", "/x", "/y", "/z")
	})
}

// A multi-lock that had to wait for its first lock joins that queue alone for the next eight
// acquires that need not wait, and all queues together from then on.
func TestMultiLockRemembersACrowd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m, other := r.multi(r.Connect("a"), "/x", "/y"), r.mutexOn(r.Connect("b"), "/x")
		r.Check(r.multiHeld(m).Close())
		alone := func() bool {
			t.Helper()
			r.Srv.ResetCounts()
			r.Check(r.multiHeld(m).Close())
			return r.Srv.Count(zktest.OpCreate) == 2 // and then the second, the only one that is missing
		}
		if alone() {
			t.Error("the first lock alone, before any wait")
		}
		for range 2 {
			first := r.held(other)
			waits := multiAcquire(r.Ctx, m)
			time.Sleep(time.Second)
			r.Check(first.Close())
			got := <-waits
			r.Check(got.err)
			r.Check(got.hold.Close())
			for i := range 8 {
				if !alone() {
					t.Errorf("acquire %d behind a wait joins all queues", i)
				}
			}
			if alone() {
				t.Error("the first lock alone, long after the wait")
			}
		}
		// A wait for another lock says nothing of the first.
		middle := r.held(r.mutexOn(r.Connect("c"), "/y"))
		waits := multiAcquire(r.Ctx, m)
		time.Sleep(time.Second)
		r.Check(middle.Close())
		got := <-waits
		r.Check(got.err)
		r.Check(got.hold.Close())
		if alone() {
			t.Error("the first lock alone, behind a wait for another")
		}
		r.nothingIn("/x", "/y")
	})
}

// A waiter takes the other locks of a multi-lock although the nodes of the release before
// it still stand. It does not trust a node that another client has not released.
func TestMultiLockBeforeTheDelete(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.multi(c, "/x", "/y", "/z")
		h := r.multiHeld(m)
		waits := multiAcquire(r.Ctx, m)
		time.Sleep(time.Second)
		r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, PathPrefix: h.Holds()[2].Path()}, zktest.CodeNoAuth)
		r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, Times: zktest.Always}, zktest.CodeNoAuth)
		if err := h.Release(r.Ctx); err == nil || strings.Count(err.Error(), "recipes: release /") != 3 {
			t.Errorf("Release = %v", err)
		}
		began := time.Now()
		got := <-waits
		r.Check(got.err)
		if took := time.Since(began); took > 5*time.Millisecond {
			t.Errorf("granted after %v", took)
		}
		for _, dir := range []string{"/x", "/y", "/z"} {
			if in := r.Srv.Children(dir); len(in) != 2 {
				t.Errorf("%v in %s", in, dir)
			}
		}
		if _, err := r.multi(r.Connect("b"), "/z").TryAcquire(r.Ctx); err == nil {
			t.Error("another client holds beside the nodes")
		}
		r.Srv.ClearRules()
		r.Check(got.hold.Release(r.Ctx))
		r.nothingIn("/x", "/y", "/z")
	})
}

// A release deletes the nodes of each session in one transaction, in whatever namespaces
// they are. Permits leave by themselves.
func TestMultiLockReleasesTogether(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, d := r.Connect("a"), r.Connect("b")
		ns, err := c.Namespace("ns")
		r.Check(err)
		pool, err := recipes.NewInterProcessSemaphoreV2(c, "/p", 2)
		r.Check(err)
		m := r.multiOf(r.mutexOn(c, "/x"), r.mutexOn(d, "/x2"), r.mutexOn(ns, "/y"), pool.Permits(1), r.mutexOn(d, "/y2"))
		h := r.multiHeld(m)
		r.Srv.ResetCounts()
		r.Check(h.Release(r.Ctx))
		if multis, deletes := r.Srv.Count(zktest.OpMulti), r.Srv.Count(zktest.OpDelete); multis != 2 || deletes != 1 {
			t.Errorf("%d transactions, %d deletes", multis, deletes)
		}
		r.nothingIn("/x", "/x2", "/ns/y", "/y2", "/p/locks", "/p/leases")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A release says which lock was lost: another client has deleted its node, and the holder has
// not heard of it. The others are released. If the answer is lost, a node that is missing
// was deleted by the transaction.
func TestMultiLockReleaseOfALostLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.multi(r.Connect("a"), "/x", "/y", "/z")
		h := r.multiHeld(m)
		r.Check(r.Srv.Delete(h.Holds()[1].Path()))
		r.Srv.ResetCounts()
		err := h.Release(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		if text := err.Error(); !strings.Contains(text, "release /y:") || strings.Contains(text, "/x") || strings.Contains(text, "/z") {
			t.Errorf("Release = %v", err)
		}
		if multis, deletes := r.Srv.Count(zktest.OpMulti), r.Srv.Count(zktest.OpDelete); multis != 1 || deletes != 3 {
			t.Errorf("%d transactions, %d deletes", multis, deletes)
		}
		if again := h.Release(r.Ctx); again == nil || again.Error() != err.Error() {
			t.Errorf("again: %v", again)
		}
		for i, one := range h.Holds() {
			if err := one.Release(r.Ctx); (err != nil) != (i == 1) {
				t.Errorf("release of hold %d: %v", i, err)
			}
		}
		if n := len(r.Srv.Children("/x")) + len(r.Srv.Children("/z")); n != 0 {
			t.Errorf("%d nodes are left", n)
		}
		h = r.multiHeld(m)
		lost := r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti})
		r.Check(h.Release(r.Ctx))
		if lost.Fired() != 1 {
			t.Error("no answer was lost")
		}
		r.nothingIn("/x", "/y", "/z")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// One of the holds may be released by itself at any time, also while the release of all is
// under way, and with the context of another of the holds.
func TestMultiLockReleasesMeet(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.multi(r.Connect("a"), "/x", "/y", "/z")
		for range 20 {
			h := r.multiHeld(m)
			var all sync.WaitGroup
			for _, release := range []func(context.Context) error{h.Holds()[2].Release, h.Release, h.Holds()[0].Release, h.Release} {
				all.Go(func() {
					if err := release(r.Ctx); err != nil {
						t.Errorf("release: %v", err)
					}
				})
			}
			all.Wait()
			h = r.multiHeld(m)
			r.Check(h.Release(h.Holds()[1].Context()))
			if n := len(r.Srv.Children("/x")) + len(r.Srv.Children("/y")) + len(r.Srv.Children("/z")); n != 0 {
				t.Errorf("%d nodes are left", n)
			}
		}
		r.nothingIn("/x", "/y", "/z")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
