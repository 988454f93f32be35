package recipes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// Errors of locks name the lock and the cause, and say what to do where that can
// be known.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	const expired = 3 * sessionTimeout
	for name, tt := range map[string]struct {
		run           func(*rig) error
		cause, remedy string
	}{
		"no rights": {
			func(r *rig) error {
				admin := r.connect("admin", client.WithAuth("digest", "admin:hunter2"))
				_, err := admin.Create(r.ctx, "/locks", nil, client.ACL(zk.AuthACL(zk.PermAll)...))
				r.check(err)
				_, err = r.mutex(r.connect("a")).Acquire(r.ctx)
				return err
			}, "not authenticated", "this client presents no credentials: pass them with client.WithAuth",
		},
		"wrong password": {
			func(r *rig) error {
				admin := r.connect("admin", client.WithAuth("digest", "admin:hunter2"))
				_, err := admin.Create(r.ctx, "/locks", nil, client.ACL(zk.AuthACL(zk.PermAll)...))
				r.check(err)
				_, err = r.mutex(r.connect("a", client.WithAuth("digest", "admin:hunter3"))).Acquire(r.ctx)
				return err
			}, `digest user "admin"`, "a wrong password looks the same",
		},
		"relative path": {
			func(r *rig) error {
				_, err := recipes.NewInterProcessMutex(r.connect("a"), "locks/orders")
				return err
			}, `invalid path "locks/orders": it is relative`, `like "/locks/orders"`,
		},
		"busy": {
			func(r *rig) error {
				r.held(r.mutex(r.connect("a", client.WithName("billing"))))
				_, err := r.mutex(r.connect("b")).TryAcquire(r.ctx)
				return err
			}, "try to acquire " + dir + ": not free: holder " + dir, "client=billing",
		},
		"never released": {
			func(r *rig) error {
				m := r.mutex(r.connect("a"))
				r.held(m)
				_, err := m.Acquire(r.within(time.Second))
				return err
			}, "context deadline exceeded", ", of this same client (if that hold is the caller's, pass its context to the acquire)",
		},
		"behind a waiter of the client": {
			func(r *rig) error {
				m := r.mutex(r.connect("a"))
				r.held(m)
				acquire(r.within(time.Minute), m)
				time.Sleep(time.Second)
				_, err := m.Acquire(r.within(time.Second))
				return err
			}, "context deadline exceeded", ", of this same client (if the caller holds the lock, pass the context of its hold to the acquire)",
		},
		"no server, in time": {
			func(r *rig) error {
				m := r.mutex(r.connect("a"))
				r.srv.Refuse()
				r.srv.CutAll()
				_, err := m.Acquire(r.within(time.Second))
				return err
			}, "not connected: context deadline exceeded", "is ZooKeeper running, is the port right?",
		},
		"node deleted": {
			func(r *rig) error {
				h := r.held(r.mutex(r.connect("a")))
				r.check(r.srv.Delete(h.Path()))
				time.Sleep(sessionTimeout)
				return h.Err()
			}, "lock lost", "deleted by another client",
		},
		"session expired": {
			func(r *rig) error {
				c := r.connect("a")
				h := r.held(r.mutex(c))
				r.srv.ExpireSession(r.session(c))
				time.Sleep(time.Second)
				return h.Err()
			}, "lock lost", "server refused the session",
		},
		"partition": {
			func(r *rig) error {
				h := r.held(r.mutex(r.connect("a")))
				r.srv.Client("a").Partition()
				time.Sleep(expired)
				return h.Err()
			}, "lock lost: " + dir + ": client: lease expired", "its nodes are safe until",
		},
		"closed while held": {
			func(r *rig) error {
				c := r.connect("a")
				h := r.held(r.mutex(c))
				r.check(c.CloseContext(r.ctx))
				return h.Err()
			}, "lock lost", "client: the client was closed",
		},
		"guard after the release": {
			func(r *rig) error {
				h := r.held(r.mutex(r.connect("a")))
				r.check(h.Release(r.ctx))
				r.check(h.Release(r.ctx))
				_, err := h.Guard(r.ctx)
				return err
			}, "guard " + dir, "lock released",
		},
		"too many permits": {
			func(r *rig) error {
				_, err := r.semaphore(r.connect("a"), 5).Acquire(r.ctx, 6)
				return err
			}, "more permits than the semaphore has", "asked for 6 of 5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				text := fmt.Sprint(tt.run(r))
				if !strings.Contains(text, tt.cause) || strings.Count(text, tt.remedy) != 1 || strings.Contains(text, "hunter") {
					t.Errorf("error %q\nwant %q and, once, %q", text, tt.cause, tt.remedy)
				}
			})
		})
	}
}

// A nil context is refused where it is passed, and leaves nothing behind.
func TestNilContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m, s := r.mutex(c), r.semaphore(c, 1)
		both, err := recipes.NewInterProcessMultiLock(m, s.Permits(1))
		r.check(err)
		h := r.held(m)
		var none context.Context
		for name, f := range map[string]func(){
			"Acquire":       func() { _, _ = m.Acquire(none) },
			"TryAcquire":    func() { _, _ = m.TryAcquire(none) },
			"Do":            func() { _ = m.Do(none, func(context.Context, *recipes.Hold) error { return nil }) },
			"Queue":         func() { _, _ = m.Queue(none) },
			"Release":       func() { _ = h.Release(none) },
			"of semaphores": func() { _, _ = s.Acquire(none, 1) },
			"of several":    func() { _, _ = both.Acquire(none) },
		} {
			func() {
				defer func() {
					if text := fmt.Sprint(recover()); !strings.Contains(text, "the context is nil; pass that of the caller") {
						t.Errorf("%s: panics with %q", name, text)
					}
				}()
				f()
			}()
		}
		r.check(h.Release(r.ctx))
		r.empty()
	})
}

// The cause of a hold's context names the lock, as the program may hold several. In the
// error of an operation, which names the lock itself, the path stands once. An error of
// several locks is one line.
func TestLossTexts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		outer := r.held(r.mutex(c))
		in, err := recipes.NewInterProcessMutex(c, "/inner")
		r.check(err)
		other, err := recipes.NewInterProcessMutex(c, "/other")
		r.check(err)
		inner, err := in.Acquire(outer.Context())
		r.check(err)
		pair, err := recipes.NewInterProcessMultiLock(in, other)
		r.check(err)
		r.check(inner.Close())
		both, err := pair.Acquire(r.ctx)
		r.check(err)
		third, err := recipes.NewInterProcessMutex(c, "/third")
		r.check(err)
		inner, err = third.Acquire(outer.Context())
		r.check(err)
		for _, h := range append(both.Holds(), outer) {
			r.check(r.srv.Delete(h.Path()))
		}
		time.Sleep(time.Minute)
		const why = "its node was deleted by another client"
		for want, got := range map[string]error{
			"lock lost: " + dir + ": " + why:                                                              context.Cause(outer.Context()),
			"lock lost with the outer hold of " + dir + ": " + why:                                        inner.Err(),
			"recipes: confirm " + dir + ": lock lost: " + why:                                             outer.Confirm(r.ctx),
			"recipes: release " + dir + ": lock lost: " + why:                                             outer.Close(),
			"recipes: release /inner: lock lost: " + why + "; recipes: release /other: lock lost: " + why: both.Close(),
		} {
			if wantErr(t, got, recipes.ErrLost, recipes.ErrNodeDeleted); got.Error() != want {
				r.Errorf("error %q\nwant  %q", got, want)
			}
		}
	})
}
