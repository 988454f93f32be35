package recipes_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A mutex that one process takes again and again costs a create and a delete.
func TestFreeMutexInTwoRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		cycle := func() { r.Check(r.held(m).Release(r.Ctx)) }
		for range 3 { // it makes the directory, sets a watch there, and sees that its numbers follow each other
			cycle()
		}
		r.Srv.ResetCounts()
		for range 10 {
			cycle()
		}
		if lists, reads := r.Srv.Count(zktest.OpGetChildren2), r.Srv.Count(zktest.OpGetData); lists+reads != 0 || r.Srv.Count(zktest.OpCreate) != 10 {
			t.Errorf("requests %v", r.Srv.Counts())
		}
		// Another client comes between: one list, and one again until numbers follow each other.
		r.Check(r.held(r.mutex(r.Connect("b"))).Release(r.Ctx))
		r.Srv.ResetCounts()
		for range 5 {
			cycle()
		}
		if lists := r.Srv.Count(zktest.OpGetChildren2); lists != 2 {
			t.Errorf("%d lists after another client", lists)
		}
		time.Sleep(time.Minute)
		r.WantNoWatch()
	})
}

// A directory that was deleted and made again counts from 0. The same number as
// before tells nothing there: another client may stand ahead.
func TestDirectoryMadeAnew(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for range 4 {
			r.Check(r.held(m).Release(r.Ctx))
		}
		r.Check(r.Srv.Delete(dir))
		r.Check(r.Srv.Create(dir, nil))
		other := r.mutex(r.Connect("b"))
		for range 3 {
			r.Check(r.held(other).Release(r.Ctx))
		}
		h := r.held(other) // has the number before that of the next
		ctx, cancel := context.WithTimeout(r.Ctx, time.Second)
		defer cancel()
		if _, err := m.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		r.Check(h.Release(r.Ctx))
	})
}

// A waiter stands right behind a holder of the same client. When the holder
// releases, the waiter is granted before the delete is answered. The waiter needs
// no list and no watch on the holder.
func TestHandOverBeforeTheDelete(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		for range 3 {
			r.Check(r.held(m).Release(r.Ctx))
		}
		h := r.held(m)
		waits := acquire(r.Ctx, m)
		time.Sleep(10 * time.Millisecond)
		r.Srv.ResetCounts()
		rule := r.Srv.StallReply(zktest.Match{Session: r.SessionID(c), Op: zktest.OpDelete})
		defer rule.Remove()
		released := make(chan error, 1)
		go func() { released <- h.Release(r.Ctx) }()
		begun := time.Now()
		res := <-waits
		r.Check(res.err)
		if took := time.Since(begun); took > time.Millisecond/2 {
			t.Errorf("granted after %v", took)
		}
		if res.hold.FencingToken() <= h.FencingToken() {
			t.Error("the token did not grow")
		}
		if n := r.Srv.Count(zktest.OpGetChildren2) + r.Srv.Count(zktest.OpGetData); n != 0 {
			t.Errorf("requests %v", r.Srv.Counts())
		}
		r.Check(<-released)
		r.Check(res.hold.Release(r.Ctx))
		r.empty()
	})
}

// The hook of the next hold's begin comes before that of the end of the hold before, whose
// delete is not answered yet.
func TestHooksOfAHandOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var mu sync.Mutex
		var told []string
		tell := func(what, node string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, what+" "+node[len(node)-1:])
		}
		c := r.Connect("a", client.WithObserver(client.Observer{
			Lock: func(ctx context.Context, _ client.LockInfo) (context.Context, client.LockHooks) {
				return ctx, client.LockHooks{
					Held: func(ctx context.Context, h client.HoldInfo) context.Context {
						tell("held", h.Node)
						return ctx
					},
					Ended: func(h client.HoldResult) { tell("ended", h.Node) },
				}
			},
		}))
		m := r.mutex(c)
		h := r.held(m)
		waits := acquire(r.Ctx, m)
		time.Sleep(10 * time.Millisecond)
		r.Check(h.Release(r.Ctx))
		r.Check((<-waits).hold.Release(r.Ctx))
		if want := "held 0, held 1, ended 0, ended 1"; strings.Join(told, ", ") != want {
			t.Errorf("%v, want %s", told, want)
		}
	})
}

// A hold whose lease is over hands nothing over: the next one proves the session first.
func TestNoHandOverAfterTheLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		for range 3 {
			r.Check(r.held(m).Release(r.Ctx))
		}
		h := r.held(m)
		waits := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		r.Srv.Client("a").Freeze()
		<-h.Context().Done()
		_ = h.Close()
		if res := <-waits; res.err == nil {
			t.Error("granted without a proof")
		}
		r.Srv.Client("a").Thaw()
	})
}

// A hold that ends shortly before its lease hands the turn over, and the next hold
// begins only with a new proof of the session.
func TestNoHandOverOnAnOldProof(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for range 3 {
			r.Check(r.held(m).Release(r.Ctx))
		}
		h := r.held(m)
		waits := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		r.Srv.Client("a").Freeze()
		time.Sleep(time.Until(h.Deadline()) - 1500*time.Millisecond) // half a second before the margin
		r.Check(h.Err())
		go func() { _ = h.Release(r.Ctx) }()
		if res := <-waits; res.err == nil {
			t.Error("granted without a proof")
		}
		r.Srv.Client("a").Thaw()
	})
}

