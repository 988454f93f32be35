package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

const lockDelay = 20 * time.Second

func (r *rig) delayed(c *client.Client) *recipes.InterProcessMutex {
	return r.mutex(c, recipes.WithLockDelay(lockDelay))
}

// heldAfter takes the lock and says how long that took.
func (r *rig) heldAfter(m *recipes.InterProcessMutex) (*recipes.Hold, time.Duration) {
	r.Helper()
	began := time.Now()
	h := r.held(m)
	return h, time.Since(began)
}

// After a release nobody waits for anything, nor after somebody who gave up.
func TestLockDelayAfterRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.delayed(r.connect("a")), r.delayed(r.connect("b"))
		for range 3 {
			for _, m := range []*recipes.InterProcessMutex{a, b} {
				h, took := r.heldAfter(m)
				if took > time.Second {
					r.Errorf("took %v", took)
				}
				r.check(h.Release(r.ctx))
			}
		}
		h := r.held(a)
		if _, err := b.Acquire(r.within(time.Second)); err == nil {
			r.Error("two holders")
		}
		waits := acquire(r.ctx, b)
		time.Sleep(time.Second)
		r.check(h.Release(r.ctx))
		began := time.Now()
		next := <-waits
		r.check(next.err)
		if took := time.Since(began); took > time.Second {
			r.Errorf("handed over in %v", took)
		}
		r.check(next.hold.Release(r.ctx))
		h, err := a.TryAcquire(r.ctx)
		r.check(err)
		r.check(h.Release(r.ctx))
		r.empty()
	})
}

// After a holder that did not release, the next one waits, whether it stood in
// line or came later; who only tries is told why not.
func TestLockDelayAfterLoss(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *rig, c *client.Client, h *recipes.Hold){
		"expired":      func(r *rig, c *client.Client, _ *recipes.Hold) { r.srv.ExpireSession(r.session(c)) },
		"closed":       func(r *rig, c *client.Client, _ *recipes.Hold) { r.check(c.CloseContext(r.ctx)) },
		"node deleted": func(r *rig, _ *client.Client, h *recipes.Hold) { r.check(r.srv.Delete(h.Path())) },
	} {
		for _, waiting := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.connect("a")
					h := r.held(r.delayed(c))
					m := r.delayed(r.connect("b"))
					var waits <-chan result
					if waiting {
						waits = acquire(r.ctx, m)
						time.Sleep(time.Second)
					}
					lost := time.Now()
					lose(r, c, h)
					time.Sleep(time.Second)
					wantErr(t, h.Release(r.ctx), recipes.ErrLost)
					third := r.delayed(r.connect("c"))
					if !waiting {
						_, err := third.TryAcquire(r.ctx)
						wantErr(t, err, recipes.ErrLockDelay)
						waits = acquire(r.ctx, m)
					}
					next := <-waits
					r.check(next.err)
					if took := time.Since(lost); took < lockDelay || took > lockDelay+2*time.Second {
						r.Errorf("held after %v", took)
					}
					r.check(next.hold.Release(r.ctx))
					if _, took := r.heldAfter(third); took > time.Second {
						r.Errorf("after a release: %v", took)
					}
				})
			})
		}
	}
}

// The delay is one, however many wait for it, and begins with the first who
// sees that it is due: who tries now and then gets the lock when it is over.
func TestLockDelayIsOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.held(r.delayed(c))
		r.check(c.CloseContext(r.ctx))
		began := time.Now()
		m := r.delayed(r.connect("b"))
		for {
			h, err := m.TryAcquire(r.ctx)
			if err == nil {
				r.check(h.Release(r.ctx))
				break
			}
			wantErr(t, err, recipes.ErrLockDelay)
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < lockDelay || took > lockDelay+2*time.Second {
			r.Errorf("held after %v", took)
		}
		r.empty()
	})
}

