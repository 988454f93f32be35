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
	"github.com/docent-go/docent/internal/testrig"
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
	r.Check(err)
	r.Check(m.RequestRelease(r.Ctx, recipes.Contender{Path: path}))
}

// A holder that is asked still holds, and decides. The hold of a later acquire
// can be asked again. (Curator: TestInterProcessMutex.testRevoking; there the
// second acquire is not told.)
func TestRevocation(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l, err := recipes.NewInterProcessReadWriteLock(r.Connect("a"), "/rw")
		r.Check(err)
		m := r.mutex(r.Connect("b"))
		operator := r.Connect("operator")
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
				h, err := acquire(r.Ctx)
				r.Check(err)
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
				r.Check(h.Err())
				r.Check(h.Context().Err())
				r.Check(h.Release(r.Ctx))
			}
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A request to any node of a lease, or of a multi-lock, is one to its hold.
func TestRevocationOfSeveralNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s, err := recipes.NewInterProcessSemaphoreV2(c, "/pool", 3)
		r.Check(err)
		for i := range 3 {
			l, err := s.Acquire(r.Ctx, 3)
			r.Check(err)
			if asked(l.Hold) {
				t.Fatal("told, and no program has asked")
			}
			r.ask(c, l.Paths()[i])
			if !asked(l.Hold) {
				t.Errorf("lease %d: not told", i)
			}
			r.Check(l.Err())
			r.Check(l.Release(r.Ctx))
		}
		multi, err := recipes.NewInterProcessMultiLock(r.mutex(c), s.Permits(2))
		r.Check(err)
		h, err := multi.Acquire(r.Ctx)
		r.Check(err)
		r.ask(c, h.Holds()[1].Path())
		if !asked(h.Holds()[1]) || asked(h.Holds()[0]) {
			t.Error("the member whose node was asked, and no other, is told")
		}
		r.Check(h.Release(r.Ctx))
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// The holder's way: give up when asked, and the client that asked is next.
func TestRevocationHandsOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		c := r.Connect("b")
		m := r.mutex(c)
		h.OnRevoke(func() { r.Check(h.Close()) })
		time.Sleep(time.Minute)
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		if len(q) != 1 || q[0].ReleaseRequested() {
			t.Fatalf("queue: %v", q)
		}
		began := time.Now()
		r.Check(m.RequestRelease(r.Ctx, q[0]))
		r.Check(r.held(m).Release(r.Ctx))
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		// It is gone, and that is what was wanted.
		r.Check(m.RequestRelease(r.Ctx, q[0]))
		r.WantNoChild(dir)
	})
}

// A request that was written before the holder looked for one counts. It may come
// in the moment of the grant, before the node was watched, or during the wait.
// (Curator ignores what the first read finds.)
func TestRevocationBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, operator := r.Connect("a"), r.Connect("operator")
		m := r.mutex(c)
		r.Check(r.held(m).Release(r.Ctx))

		before := r.Srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: dir}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.SetData(dir+"/"+r.line()[0], []byte("__REVOKE__"))) // as Curator's Revoker writes it
		})
		h := r.held(m)
		if before.Fired() != 1 {
			t.Fatal("nothing is tested")
		}
		if !asked(h) {
			t.Error("a request at the grant is lost")
		}
		r.Check(h.Release(r.Ctx))

		h = r.held(m)
		r.ask(operator, h.Path())
		if !asked(h) {
			t.Error("a request before the watch is lost")
		}
		waits := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		if len(q) != 2 || !q[0].ReleaseRequested() {
			t.Fatalf("queue: %v", q)
		}
		r.Check(r.mutex(operator).RequestRelease(r.Ctx, q[1]))
		time.Sleep(time.Second)
		r.Check(h.Release(r.Ctx))
		res := <-waits
		r.Check(res.err)
		if !asked(res.hold) {
			t.Error("a request to a waiter is lost")
		}
		r.Check(res.hold.Release(r.Ctx))
		r.empty()
	})
}

