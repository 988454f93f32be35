package recipes_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// asked reports whether a program has asked for the release of h. A new hold
// watches its node after 20 ms.
func asked(h *recipes.Hold) bool {
	select {
	case <-h.Revoked():
		return true
	case <-time.After(2 * time.Second): // a second dial pauses for a second at most
		return false
	}
}

// ask asks for the release of the contender at path, of whatever lock.
func (r *rig) ask(c *client.Client, path string) {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, path[:strings.LastIndexByte(path, '/')])
	r.check(err)
	r.check(m.RequestRelease(r.ctx, recipes.Contender{Path: path}))
}

// A holder that is asked still holds, and decides. The hold of a later acquire
// can be asked again. (Curator: TestInterProcessMutex.testRevoking; there the
// second acquire is not told.)
func TestRevocation(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l, err := recipes.NewInterProcessReadWriteLock(r.connect("a"), "/rw")
		r.check(err)
		m := r.mutex(r.connect("b"))
		operator := r.connect("operator")
		for name, acquire := range map[string]func(context.Context) (*recipes.Hold, error){
			"mutex": m.Acquire, "read": l.ReadLock().Acquire,
			"write": func(ctx context.Context) (*recipes.Hold, error) {
				h, err := l.WriteLock().Acquire(ctx)
				if err != nil {
					return nil, err
				}
				return h.Hold, nil
			},
		} {
			for round := range 3 {
				h, err := acquire(r.ctx)
				r.check(err)
				if asked(h) {
					t.Fatalf("%s: told, and no program has asked", name)
				}
				var told atomic.Int32
				h.OnRevoke(func() { told.Add(1) })
				for range 2 { // twice is once
					r.ask(operator, h.Path())
					if !asked(h) {
						t.Fatalf("%s: not told in round %d", name, round)
					}
				}
				time.Sleep(time.Second)
				if told.Load() != 1 {
					t.Errorf("%s: told %d times", name, told.Load())
				}
				h.OnRevoke(func() { told.Add(1) })
				if time.Sleep(time.Second); told.Load() != 2 {
					t.Errorf("%s: a function that is set after the request is not called", name)
				}
				r.check(h.Err())
				r.check(h.Context().Err())
				r.check(h.Release(r.ctx))
			}
		}
		wantNoGoroutine(t)
	})
}

// A request to any node of a lease, or of a multi-lock, is one to its hold.
func TestRevocationOfSeveralNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s, err := recipes.NewInterProcessSemaphoreV2(c, "/pool", 3)
		r.check(err)
		for i := range 3 {
			l, err := s.Acquire(r.ctx, 3)
			r.check(err)
			if asked(l.Hold) {
				t.Fatal("told, and no program has asked")
			}
			r.ask(c, l.Paths()[i])
			if !asked(l.Hold) {
				t.Errorf("lease %d: not told", i)
			}
			r.check(l.Err())
			r.check(l.Release(r.ctx))
		}
		multi, err := recipes.NewInterProcessMultiLock(r.mutex(c), s.Permits(2))
		r.check(err)
		h, err := multi.Acquire(r.ctx)
		r.check(err)
		r.ask(c, h.Holds()[1].Path())
		if !asked(h.Holds()[1]) || asked(h.Holds()[0]) {
			t.Error("the member whose node was asked, and no other, is told")
		}
		r.check(h.Release(r.ctx))
		wantNoGoroutine(t)
	})
}

// The holder's way: give up when asked, and the client that asked is next.
func TestRevocationHandsOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.connect("a")))
		c := r.connect("b")
		m := r.mutex(c)
		h.OnRevoke(func() { r.check(h.Close()) })
		time.Sleep(time.Minute)
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.ctx) })
		if len(q) != 1 || q[0].ReleaseRequested() {
			t.Fatalf("queue: %v", q)
		}
		began := time.Now()
		r.check(m.RequestRelease(r.ctx, q[0]))
		r.check(r.held(m).Release(r.ctx))
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		// It is gone, and that is what was wanted.
		r.check(m.RequestRelease(r.ctx, q[0]))
		if left := r.srv.Children(dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// A request that was written before the holder looked for one counts. It may come
// in the moment of the grant, before the node was watched, or during the wait.
// (Curator ignores what the first read finds.)
func TestRevocationBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, operator := r.connect("a"), r.connect("operator")
		m := r.mutex(c)
		r.check(r.held(m).Release(r.ctx))

		before := r.srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: dir}, func(context.Context, zktest.Request) {
			r.check(r.srv.SetData(dir+"/"+r.line()[0], []byte("__REVOKE__"))) // as Curator's Revoker writes it
		})
		h := r.held(m)
		if before.Fired() != 1 {
			t.Fatal("nothing is tested")
		}
		if !asked(h) {
			t.Error("a request at the grant is lost")
		}
		r.check(h.Release(r.ctx))

		h = r.held(m)
		r.ask(operator, h.Path())
		if !asked(h) {
			t.Error("a request before the watch is lost")
		}
		waits := acquire(r.ctx, m)
		time.Sleep(time.Second)
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.ctx) })
		if len(q) != 2 || !q[0].ReleaseRequested() {
			t.Fatalf("queue: %v", q)
		}
		r.check(r.mutex(operator).RequestRelease(r.ctx, q[1]))
		time.Sleep(time.Second)
		r.check(h.Release(r.ctx))
		res := <-waits
		r.check(res.err)
		if !asked(res.hold) {
			t.Error("a request to a waiter is lost")
		}
		r.check(res.hold.Release(r.ctx))
		r.empty()
	})
}

