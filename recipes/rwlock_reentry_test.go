package recipes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A context that reads may read again, also while a writer waits. A context that
// writes may write again (Curator: one count per thread and half).
func TestRWLockReentry(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l := r.rw(c)
		outer := r.reads(r.Ctx, l)
		writer := rwWaits(r.Ctx, r.rw(r.Connect("b")), true)
		r.rwWaiting(writer, "a writer")
		r.Srv.ResetCounts()
		inner := r.reads(outer.Context(), r.rw(c))
		try, err := l.ReadLock().TryAcquire(inner.Context())
		r.Check(err)
		if inner.Path() != outer.Path() || try.FencingToken() != outer.FencingToken() || r.Srv.Count(zktest.OpCreate) != 0 {
			t.Errorf("outer %s, inner %s", outer.Path(), inner.Path())
		}
		r.Check(outer.Release(r.Ctx))
		r.Check(try.Release(r.Ctx))
		r.rwWaiting(writer, "a writer while one of three is left")
		r.Check(inner.Release(r.Ctx))
		r.Check(r.rwGranted(writer, "the writer").Release(r.Ctx))

		w := r.writes(r.Ctx, l)
		r.Srv.ResetCounts()
		again := r.writes(w.Context(), l)
		tried, err := l.WriteLock().TryAcquire(again.Context())
		r.Check(err)
		if again.Path() != w.Path() || tried.Path() != w.Path() || r.Srv.Count(zktest.OpCreate) != 0 {
			t.Errorf("again %s, tried %s", again.Path(), tried.Path())
		}
		reader := rwWaits(r.Ctx, r.rw(r.Connect("c")), false)
		r.Check(w.Release(r.Ctx))
		r.Check(again.Release(r.Ctx))
		r.rwWaiting(reader, "a reader while one of three is left")
		r.Check(tried.Release(r.Ctx))
		r.Check(r.rwGranted(reader, "the reader").Release(r.Ctx))
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testThatUpgradingIsDisallowed, which Curator
// shows by a time-out. Here it is refused at once, without a node. So two readers
// that want to write cannot wait for each other.
func TestRWLockUpgrade(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("locks"))
		l, err := recipes.NewInterProcessReadWriteLock(c, "/orders")
		r.Check(err)
		read := r.reads(r.Ctx, l)
		other := r.reads(r.Ctx, r.rw(r.Connect("b")))
		r.Srv.ResetCounts()
		start := time.Now()
		for op, acquire := range map[string]func(context.Context) error{
			"acquire":        func(ctx context.Context) error { _, err := l.WriteLock().Acquire(ctx); return err },
			"try to acquire": func(ctx context.Context) error { _, err := l.WriteLock().TryAcquire(ctx); return err },
			"acquire ": func(ctx context.Context) error {
				return l.WriteLock().Do(ctx, func(context.Context, *recipes.WriteHold) error { t.Error("both"); return nil })
			},
		} {
			err := acquire(r.bounded(read))
			testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
			if want := "recipes: " + strings.TrimSpace(op) + " /orders: would wait for itself: "; !strings.HasPrefix(fmt.Sprint(err), want) {
				t.Errorf("text %q, want %q", err, want)
			}
		}
		if n := r.Srv.Counts(); len(n) != 0 || time.Since(start) != 0 {
			t.Errorf("took %v and %v", time.Since(start), n)
		}
		r.Check(other.Release(r.Ctx))
		past := context.WithoutCancel(read.Context())
		r.Check(read.Release(r.Ctx))
		r.Check(r.writes(past, l).Release(r.Ctx)) // a hold of the past is none
		r.rwEmpty()
	})
}

// Within a read hold that is beside a write hold, writing is re-entered as
// long as the write hold lasts.
func TestRWLockWriteReadWrite(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		read := r.reads(w.Context(), l)
		again := r.writes(read.Context(), l)
		if again.Path() != w.Path() {
			t.Errorf("again %s", again.Path())
		}
		third := r.reads(again.Context(), l)
		if third.Path() != read.Path() {
			t.Errorf("third %s", third.Path())
		}
		r.Check(w.Release(r.Ctx))
		r.Check(again.Release(r.Ctx))
		_, err := l.WriteLock().Acquire(r.bounded(third))
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		r.Check(read.Release(r.Ctx))
		r.rwWantLine("__READ__0000000000")
		r.Check(third.Release(r.Ctx))
		r.rwEmpty()
	})
}

// Local memory is no lock: what was lost is not re-entered, and nothing is
// taken in its place.
func TestRWLockReentryAfterLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, write := range []bool{false, true} {
			c := r.Connect("a")
			l := r.rw(c)
			h, err := rwAcquire(r.Ctx, l, write)
			r.Check(err)
			r.Srv.ExpireSession(r.SessionID(c))
			<-h.Context().Done()
			for _, half := range []bool{false, true} {
				if write || half { // else it reads under a read
					got, err := rwAcquire(context.WithoutCancel(h.Context()), l, half)
					testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
					if got != nil {
						t.Errorf("write=%v was lost, write=%v was granted", write, half)
					}
				}
				got, err := rwTry(context.WithoutCancel(h.Context()), l, half)
				testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
				if got != nil {
					t.Errorf("write=%v was lost, write=%v was granted", write, half)
				}
			}
			testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost)
			r.rwEmpty()
		}
	})
}

