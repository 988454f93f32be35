package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// ofClients is a multi-lock of one mutex for each client, and its hold.
func (r *rig) ofClients(paths []string, clients ...*client.Client) *recipes.MultiHold {
	r.Helper()
	locks := make([]recipes.Lock, len(clients))
	for i, c := range clients {
		m, err := recipes.NewInterProcessMutex(c, paths[i])
		r.Check(err)
		locks[i] = m
	}
	m, err := recipes.NewInterProcessMultiLock(locks...)
	r.Check(err)
	h, err := m.Acquire(r.Ctx)
	r.Check(err)
	return h
}

// The deadline is the earliest of all, however their sessions fare.
func TestMultiHoldDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.Connect("a"), r.Connect("b"))
		time.Sleep(time.Minute)
		r.Srv.Client("b").Freeze()
		time.Sleep(testrig.SessionTimeout / 4)
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
		r.Srv.Client("b").Thaw()
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost)
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
				h := r.ofClients([]string{"/x", "/y"}, r.Connect("a"), r.Connect("b"))
				time.Sleep(10 * time.Second)
				calm := h.Jeopardy()
				if calm != h.Jeopardy() {
					t.Error("a channel, and goroutines, for each call")
				}
				for range 3 {
					r.Srv.Client(shaken).Freeze()
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
					r.Srv.Client(shaken).Thaw()
					time.Sleep(testrig.SessionTimeout / 3)
					calm = h.Jeopardy()
					select {
					case <-calm:
						t.Error("in doubt for good")
					default:
					}
				}
				r.Check(h.Release(r.Ctx))
			})
		})
	}
}

// A caller that asks for the first time in the midst of a doubt is told at once.
func TestMultiHoldJeopardyAskedLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.Connect("a"), r.Connect("b"))
		time.Sleep(10 * time.Second)
		doubt := h.Holds()[1].Jeopardy()
		r.Srv.Client("b").Freeze()
		<-doubt
		select {
		case <-h.Jeopardy():
		default:
			t.Error("in doubt, and not told")
		}
		r.Srv.Client("b").Thaw()
		r.Check(h.Release(r.Ctx))
	})
}

// Confirm finds the one lock that is gone.
func TestMultiHoldConfirm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.Connect("a"), r.Connect("b"))
		time.Sleep(time.Second)
		r.Check(h.Confirm(r.Ctx))
		r.Srv.Client("b").Freeze()
		err := h.Confirm(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, recipes.ErrLost) || h.Err() != nil {
			t.Errorf("no answer passes for a loss: %v", err)
		}
		r.Srv.Client("b").Thaw()
		r.Srv.DelayEvents(time.Hour)
		r.Check(r.Srv.Delete(h.Holds()[1].Path()))
		err = h.Confirm(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		var which *recipes.LockError
		if !errors.As(err, &which) || which.Path != "/y" {
			t.Errorf("error %v, want one that names /y", err)
		}
		testrig.WantErr(t, h.Err(), recipes.ErrLost)
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost)
		testrig.WantErr(t, h.Confirm(r.Ctx), recipes.ErrLost)
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
	c := r.Connect("a")
	inside, err := c.Namespace("ns")
	r.Check(err)
	m, err := recipes.NewInterProcessMutex(c, "/x")
	r.Check(err)
	rw, err := recipes.NewInterProcessReadWriteLock(inside, "/y")
	r.Check(err)
	sem, err := recipes.NewInterProcessSemaphoreV2(inside, "/z", 3)
	r.Check(err)
	all, err := recipes.NewInterProcessMultiLock(m, rw.WriteLock(), sem.Permits(2))
	r.Check(err)
	h, err := all.Acquire(r.Ctx)
	r.Check(err)
	r.Check(r.Srv.Create("/data", nil))
	set := func(data string) client.Op { return client.SetOp("/data", []byte(data), client.AnyVersion) }
	results, err := h.Guard(r.Ctx, set("one"), client.CreateOp("/made", nil))
	r.Check(err)
	if len(results) != 2 || results[0].Stat == nil || results[1].Path != "/made" {
		r.Errorf("results %+v", results)
	}
	_, err = h.Guard(r.Ctx, set("two"), client.CreateOp("/made", nil))
	var refused *client.MultiError
	if !errors.As(err, &refused) || refused.Index != 1 || !errors.Is(err, zk.ErrNodeExists) || h.Err() != nil {
		r.Errorf("error %v", err)
	}
	r.Srv.DelayEvents(time.Hour) // the holder hears nothing
	path := h.Holds()[lost].Path()
	if lost > 0 {
		path = "/ns" + path
	}
	r.Check(r.Srv.Delete(path))
	_, err = h.Guard(r.Ctx, set("three"))
	testrig.WantErr(r.T, err, recipes.ErrLost, recipes.ErrNodeDeleted)
	testrig.WantErr(r.T, h.Err(), recipes.ErrLost)
	if n, _ := r.Srv.Node("/data"); string(n.Data) != "one" {
		r.Errorf("a hold that was lost wrote %q", n.Data)
	}
	testrig.WantErr(r.T, h.Release(r.Ctx), recipes.ErrLost)
	_, err = h.Guard(r.Ctx, set("four"))
	testrig.WantErr(r.T, err, recipes.ErrLost)
}

// Locks of several sessions cannot be checked at once, and nothing is written.
func TestMultiHoldGuardOfSeveralSessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.ofClients([]string{"/x", "/y"}, r.Connect("a"), r.Connect("b"))
		before := r.Srv.Zxid()
		_, err := h.Guard(r.Ctx, client.CreateOp("/made", nil))
		testrig.WantErr(t, err, recipes.ErrSeveralSessions)
		if r.Srv.Zxid() != before {
			t.Error("something was sent")
		}
		_, err = h.Holds()[1].Guard(r.Ctx, client.CreateOp("/made", nil))
		r.Check(err)
		r.Check(h.Release(r.Ctx))
		_, err = h.Guard(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrReleased)
	})
}
