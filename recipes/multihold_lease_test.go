package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// ofClients is a multi-lock of one mutex for each client, and its hold.
func (r *rig) ofClients(paths []string, clients ...*client.Client) *recipes.MultiHold {
	r.Helper()
	locks := make([]recipes.Lock, len(clients))
	for i, c := range clients {
		m, err := recipes.NewInterProcessMutex(c, paths[i])
		r.check(err)
		locks[i] = m
	}
	m, err := recipes.NewInterProcessMultiLock(locks...)
	r.check(err)
	h, err := m.Acquire(r.ctx)
	r.check(err)
	return h
}

// The deadline is the earliest of all, however their sessions fare.
func TestMultiHoldDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.connect("a"), r.connect("b"))
		time.Sleep(time.Minute)
		r.srv.Client("b").Freeze()
		time.Sleep(sessionTimeout / 4)
		a, b := h.Holds()[0].Deadline(), h.Holds()[1].Deadline()
		if got := h.Deadline(); !b.Before(a) || got.Sub(b).Abs() > time.Millisecond {
			t.Errorf("deadline %v, want the earlier of %v and %v", got, a, b)
		}
		<-h.Context().Done()
		if late := time.Since(b); late > 0 {
			t.Errorf("told %v after the deadline", late)
		}
		if !h.Deadline().IsZero() {
			t.Error("a lost hold has a deadline")
		}
		r.srv.Client("b").Thaw()
		wantErr(t, h.Release(r.ctx), recipes.ErrLost)
		r.nothingIn("/x", "/y")
	})
}

// Any lock in doubt puts all of them in doubt. The channel is as good as each
// lock's own: it is closed at once while there is doubt, and new after it.
func TestMultiHoldJeopardy(t *testing.T) {
	t.Parallel()
	for _, shaken := range []string{"a", "b"} {
		t.Run(shaken, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				h := r.ofClients([]string{"/x", "/y"}, r.connect("a"), r.connect("b"))
				time.Sleep(10 * time.Second)
				calm := h.Jeopardy()
				if calm != h.Jeopardy() {
					t.Error("a channel, and goroutines, for each call")
				}
				for range 3 {
					r.srv.Client(shaken).Freeze()
					select {
					case <-calm:
					case <-h.Context().Done():
						t.Fatal("lost without a warning")
					}
					select {
					case <-h.Jeopardy():
					default:
						t.Error("asked in the midst of the doubt there is none")
					}
					r.srv.Client(shaken).Thaw()
					time.Sleep(sessionTimeout / 3)
					calm = h.Jeopardy()
					select {
					case <-calm:
						t.Error("in doubt for good")
					default:
					}
				}
				r.check(h.Release(r.ctx))
			})
		})
	}
}

// A caller that asks for the first time in the midst of a doubt is told at once.
func TestMultiHoldJeopardyAskedLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.connect("a"), r.connect("b"))
		time.Sleep(10 * time.Second)
		doubt := h.Holds()[1].Jeopardy()
		r.srv.Client("b").Freeze()
		<-doubt
		select {
		case <-h.Jeopardy():
		default:
			t.Error("in doubt, and not told")
		}
		r.srv.Client("b").Thaw()
		r.check(h.Release(r.ctx))
	})
}

// Confirm finds the one lock that is gone.
func TestMultiHoldConfirm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.connect("a"), r.connect("b"))
		time.Sleep(time.Second)
		r.check(h.Confirm(r.ctx))
		r.srv.Client("b").Freeze()
		err := h.Confirm(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, recipes.ErrLost) || h.Err() != nil {
			t.Errorf("no answer passes for a loss: %v", err)
		}
		r.srv.Client("b").Thaw()
		r.srv.DelayEvents(time.Hour)
		r.check(r.srv.Delete(h.Holds()[1].Path()))
		err = h.Confirm(r.ctx)
		wantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		var which *recipes.LockError
		if !errors.As(err, &which) || which.Path != "/y" {
			t.Errorf("error %v, want one that names /y", err)
		}
		wantErr(t, h.Err(), recipes.ErrLost)
		wantErr(t, h.Release(r.ctx), recipes.ErrLost)
		wantErr(t, h.Confirm(r.ctx), recipes.ErrLost)
		r.nothingIn("/x", "/y")
	})
}

// A guarded transaction checks the node of every lock, whatever their kind and
// namespace.
func TestMultiHoldGuard(t *testing.T) {
	t.Parallel()
	for lost := range 3 {
		t.Run(name(lost), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { r.guardsAll(lost) })
		})
	}
}

func (r *rig) guardsAll(lost int) {
	r.Helper()
	c := r.connect("a")
	inside, err := c.Namespace("ns")
	r.check(err)
	m, err := recipes.NewInterProcessMutex(c, "/x")
	r.check(err)
	rw, err := recipes.NewInterProcessReadWriteLock(inside, "/y")
	r.check(err)
	sem, err := recipes.NewInterProcessSemaphoreV2(inside, "/z", 3)
	r.check(err)
	all, err := recipes.NewInterProcessMultiLock(m, rw.WriteLock(), sem.Permits(2))
	r.check(err)
	h, err := all.Acquire(r.ctx)
	r.check(err)
	r.check(r.srv.Create("/data", nil))
	set := func(data string) client.Op { return client.SetOp("/data", []byte(data), client.AnyVersion) }
	results, err := h.Guard(r.ctx, set("one"), client.CreateOp("/made", nil))
	r.check(err)
	if len(results) != 2 || results[0].Stat == nil || results[1].Path != "/made" {
		r.Errorf("results %+v", results)
	}
	_, err = h.Guard(r.ctx, set("two"), client.CreateOp("/made", nil))
	var refused *client.MultiError
	if !errors.As(err, &refused) || refused.Index != 1 || !errors.Is(err, zk.ErrNodeExists) || h.Err() != nil {
		r.Errorf("error %v", err)
	}
	r.srv.DelayEvents(time.Hour) // the holder hears nothing
	path := h.Holds()[lost].Path()
	if lost > 0 {
		path = "/ns" + path
	}
	r.check(r.srv.Delete(path))
	_, err = h.Guard(r.ctx, set("three"))
	wantErr(r.T, err, recipes.ErrLost, recipes.ErrNodeDeleted)
	wantErr(r.T, h.Err(), recipes.ErrLost)
	if n, _ := r.srv.Node("/data"); string(n.Data) != "one" {
		r.Errorf("a hold that was lost wrote %q", n.Data)
	}
	wantErr(r.T, h.Release(r.ctx), recipes.ErrLost)
	_, err = h.Guard(r.ctx, set("four"))
	wantErr(r.T, err, recipes.ErrLost)
}

// Locks of several sessions cannot be checked at once, and nothing is written.
func TestMultiHoldGuardOfSeveralSessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.connect("a"), r.connect("b"))
		before := r.srv.Zxid()
		_, err := h.Guard(r.ctx, client.CreateOp("/made", nil))
		wantErr(t, err, recipes.ErrSeveralSessions)
		if r.srv.Zxid() != before {
			t.Error("something was sent")
		}
		_, err = h.Holds()[1].Guard(r.ctx, client.CreateOp("/made", nil))
		r.check(err)
		r.check(h.Release(r.ctx))
		_, err = h.Guard(r.ctx)
		wantErr(t, err, recipes.ErrReleased)
	})
}