// bounded is the context of a hold, which has no end of its own, with an end. A
// caller that waits for itself then fails, and does not hang.
func (r *rig) bounded(h *recipes.Hold) context.Context {
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	r.Cleanup(cancel)
	return ctx
}

// wouldDeadlock checks that err came at once and left only want in line.
func (r *rig) wouldDeadlock(err error, begun time.Time, want int) {
	r.Helper()
	testrig.WantErr(r.T, err, recipes.ErrWouldDeadlock)
	if took := time.Since(begun); took > 100*time.Millisecond {
		r.Errorf("refused after %v", took)
	}
	time.Sleep(time.Second)
	if line := r.Srv.Children(dir); len(line) != want {
		r.Errorf("line %v", line)
	}
}

// No caller waits for a hold that its own context descends from, whichever client
// made the hold. No caller waits for a writer that waits for such a hold.
func TestWouldWaitForItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		mine := r.held(r.mutex(a))
		begun := time.Now()
		_, err := r.mutex(b).Acquire(r.bounded(mine))
		r.wouldDeadlock(err, begun, 1)
		_, err = r.mutex(b).TryAcquire(r.bounded(mine)) // does not wait
		testrig.WantErr(t, err, recipes.ErrBusy)
		r.Check(mine.Release(r.Ctx))

		read := r.reads(r.Ctx, r.rw(a))
		begun = time.Now()
		_, err = r.rw(b).WriteLock().Acquire(r.bounded(read))
		r.wouldDeadlock(err, begun, 1)
		second := r.reads(r.bounded(read), r.rw(b))
		r.Check(second.Release(r.Ctx))
		writer := rwWaits(r.Ctx, r.rw(r.Connect("c")), true)
		r.rwWaiting(writer, "a writer")
		begun = time.Now()
		_, err = r.rw(b).ReadLock().Acquire(r.bounded(read))
		r.wouldDeadlock(err, begun, 2)
		r.Check(read.Release(r.Ctx))
		r.Check(r.rwGranted(writer, "the writer").Release(r.Ctx))

		w := r.writes(r.Ctx, r.rw(a))
		for _, write := range []bool{false, true} {
			begun = time.Now()
			_, err = rwAcquire(r.bounded(w.Hold), r.rw(b), write)
			r.wouldDeadlock(err, begun, 1)
		}
		r.Check(w.Release(r.Ctx))
		r.rwEmpty()
	})
}

// A lock of the same path on another ensemble is another lock, and so is one
// whose hold is over: the context says nothing then.
func TestWaitsForOthersOfTheSamePath(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		elsewhere := &rig{r.On(testrig.Server(r.T))}
		a, b := r.Connect("a"), elsewhere.Connect("b")
		mine := r.held(r.mutex(a))
		r.Check(elsewhere.held(r.mutex(b)).Release(r.Ctx))
		theirs := elsewhere.held(r.mutex(elsewhere.Connect("c")))
		waits := acquire(mine.Context(), r.mutex(b))
		r.rwWaiting(waits, "another ensemble's lock")
		r.Check(theirs.Release(r.Ctx))
		r.Check(r.rwGranted(waits, "another ensemble's lock").Release(r.Ctx))

		past := context.WithoutCancel(mine.Context())
		r.Check(mine.Release(r.Ctx))
		other := r.Connect("d")
		mine = r.held(r.mutex(other))
		waits = acquire(past, r.mutex(a))
		r.rwWaiting(waits, "a lock whose hold is over")
		past = context.WithoutCancel(mine.Context())
		r.Srv.Client("d").Partition()
		<-mine.Context().Done() // lost, with its node still there
		more := acquire(past, r.mutex(r.Connect("e")))
		r.Check(r.rwGranted(waits, "the next").Release(r.Ctx))
		r.Check(r.rwGranted(more, "behind a lost hold").Release(r.Ctx))
		r.Srv.Client("d").Heal()
		testrig.WantErr(t, mine.Release(r.Ctx), recipes.ErrLost)
		r.empty()
	})
}

// A release with the hold's own context is not cut short by the end that it
// brings about.
func TestReleaseWithOwnContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		ctx, cancel := context.WithCancel(h.Context())
		defer cancel()
		r.Check(h.Release(ctx))
		if line := r.line(); len(line) != 0 {
			t.Errorf("left: %v", line)
		}
		h = r.held(m)
		ctx, cancel = context.WithTimeout(h.Context(), time.Second)
		defer cancel()
		r.Srv.Freeze()
		begun := time.Now()
		testrig.WantErr(t, h.Release(ctx), context.DeadlineExceeded)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("took %v of a second", took)
		}
		r.Srv.Thaw()
		r.empty()
	})
}