// Whatever request or answer is lost: nobody holds early, a release that was
// answered in the end was one, and nothing is left.
func TestLockDelayInTrouble(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *rig, m zktest.Match){
		"lost before": func(r *rig, m zktest.Match) { r.srv.DropBefore(m) },
		"answer lost": func(r *rig, m zktest.Match) { r.srv.LoseReply(m) },
	} {
		for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpSetData, zktest.OpMulti, zktest.OpExists} {
			for nth := 1; nth <= 2; nth++ {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					bubble(t, func(r *rig) {
						c := r.connect("a")
						r.held(r.delayed(c))
						r.check(c.CloseContext(r.ctx))
						trouble(r, zktest.Match{Op: op, Nth: nth, Client: "b"})
						m := r.delayed(r.connect("b"))
						h, took := r.heldAfter(m)
						if took < lockDelay || took > lockDelay+5*time.Second {
							r.Errorf("held after %v", took)
						}
						r.check(h.Release(r.ctx))
						if _, took := r.heldAfter(r.delayed(r.connect("c"))); took > time.Second {
							r.Errorf("the next after %v", took)
						}
					})
				})
			}
		}
	}
}

// A wait for the delay ends with its context and with the session, and leaves
// nothing; where the directory is somebody else's it is not touched.
func TestLockDelayEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.held(r.delayed(c))
		r.check(c.CloseContext(r.ctx))
		b := r.connect("b")
		m := r.delayed(b)
		_, err := m.Acquire(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		waits := acquire(r.ctx, m)
		time.Sleep(time.Second)
		r.srv.ExpireSession(r.session(b))
		wantErr(t, (<-waits).err, client.ErrSessionLost)
		waits = acquire(r.ctx, m)
		for len(r.line()) == 0 { // the next session is dialed with a pause
			time.Sleep(100 * time.Millisecond)
		}
		for _, name := range r.line() {
			r.check(r.srv.Delete(dir + "/" + name))
		}
		wantErr(t, (<-waits).err, recipes.ErrNodeDeleted)
		r.empty()

		r.check(r.srv.SetData(dir, []byte("mine")))
		if _, err := m.Acquire(r.ctx); err == nil {
			r.Error("a directory with data of somebody else's was used")
		}
		if n, _ := r.srv.Node(dir); string(n.Data) != "mine" {
			r.Errorf("data %q", n.Data)
		}
		r.empty()
		wantNoGoroutine(r.T)
	})
}

// One holder is what it is about.
func TestLockDelayRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		delay := recipes.WithLockDelay(time.Second)
		for name, make := range map[string]func() error{
			"read/write lock": func() error { _, err := recipes.NewInterProcessReadWriteLock(c, dir, delay); return err },
			"semaphore":       func() error { _, err := recipes.NewInterProcessSemaphore(c, dir, 1, delay); return err },
			"semaphore mutex": func() error { _, err := recipes.NewInterProcessSemaphoreMutex(c, dir, delay); return err },
			"count":           func() error { _, err := recipes.NewSharedCount(c, dir, 1, delay); return err },
			"negative": func() error {
				_, err := recipes.NewInterProcessMutex(c, dir, recipes.WithLockDelay(-time.Second))
				return err
			},
		} {
			if make() == nil {
				r.Errorf("%s: no error", name)
			}
		}
	})
}

// Who never held, or released with a context that had ended, left nothing that
// is worth waiting for.
func TestLockDelayAfterBackgroundRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		h := r.held(r.delayed(a))
		ended, cancel := context.WithCancel(r.ctx)
		cancel()
		wantErr(t, h.Release(ended), context.Canceled)
		h, took := r.heldAfter(r.delayed(b))
		if took > time.Second {
			t.Errorf("after a release in the background: %v", took)
		}
		r.check(h.Release(r.ctx))

		other, err := recipes.NewInterProcessMutex(b, "/other")
		r.check(err)
		busy := r.held(other)
		mine, err := recipes.NewInterProcessMutex(a, "/other")
		r.check(err)
		both, err := recipes.NewInterProcessMultiLock(r.delayed(a), mine)
		r.check(err)
		_, err = both.Acquire(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		h, took = r.heldAfter(r.delayed(b))
		if took > time.Second {
			t.Errorf("after a multi-lock that never held: %v", took)
		}
		r.check(h.Release(r.ctx))
		r.check(busy.Release(r.ctx))
		r.empty()
		wantNoGoroutine(r.T)
	})
}
