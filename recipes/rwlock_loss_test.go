package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// rwHalves runs f for each half of the lock.
func rwHalves(t *testing.T, f func(r *rig, write bool)) {
	t.Helper()
	for _, write := range []bool{false, true} {
		t.Run(fmt.Sprintf("write=%v", write), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { f(r, write) })
		})
	}
}

// A holder hears of its loss before a writer can hold the lock.
func TestRWLockLossWhileHolding(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client, h *recipes.Hold)
		want error
		// A holder that is robbed by force hears of it as fast as the next in
		// line.
		forced bool
	}{
		"expired":   {func(r *rig, c *client.Client, _ *recipes.Hold) { r.srv.ExpireSession(r.session(c)) }, client.ErrSessionLost, true},
		"partition": {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.srv.Client("a").Partition() }, client.ErrLeaseExpired, false},
		"silence":   {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.srv.Client("a").Freeze() }, client.ErrLeaseExpired, false},
		"node":      {func(r *rig, _ *client.Client, h *recipes.Hold) { r.check(r.srv.Delete(h.Path())) }, recipes.ErrNodeDeleted, true},
		"directory": {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.check(r.srv.Delete(dir)) }, recipes.ErrNodeDeleted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rwHalves(t, func(r *rig, write bool) {
				c := r.connect("a")
				l := r.rw(c)
				h, err := rwAcquire(r.ctx, l, write)
				r.check(err)
				other := r.rw(r.connect("b"))
				time.Sleep(time.Second)
				next := rwWaits(r.ctx, other, true)
				began := time.Now()
				tt.lose(r, c, h)
				var taken result
				for told := false; !told; {
					select {
					case <-h.Context().Done():
						told = true
					case taken = <-next:
						if !tt.forced {
							r.Error("the next holder was first")
						}
						next = nil
					case <-time.After(time.Minute):
						r.Fatal("the holder was never told")
					}
				}
				if took := time.Since(began); took > sessionTimeout {
					r.Errorf("told after %v", took)
				}
				wantErr(r.T, context.Cause(h.Context()), recipes.ErrLost, tt.want)
				wantErr(r.T, h.Release(r.ctx), recipes.ErrLost, tt.want)
				if next != nil {
					taken = <-next
				}
				if name == "directory" && taken.err != nil { // its node went as well
					wantErr(r.T, taken.err, recipes.ErrNodeDeleted)
				} else {
					r.check(taken.err)
					r.check(taken.hold.Release(r.ctx))
				}
				r.srv.Client("a").Heal()
				r.srv.Client("a").Thaw()
				r.rwEmpty()
			})
		})
	}
}

// A place in the queue that is lost is not taken again in silence, and no other
// contender's place is.
func TestRWLockLossWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client)
		want error
	}{
		"expired": {func(r *rig, c *client.Client) { r.srv.ExpireSession(r.session(c)) }, client.ErrSessionLost},
		"silence": {func(r *rig, _ *client.Client) { r.srv.Client("a").Freeze() }, client.ErrSessionLost},
		"closed":  {func(r *rig, c *client.Client) { r.check(c.CloseContext(r.ctx)) }, client.ErrClosed},
		"node": {func(r *rig, _ *client.Client) {
			r.check(r.srv.Delete(dir + "/" + r.second()))
			r.srv.CutAll() // wakes it
		}, recipes.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rwHalves(t, func(r *rig, write bool) {
				h := r.writes(r.ctx, r.rw(r.connect("holder")))
				c := r.connect("a")
				l := r.rw(c)
				waits := rwWaits(r.ctx, l, write)
				r.rwWaiting(waits, "behind a writer")
				began := time.Now()
				tt.lose(r, c)
				res := <-waits
				if took := time.Since(began); took > sessionTimeout {
					r.Errorf("told after %v", took)
				}
				wantErr(r.T, res.err, tt.want)
				if res.hold != nil {
					r.Error("two holders")
				}
				r.check(h.Err())
				r.check(h.Release(r.ctx))
				r.srv.Client("a").Thaw()
				if name != "closed" { // the client goes on
					again, err := rwAcquire(r.ctx, l, write)
					r.check(err)
					r.check(again.Release(r.ctx))
				}
				r.rwEmpty()
			})
		})
	}
}

// The session ends in the moment of the grant. For a writer that is after the
// list that would have granted it, for a reader after the event. Any hold that
// comes of it is lost.
func TestRWLockLossAtTheGrant(t *testing.T) {
	t.Parallel()
	rwHalves(t, func(r *rig, write bool) {
		holder := r.connect("holder")
		h := r.writes(r.ctx, r.rw(holder))
		c := r.connect("a")
		waits := rwWaits(r.ctx, r.rw(c), write)
		r.rwWaiting(waits, "behind a writer")
		id := r.session(c)
		last := zktest.Match{Session: id, Op: zktest.OpGetChildren2}
		if !write {
			last = zktest.Match{Session: r.session(holder), Op: zktest.OpDelete}
		}
		rule := r.srv.BeforeReply(last, func(context.Context, zktest.Request) {
			r.srv.ExpireSession(id)
		})
		r.check(h.Release(r.ctx))
		res := <-waits
		if rule.Fired() != 1 {
			r.Fatal("nothing is tested")
		}
		if res.hold != nil {
			<-res.hold.Context().Done()
			res.err = res.hold.Close()
		}
		wantErr(r.T, res.err, client.ErrSessionLost)
		r.rwEmpty()
	})
}

