package recipes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// Errors of locks name the lock and the cause, and say what to do where that can
// be known.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	const expired = 3 * testrig.SessionTimeout
	for name, tt := range map[string]struct {
		run           func(*rig) error
		cause, remedy string
	}{
		"no rights": {
			func(r *rig) error {
				admin := r.Connect("admin", client.WithAuth("digest", "admin:hunter2"))
				_, err := admin.Create(r.Ctx, "/locks", nil, client.ACL(zk.AuthACL(zk.PermAll)...))
				r.Check(err)
				_, err = r.mutex(r.Connect("a")).Acquire(r.Ctx)
				return err
			}, "not authenticated", "this client presents no credentials: pass them with client.WithAuth",
		},
		"wrong password": {
			func(r *rig) error {
				admin := r.Connect("admin", client.WithAuth("digest", "admin:hunter2"))
				_, err := admin.Create(r.Ctx, "/locks", nil, client.ACL(zk.AuthACL(zk.PermAll)...))
				r.Check(err)
				_, err = r.mutex(r.Connect("a", client.WithAuth("digest", "admin:hunter3"))).Acquire(r.Ctx)
				return err
			}, `digest user "admin"`, "a wrong password looks the same",
		},
		"relative path": {
			func(r *rig) error {
				_, err := recipes.NewInterProcessMutex(r.Connect("a"), "locks/orders")
				return err
			}, `invalid path "locks/orders": it is relative`, `like "/locks/orders"`,
		},
		"busy": {
			func(r *rig) error {
				r.held(r.mutex(r.Connect("a", client.WithName("billing"))))
				_, err := r.mutex(r.Connect("b")).TryAcquire(r.Ctx)
				return err
			}, "try to acquire " + dir + ": not free: holder " + dir, "client=billing",
		},
		"never released": {
			func(r *rig) error {
				m := r.mutex(r.Connect("a"))
				r.held(m)
				_, err := m.Acquire(r.Within(time.Second))
				return err
			}, "context deadline exceeded", ", of this same client (if that hold is the caller's, pass its context to the acquire)",
		},
		"behind a waiter of the client": {
			func(r *rig) error {
				m := r.mutex(r.Connect("a"))
				r.held(m)
				acquire(r.Within(time.Minute), m)
				time.Sleep(time.Second)
				_, err := m.Acquire(r.Within(time.Second))
				return err
			}, "context deadline exceeded", ", of this same client (if the caller holds the lock, pass the context of its hold to the acquire)",
		},
		"no server, in time": {
			func(r *rig) error {
				m := r.mutex(r.Connect("a"))
				r.Srv.Refuse()
				r.Srv.CutAll()
				_, err := m.Acquire(r.Within(time.Second))
				return err
			}, "not connected: context deadline exceeded", "is ZooKeeper running, is the port right?",
		},
		"node deleted": {
			func(r *rig) error {
				h := r.held(r.mutex(r.Connect("a")))
				r.Check(r.Srv.Delete(h.Path()))
				time.Sleep(testrig.SessionTimeout)
				return h.Err()
			}, "lock lost", "deleted by another client",
		},
		"session expired": {
			func(r *rig) error {
				c := r.Connect("a")
				h := r.held(r.mutex(c))
				r.Srv.ExpireSession(r.SessionID(c))
				time.Sleep(time.Second)
				return h.Err()
			}, "lock lost", "server refused the session",
		},
		"partition": {
			func(r *rig) error {
				h := r.held(r.mutex(r.Connect("a")))
				r.Srv.Client("a").Partition()
				time.Sleep(expired)
				return h.Err()
			}, "lock lost: " + dir + ": client: lease expired", "its nodes are safe until",
		},
		"closed while held": {
			func(r *rig) error {
				c := r.Connect("a")
				h := r.held(r.mutex(c))
				r.Check(c.CloseContext(r.Ctx))
				return h.Err()
			}, "lock lost", "client: the client was closed",
		},
		"guard after the release": {
			func(r *rig) error {
				h := r.held(r.mutex(r.Connect("a")))
				r.Check(h.Release(r.Ctx))
				r.Check(h.Release(r.Ctx))
				_, err := h.Guard(r.Ctx)
				return err
			}, "guard " + dir, "lock released",
		},
		"too many permits": {
			func(r *rig) error {
				_, err := r.semaphore(r.Connect("a"), 5).Acquire(r.Ctx, 6)
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
		c := r.Connect("a")
		m, s := r.mutex(c), r.semaphore(c, 1)
		both, err := recipes.NewInterProcessMultiLock(m, s.Permits(1))
		r.Check(err)
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
		r.Check(h.Release(r.Ctx))
		r.empty()
	})
}

// The cause of a hold's context names the lock, as the program may hold several. In the
// error of an operation, which names the lock itself, the path stands once. An error of
// several locks is one line.
func TestLossTexts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		outer := r.held(r.mutex(c))
		in, err := recipes.NewInterProcessMutex(c, "/inner")
		r.Check(err)
		other, err := recipes.NewInterProcessMutex(c, "/other")
		r.Check(err)
		inner, err := in.Acquire(outer.Context())
		r.Check(err)
		pair, err := recipes.NewInterProcessMultiLock(in, other)
		r.Check(err)
		r.Check(inner.Close())
		both, err := pair.Acquire(r.Ctx)
		r.Check(err)
		third, err := recipes.NewInterProcessMutex(c, "/third")
		r.Check(err)
		inner, err = third.Acquire(outer.Context())
		r.Check(err)
		for _, h := range append(both.Holds(), outer) {
			r.Check(r.Srv.Delete(h.Path()))
		}
		time.Sleep(time.Minute)
		const why = "its node was deleted by another client"
		for want, got := range map[string]error{
			"lock lost: " + dir + ": " + why:                                                              context.Cause(outer.Context()),
			"lock lost with the outer hold of " + dir + ": " + why:                                        inner.Err(),
			"recipes: confirm " + dir + ": lock lost: " + why:                                             outer.Confirm(r.Ctx),
			"recipes: release " + dir + ": lock lost: " + why:                                             outer.Close(),
			"recipes: release /inner: lock lost: " + why + "; recipes: release /other: lock lost: " + why: both.Close(),
		} {
			if testrig.WantErr(t, got, recipes.ErrLost, recipes.ErrNodeDeleted); got.Error() != want {
				r.Errorf("error %q\nwant  %q", got, want)
			}
		}
	})
}