// Only Curator's ten bytes are a request, whatever else is written before and
// after; and a node that is deleted later is noticed as ever.
func TestRevocationIsNotAnyChange(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.connect("a"))
		h := r.held(m)
		for _, data := range []string{"", "__REVOKE__ ", "_REVOKE_", "__revoke__", "10.0.0.7"} {
			r.check(r.srv.SetData(h.Path(), []byte(data)))
			if asked(h) {
				t.Fatalf("%q is no request", data)
			}
		}
		r.check(r.srv.SetData(h.Path(), []byte("__REVOKE__")))
		if !asked(h) {
			t.Error("not told")
		}
		r.check(r.srv.SetData(h.Path(), []byte("never mind")))
		if !asked(h) {
			t.Error("a request cannot be taken back: a holder that has heard may have begun")
		}
		r.srv.CutAll()
		time.Sleep(time.Second)
		r.check(h.Err())
		r.check(r.srv.Delete(h.Path()))
		<-h.Context().Done()
		wantErr(t, h.Err(), recipes.ErrLost, recipes.ErrNodeDeleted)
		wantErr(t, h.Release(r.ctx), recipes.ErrNodeDeleted)
		r.empty()
	})
}

// All holds of one grant are asked, and f is not run for one that is over.
func TestRevocationOfReentrantHolds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m := r.mutex(c)
		outer := r.held(m)
		inner, err := m.Acquire(outer.Context())
		r.check(err)
		over, err := m.Acquire(inner.Context())
		r.check(err)
		var told [4]atomic.Bool
		outer.OnRevoke(func() { told[0].Store(true) })
		inner.OnRevoke(func() { told[1].Store(true) })
		over.OnRevoke(func() { told[2].Store(true) })
		stop := inner.OnRevoke(func() { told[3].Store(true) })
		r.check(over.Release(r.ctx))
		if !stop() || stop() {
			t.Error("stop")
		}
		r.ask(c, outer.Path())
		if !asked(outer) || !asked(inner) {
			t.Error("not all are told")
		}
		if stop() {
			t.Error("stopped what has long been stopped")
		}
		time.Sleep(time.Second)
		for i, want := range []bool{true, true, false, false} {
			if told[i].Load() != want {
				t.Errorf("function %d: run %v, want %v", i, told[i].Load(), want)
			}
		}
		// One that enters now knows at once.
		late, err := m.Acquire(outer.Context())
		r.check(err)
		if !asked(late) {
			t.Error("a hold that enters later is not told")
		}
		for _, h := range []*recipes.Hold{late, inner, outer} {
			r.check(h.Release(r.ctx))
		}
		// After its end a hold is not told.
		h := r.held(m)
		ran := false
		h.OnRevoke(func() { ran = true })
		r.check(h.Release(r.ctx))
		r.ask(c, h.Path())
		if asked(h) || ran {
			t.Error("told after the release")
		}
		r.empty()
		wantNoGoroutine(t)
	})
}

// A request is heard through an outage, and lost requests and answers on the
// asking side are repeated.
func TestRevocationInTrouble(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, operator := r.connect("a"), r.connect("operator")
		m := r.mutex(c)
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.srv.LoseReply, r.srv.DropBefore, r.srv.DropAfter} {
			h := r.held(m)
			time.Sleep(sessionTimeout / 2) // a connection that stood is replaced at once
			lost := fault(zktest.Match{Client: "operator", Op: zktest.OpSetData})
			r.srv.Client("a").Freeze()
			r.ask(operator, h.Path())
			r.srv.Client("a").Thaw()
			r.srv.Client("a").Cut()
			if !asked(h) || lost.Fired() != 1 {
				t.Errorf("told %v, %d faults", asked(h), lost.Fired())
			}
			r.check(h.Release(r.ctx))
		}
		h := r.held(m)
		r.srv.Client("operator").Freeze()
		err := r.mutex(operator).RequestRelease(r.within(time.Second), recipes.Contender{Path: h.Path()})
		var lockErr *recipes.LockError
		wantErr(t, err, context.DeadlineExceeded)
		if !errors.As(err, &lockErr) || lockErr.Path != dir {
			t.Errorf("%#v", err)
		}
		r.srv.Client("operator").Thaw()
		r.check(h.Release(r.ctx))
		r.empty()
	})
}

// Asking takes the right to write the node.
func TestRevocationWithoutRight(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		acl := append(zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete), zk.DigestACL(zk.PermAll, "u", "p")...)
		m, err := recipes.NewInterProcessMutex(r.connect("a", client.WithAuth("digest", "u:p")), dir, recipes.WithNodeACL(acl...))
		r.check(err)
		h := r.held(m)
		err = r.mutex(r.connect("b")).RequestRelease(r.ctx, recipes.Contender{Path: h.Path()})
		wantErr(t, err, zk.ErrNoAuth)
		if !refused(err) || asked(h) {
			t.Errorf("%v, asked %v", err, asked(h))
		}
		r.ask(r.connect("c", client.WithAuth("digest", "u:p")), h.Path())
		if !asked(h) {
			t.Error("with the right: not told")
		}
		r.check(h.Release(r.ctx))
	})
}
