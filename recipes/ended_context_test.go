package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A context that has ended acquires nothing, also if it descends from a hold. It
// does not re-enter a lock, alone or within a multi-lock, nor the write lock for
// reading.
func TestEndedContextAcquiresNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		mutex, pool := r.mutex(c), r.semaphore(c, 3)
		rw, err := recipes.NewInterProcessReadWriteLock(c, "/rw")
		r.Check(err)
		h := r.held(mutex)
		w, err := rw.WriteLock().Acquire(h.Context())
		r.Check(err)
		l, err := pool.Acquire(w.Context(), 1)
		r.Check(err)
		over, cancel := context.WithCancel(l.Context())
		cancel()
		r.Srv.ResetCounts()
		both := r.multiOf(mutex, rw.ReadLock())
		for name, acquire := range map[string]func(context.Context) error{
			"mutex":       func(ctx context.Context) error { _, err := mutex.Acquire(ctx); return err },
			"try":         func(ctx context.Context) error { _, err := mutex.TryAcquire(ctx); return err },
			"write":       func(ctx context.Context) error { _, err := rw.WriteLock().Acquire(ctx); return err },
			"read":        func(ctx context.Context) error { _, err := rw.ReadLock().Acquire(ctx); return err },
			"downgrade":   func(ctx context.Context) error { _, err := w.Downgrade(ctx); return err },
			"permits":     func(ctx context.Context) error { _, err := pool.Acquire(ctx, 1); return err },
			"try permits": func(ctx context.Context) error { _, err := pool.TryAcquire(ctx, 1); return err },
			"several":     func(ctx context.Context) error { _, err := both.Acquire(ctx); return err },
			"none held":   func(ctx context.Context) error { _, err := r.mutexOn(c, "/other").Acquire(ctx); return err },
		} {
			if err := acquire(over); err == nil {
				t.Errorf("%s: acquired", name)
			} else {
				testrig.WantErr(t, err, context.Canceled)
			}
		}
		if n := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpMulti); n != 0 {
			t.Errorf("%d nodes made", n)
		}
		r.Check(l.Close())
		r.Check(w.Close())
		r.Check(h.Close())
		time.Sleep(time.Second)
		r.empty()
		r.nothingIn("/rw")
	})
}

// endsSoon is a context that ends as soon as somebody has seen that it has not.
type endsSoon struct {
	context.Context
	end context.CancelFunc
}

func (c endsSoon) Err() error {
	err := c.Context.Err()
	c.end()
	return err
}

// A release whose context ends in the same moment obeys that, and takes no session timeout.
func TestContextThatEndsAsTheReleaseBegins(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		_ = h.Context() // the release ends it
		r.Srv.Freeze()
		defer r.Srv.Thaw()
		ctx, cancel := context.WithCancel(r.Ctx)
		begun := time.Now()
		err := h.Release(endsSoon{ctx, cancel})
		testrig.WantErr(t, err, context.Canceled)
		if took := time.Since(begun); took > 0 {
			t.Errorf("the release took %v", took)
		}
	})
}
