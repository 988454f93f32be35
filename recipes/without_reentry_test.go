package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// An acquire within a hold of the lock would wait for that hold. It is refused at
// once and without a node, whichever of the two was made without re-entry.
func TestWithoutReentry(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		alone, again := r.mutex(c, recipes.WithoutReentry()), r.mutex(c)
		for holder, held := range map[*recipes.InterProcessMutex][]*recipes.InterProcessMutex{alone: {alone, again}, again: {alone}} {
			h := r.held(holder)
			r.Srv.ResetCounts()
			for _, m := range held {
				for _, acquire := range []func(context.Context) (*recipes.Hold, error){m.Acquire, m.TryAcquire} {
					begun := time.Now()
					_, err := acquire(h.Context())
					if testrig.WantErr(t, err, recipes.ErrWouldDeadlock); time.Since(begun) > 0 {
						t.Errorf("after %v", time.Since(begun))
					}
				}
				testrig.WantErr(t, m.Do(h.Context(), func(context.Context, *recipes.Hold) error { panic("run") }), recipes.ErrWouldDeadlock)
			}
			multi, err := recipes.NewInterProcessMultiLock(alone)
			r.Check(err)
			_, err = multi.Acquire(h.Context())
			testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
			if r.Srv.Count(zktest.OpCreate) != 0 {
				t.Error("made a node")
			}
			// Another goroutine waits, and gets the lock after the release, also with
			// the context of the hold that is over.
			waits := acquire(r.Ctx, alone)
			time.Sleep(time.Second)
			r.Check(h.Release(r.Ctx))
			res := <-waits
			r.Check(res.err)
			r.Check(res.hold.Release(r.Ctx))
			past, err := alone.Acquire(context.WithoutCancel(h.Context()))
			r.Check(err)
			r.Check(past.Release(r.Ctx))
		}
		h := r.held(alone)
		r.Srv.ExpireSession(r.SessionID(c))
		<-h.Context().Done()
		_, err := alone.Acquire(context.WithoutCancel(h.Context()))
		testrig.WantErr(t, err, recipes.ErrLost) // as with re-entry
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost)
		r.empty()
	})
}

// What a lock without re-entry is for: the workers under one lock exclude each other
// in another, also with the context of their leader.
func TestWithoutReentryExcludesWorkers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		leader := r.on("/leader", c)
		m := r.mutex(c, recipes.WithoutReentry())
		var all sync.WaitGroup
		inside := 0
		for range 5 {
			all.Go(func() {
				h, err := m.Acquire(leader.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if inside++; inside != 1 {
					t.Errorf("%d inside", inside)
				}
				time.Sleep(time.Second)
				inside--
				if err := h.Release(r.Ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		r.Check(leader.Release(r.Ctx))
		r.empty()
	})
}

// Of a read/write lock: readers hold beside each other, each with a node of its own,
// and whatever would wait for the caller is refused.
func TestWithoutReentryReadersAndWriters(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l := r.rw(c, recipes.WithoutReentry())
		first, err := l.ReadLock().Acquire(r.Ctx)
		r.Check(err)
		second, err := l.ReadLock().Acquire(first.Context())
		r.Check(err)
		if line := r.rwLine(); len(line) != 2 || first.Path() == second.Path() || second.FencingToken() <= first.FencingToken() {
			t.Errorf("line %v, tokens %d, %d", line, first.FencingToken(), second.FencingToken())
		}
		_, err = l.WriteLock().Acquire(second.Context())
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		writer := rwWaits(r.Ctx, r.rw(r.Connect("b")), true)
		r.rwWaiting(writer, "a writer")
		for name, acquire := range map[string]func(context.Context) (*recipes.Hold, error){"acquire": l.ReadLock().Acquire} {
			begun := time.Now()
			if _, err = acquire(first.Context()); time.Since(begun) > time.Second {
				t.Errorf("%s took %v", name, time.Since(begun))
			}
			testrig.WantErr(t, err, recipes.ErrWouldDeadlock) // behind a writer that waits for the caller
		}
		_, err = l.ReadLock().TryAcquire(first.Context())
		testrig.WantErr(t, err, recipes.ErrBusy)
		r.Check(first.Release(r.Ctx))
		r.Check(second.Release(r.Ctx))
		r.Check(r.rwGranted(writer, "the writer").Release(r.Ctx))

		w, err := l.WriteLock().Acquire(r.Ctx)
		r.Check(err)
		for _, half := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := l.ReadLock().Acquire(ctx); return err },
			func(ctx context.Context) error { _, err := l.ReadLock().TryAcquire(ctx); return err },
			func(ctx context.Context) error { _, err := l.WriteLock().Acquire(ctx); return err },
		} {
			testrig.WantErr(t, half(w.Context()), recipes.ErrWouldDeadlock)
		}
		read, err := w.Downgrade(r.Ctx) // which is asked for by name
		r.Check(err)
		r.Check(read.Release(r.Ctx))
		r.rwEmpty()
	})
}