// Every request may be lost, before or after it is applied: one node, and none
// after the release.
func TestRWLockLostRequests(t *testing.T) {
	t.Parallel()
	rwHalves(t, func(r *rig, write bool) {
		l := r.rw(r.connect("a"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.srv.LoseReply, "request": r.srv.DropBefore, "stalled": r.srv.StallReply, "after": r.srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpCreateContainer, zktest.OpCreate, zktest.OpGetChildren2, zktest.OpDelete} {
				if op == zktest.OpCreateContainer {
					_ = r.srv.Delete(dir)
				}
				rule := fault(zktest.Match{Op: op, PathPrefix: dir})
				h, err := rwAcquire(r.ctx, l, write)
				r.check(err)
				if line := r.srv.Children(dir); len(line) != 1 || h.Path() != dir+"/"+line[0] {
					r.Errorf("%s of %v lost: hold %s, line %v", name, op, h.Path(), line)
				}
				r.check(h.Release(r.ctx))
				if rule.Fired() != 1 {
					r.Errorf("%s of %v: the fault happened %d times", name, op, rule.Fired())
				}
				r.rwEmpty()
			}
		}
	})
}

// The wait goes on through lost watches, and every request of it may be lost.
func TestRWLockLostWhileWaiting(t *testing.T) {
	t.Parallel()
	rwHalves(t, func(r *rig, write bool) {
		a, b := r.rw(r.connect("a")), r.rw(r.connect("b"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.srv.LoseReply, "request": r.srv.DropBefore, "stalled": r.srv.StallReply, "after": r.srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpGetChildren2} {
				w := r.writes(r.ctx, b)
				rule := fault(zktest.Match{Client: "a", Op: op, PathPrefix: dir})
				waits := rwWaits(r.ctx, a, write)
				time.Sleep(time.Second)
				r.srv.CutAll()
				time.Sleep(sessionTimeout)
				r.check(w.Err())
				r.check(w.Release(r.ctx))
				r.check(r.rwGranted(waits, "a waiter that lost a request").Release(r.ctx))
				if rule.Fired() != 1 {
					r.Errorf("%s of %v: the fault happened %d times", name, op, rule.Fired())
				}
				r.rwEmpty()
			}
		}
	})
}

// Acquire returns when its context ends at any moment of its way, and leaves
// nothing.
func TestRWLockCancelledAtEveryStep(t *testing.T) {
	t.Parallel()
	rwHalves(t, func(r *rig, write bool) {
		l, other := r.rw(r.connect("a")), r.rw(r.connect("b"))
		for _, acquire := range []func(context.Context, *recipes.InterProcessReadWriteLock, bool) (*recipes.Hold, error){rwAcquire, rwTry} {
			for _, free := range []bool{true, false} {
				for step := range 60 {
					var h *recipes.WriteHold
					if !free {
						h = r.writes(r.ctx, other)
					}
					limit := time.Duration(step) * 73 * time.Microsecond
					ctx, cancel := context.WithTimeout(r.ctx, limit)
					start := time.Now()
					got, err := acquire(ctx, l, write)
					if took := time.Since(start); took > limit {
						r.Errorf("limit %v: took %v", limit, took)
					}
					cancel()
					switch {
					case err == nil && !free:
						r.Fatal("two holders")
					case err == nil:
						r.check(got.Release(r.ctx))
					case !free && errors.Is(err, recipes.ErrBusy):
					default:
						wantErr(r.T, err, context.DeadlineExceeded)
					}
					if h != nil {
						r.check(h.Release(r.ctx))
					}
				}
				r.rwEmpty()
			}
		}
	})
}

// The directory goes while a reader and a writer wait: they are told when they
// next look, and the lock works on. The reader has the turn if the holder's node goes
// before its own, and is told as a holder then.
func TestRWLockDirectoryDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.writes(r.ctx, r.rw(r.connect("a")))
		l := r.rw(r.connect("b"))
		reader := rwWaits(r.ctx, l, false)
		r.rwWaiting(reader, "a reader")
		writer := rwWaits(r.ctx, l, true)
		r.rwWaiting(writer, "a writer")
		r.check(r.srv.Delete(dir))
		for _, res := range []result{<-reader, <-writer} {
			if res.hold != nil {
				<-res.hold.Context().Done()
				res.err = res.hold.Close()
			}
			wantErr(t, res.err, recipes.ErrNodeDeleted)
		}
		<-h.Context().Done()
		wantErr(t, h.Close(), recipes.ErrLost, recipes.ErrNodeDeleted)
		r.check(r.writes(r.ctx, l).Release(r.ctx))
		r.check(r.reads(r.ctx, l).Release(r.ctx))
		r.rwEmpty()
	})
}