// A waiter whose node is deleted while it waits behind its own client is told, and the
// one behind it is granted.
func TestNodeOfALinkedWaiterDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for range 3 {
			r.Check(r.held(m).Release(r.Ctx))
		}
		h := r.held(m)
		second := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		third := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		for _, node := range r.Srv.Children(dir) {
			if strings.HasSuffix(node, "0000000004") { // of the second
				r.Check(r.Srv.Delete(dir + "/" + node))
			}
		}
		testrig.WantErr(t, (<-second).err, recipes.ErrNodeDeleted)
		r.Check(h.Release(r.Ctx))
		res := <-third
		r.Check(res.err)
		r.Check(res.hold.Release(r.Ctx))
		r.empty()
	})
}

// A writer behind a writer of the same client waits for the reader that the first turns
// into.
func TestDowngradeHandsNothingOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		for range 3 {
			r.Check(r.writes(r.Ctx, l).Release(r.Ctx))
		}
		w := r.writes(r.Ctx, l)
		next := rwWaits(r.Ctx, l, true)
		time.Sleep(10 * time.Millisecond)
		h := r.downgrades(r.Ctx, w)
		r.rwWaiting(next, "a writer behind a downgraded one")
		r.Check(h.Release(r.Ctx))
		r.Check((<-next).hold.Release(r.Ctx))
	})
}

// A writer behind readers waits for the readers of other clients. It does so too
// if the node of the writer ahead of all was deleted just before the look.
func TestWriterBehindReadersOfAnEvictedWriter(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.rw(r.Connect("a")), r.rw(r.Connect("b"))
		evicted := r.writes(r.Ctx, a)
		other := rwWaits(r.Ctx, b, false)
		time.Sleep(4 * time.Millisecond)
		own := rwWaits(r.Ctx, a, false)
		time.Sleep(4 * time.Millisecond)
		r.Check(r.Srv.Delete(evicted.Path()))
		next := rwWaits(r.Ctx, a, true)
		reading := <-other
		r.Check(reading.err)
		time.Sleep(4 * time.Millisecond)
		_ = evicted.Release(r.Ctx)
		mine := <-own
		r.Check(mine.err)
		r.Check(mine.hold.Release(r.Ctx))
		r.rwWaiting(next, "a writer behind a reader of another client")
		r.Check(reading.hold.Release(r.Ctx))
		r.Check((<-next).hold.Release(r.Ctx))
	})
}

// maxContenders runs f for locks that hand over in the process, and for those that do not.
func maxContenders(t *testing.T, f func(r *rig, opts []recipes.LockOption)) {
	t.Helper()
	for name, opts := range map[string][]recipes.LockOption{"plain": nil, "beside kazoo": {recipes.WithKazoo()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { f(r, opts) })
		})
	}
}

// Beyond the window acquires wait in the process, in order, and leave at once.
func TestMaxContenders(t *testing.T) {
	t.Parallel()
	maxContenders(t, func(r *rig, opts []recipes.LockOption) {
		c := r.Connect("a")
		m := r.mutex(c, append(opts, recipes.WithMaxContenders(2))...)
		h := r.held(m)
		var order []int
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				next := r.held(m)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				r.Check(next.Release(r.Ctx))
			})
			time.Sleep(10 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(r.Ctx, time.Second)
		begun := time.Now()
		_, err := m.Acquire(ctx)
		cancel()
		testrig.WantErr(t, err, context.DeadlineExceeded)
		var wait *recipes.WaitError
		if !errors.As(err, &wait) || !wait.SameClient || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		if len(q) != 2 || q[0].WaitingBehind != 0 || q[1].WaitingBehind != 5 {
			t.Errorf("queue %+v", q)
		}
		_, err = m.TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		r.Check(h.Release(r.Ctx))
		all.Wait()
		for i, who := range order {
			if i != who {
				t.Fatalf("order %v", order)
			}
		}
		r.empty()
	})
}

// Read holds do not count: more of them than the window last at a time.
func TestMaxContendersReaders(t *testing.T) {
	t.Parallel()
	maxContenders(t, func(r *rig, opts []recipes.LockOption) {
		l := r.rw(r.Connect("a"), append(opts, recipes.WithMaxContenders(2))...)
		var holds []*recipes.Hold
		for range 5 {
			holds = append(holds, r.reads(r.Ctx, l))
		}
		for _, h := range holds {
			r.Check(h.Release(r.Ctx))
		}
	})
}

// Acquires that wait in the process end with the client.
func TestMaxContendersClose(t *testing.T) {
	t.Parallel()
	maxContenders(t, func(r *rig, opts []recipes.LockOption) {
		c := r.Connect("a")
		m := r.mutex(c, append(opts, recipes.WithMaxContenders(1))...)
		_ = r.held(m)
		waits := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		r.Check(c.Close())
		testrig.WantErr(t, (<-waits).err, client.ErrClosed)
	})
}

// Thousands of goroutines on one lock starve no heartbeat of their own session, and the
// connection lasts.
func TestCrowdKeepsTheSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var doubts int
		c := r.Connect("a", client.WithSessionTimeout(6*time.Second), client.WithObserver(client.Observer{
			StateChange: func(s client.StateChange) {
				if s.State == client.Suspended || s.State == client.Lost {
					doubts++
				}
			},
		}))
		m := r.mutex(c)
		var all sync.WaitGroup
		for range 3000 {
			all.Go(func() {
				h := r.held(m)
				select {
				case <-h.Jeopardy():
					t.Error("a heartbeat is late")
				default:
				}
				time.Sleep(10 * time.Millisecond)
				r.Check(h.Release(r.Ctx))
			})
		}
		all.Wait()
		if doubts > 0 {
			t.Errorf("%d doubts", doubts)
		}
		r.empty()
	})
}