// Only Curator's ten bytes are a request, whatever else is written before and
// after; and a node that is deleted later is noticed as ever.
func TestRevocationIsNotAnyChange(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		for _, data := range []string{"", "__REVOKE__ ", "_REVOKE_", "__revoke__", "10.0.0.7"} {
			r.Check(r.Srv.SetData(h.Path(), []byte(data)))
			if asked(h) {
				t.Fatalf("%q is no request", data)
			}
		}
		r.Check(r.Srv.SetData(h.Path(), []byte("__REVOKE__")))
		if !asked(h) {
			t.Error("not told")
		}
		r.Check(r.Srv.SetData(h.Path(), []byte("never mind")))
		if !asked(h) {
			t.Error("a request cannot be taken back: a holder that has heard may have begun")
		}
		r.Srv.CutAll()
		time.Sleep(time.Second)
		r.Check(h.Err())
		r.Check(r.Srv.Delete(h.Path()))
		<-h.Context().Done()
		testrig.WantErr(t, h.Err(), recipes.ErrLost, recipes.ErrNodeDeleted)
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrNodeDeleted)
		r.empty()
	})
}

// All holds of one grant are asked, and f is not run for one that is over.
func TestRevocationOfReentrantHolds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		outer := r.held(m)
		inner, err := m.Acquire(outer.Context())
		r.Check(err)
		over, err := m.Acquire(inner.Context())
		r.Check(err)
		var told [4]atomic.Bool
		outer.OnRevoke(func() { told[0].Store(true) })
		inner.OnRevoke(func() { told[1].Store(true) })
		over.OnRevoke(func() { told[2].Store(true) })
		stop := inner.OnRevoke(func() { told[3].Store(true) })
		r.Check(over.Release(r.Ctx))
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
		r.Check(err)
		if !asked(late) {
			t.Error("a hold that enters later is not told")
		}
		for _, h := range []*recipes.Hold{late, inner, outer} {
			r.Check(h.Release(r.Ctx))
		}
		// After its end a hold is not told.
		h := r.held(m)
		ran := false
		h.OnRevoke(func() { ran = true })
		r.Check(h.Release(r.Ctx))
		r.ask(c, h.Path())
		if asked(h) || ran {
			t.Error("told after the release")
		}
		r.empty()
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A request is heard through an outage, and lost requests and answers on the
// asking side are repeated.
func TestRevocationInTrouble(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, operator := r.Connect("a"), r.Connect("operator")
		m := r.mutex(c)
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.LoseReply, r.Srv.DropBefore, r.Srv.DropAfter} {
			h := r.held(m)
			time.Sleep(testrig.SessionTimeout / 2) // a connection that stood is replaced at once
			lost := fault(zktest.Match{Client: "operator", Op: zktest.OpSetData})
			r.Srv.Client("a").Freeze()
			r.ask(operator, h.Path())
			r.Srv.Client("a").Thaw()
			r.Srv.Client("a").Cut()
			if !asked(h) || lost.Fired() != 1 {
				t.Errorf("told %v, %d faults", asked(h), lost.Fired())
			}
			r.Check(h.Release(r.Ctx))
		}
		h := r.held(m)
		r.Srv.Client("operator").Freeze()
		err := r.mutex(operator).RequestRelease(r.Within(time.Second), recipes.Contender{Path: h.Path()})
		var lockErr *recipes.LockError
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if !errors.As(err, &lockErr) || lockErr.Path != dir {
			t.Errorf("%#v", err)
		}
		r.Srv.Client("operator").Thaw()
		r.Check(h.Release(r.Ctx))
		r.empty()
	})
}

// Asking takes the right to write the node.
func TestRevocationWithoutRight(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		acl := append(zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete), zk.DigestACL(zk.PermAll, "u", "p")...)
		m, err := recipes.NewInterProcessMutex(r.Connect("a", client.WithAuth("digest", "u:p")), dir, recipes.WithNodeACL(acl...))
		r.Check(err)
		h := r.held(m)
		err = r.mutex(r.Connect("b")).RequestRelease(r.Ctx, recipes.Contender{Path: h.Path()})
		testrig.WantErr(t, err, zk.ErrNoAuth)
		if !refused(err) || asked(h) {
			t.Errorf("%v, asked %v", err, asked(h))
		}
		r.ask(r.Connect("c", client.WithAuth("digest", "u:p")), h.Path())
		if !asked(h) {
			t.Error("with the right: not told")
		}
		r.Check(h.Release(r.Ctx))
	})
}
