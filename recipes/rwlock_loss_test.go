package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
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
		"expired":   {func(r *rig, c *client.Client, _ *recipes.Hold) { r.Srv.ExpireSession(r.SessionID(c)) }, client.ErrSessionLost, true},
		"partition": {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Srv.Client("a").Partition() }, client.ErrLeaseExpired, false},
		"silence":   {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Srv.Client("a").Freeze() }, client.ErrLeaseExpired, false},
		"node":      {func(r *rig, _ *client.Client, h *recipes.Hold) { r.Check(r.Srv.Delete(h.Path())) }, recipes.ErrNodeDeleted, true},
		"directory": {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Check(r.Srv.Delete(dir)) }, recipes.ErrNodeDeleted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rwHalves(t, func(r *rig, write bool) {
				c := r.Connect("a")
				l := r.rw(c)
				h, err := rwAcquire(r.Ctx, l, write)
				r.Check(err)
				other := r.rw(r.Connect("b"))
				time.Sleep(time.Second)
				next := rwWaits(r.Ctx, other, true)
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
				if took := time.Since(began); took > testrig.SessionTimeout {
					r.Errorf("told after %v", took)
				}
				testrig.WantErr(r.T, context.Cause(h.Context()), recipes.ErrLost, tt.want)
				testrig.WantErr(r.T, h.Release(r.Ctx), recipes.ErrLost, tt.want)
				if next != nil {
					taken = <-next
				}
				if name == "directory" && taken.err != nil { // its node went as well
					testrig.WantErr(r.T, taken.err, recipes.ErrNodeDeleted)
				} else {
					r.Check(taken.err)
					r.Check(taken.hold.Release(r.Ctx))
				}
				r.Srv.Client("a").Heal()
				r.Srv.Client("a").Thaw()
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
		"expired": {func(r *rig, c *client.Client) { r.Srv.ExpireSession(r.SessionID(c)) }, client.ErrSessionLost},
		"silence": {func(r *rig, _ *client.Client) { r.Srv.Client("a").Freeze() }, client.ErrSessionLost},
		"closed":  {func(r *rig, c *client.Client) { r.Check(c.CloseContext(r.Ctx)) }, client.ErrClosed},
		"node": {func(r *rig, _ *client.Client) {
			r.Check(r.Srv.Delete(dir + "/" + r.second()))
			r.Srv.CutAll() // wakes it
		}, recipes.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rwHalves(t, func(r *rig, write bool) {
				h := r.writes(r.Ctx, r.rw(r.Connect("holder")))
				c := r.Connect("a")
				l := r.rw(c)
				waits := rwWaits(r.Ctx, l, write)
				r.rwWaiting(waits, "behind a writer")
				began := time.Now()
				tt.lose(r, c)
				res := <-waits
				if took := time.Since(began); took > testrig.SessionTimeout {
					r.Errorf("told after %v", took)
				}
				testrig.WantErr(r.T, res.err, tt.want)
				if res.hold != nil {
					r.Error("two holders")
				}
				r.Check(h.Err())
				r.Check(h.Release(r.Ctx))
				r.Srv.Client("a").Thaw()
				if name != "closed" { // the client goes on
					again, err := rwAcquire(r.Ctx, l, write)
					r.Check(err)
					r.Check(again.Release(r.Ctx))
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
		holder := r.Connect("holder")
		h := r.writes(r.Ctx, r.rw(holder))
		c := r.Connect("a")
		waits := rwWaits(r.Ctx, r.rw(c), write)
		r.rwWaiting(waits, "behind a writer")
		id := r.SessionID(c)
		last := zktest.Match{Session: id, Op: zktest.OpGetChildren2}
		if !write {
			last = zktest.Match{Session: r.SessionID(holder), Op: zktest.OpDelete}
		}
		rule := r.Srv.BeforeReply(last, func(context.Context, zktest.Request) {
			r.Srv.ExpireSession(id)
		})
		r.Check(h.Release(r.Ctx))
		res := <-waits
		if rule.Fired() != 1 {
			r.Fatal("nothing is tested")
		}
		if res.hold != nil {
			<-res.hold.Context().Done()
			res.err = res.hold.Close()
		}
		testrig.WantErr(r.T, res.err, client.ErrSessionLost)
		r.rwEmpty()
	})
}

// Every request may be lost, before or after it is applied: one node, and none
// after the release.
func TestRWLockLostRequests(t *testing.T) {
	t.Parallel()
	rwHalves(t, func(r *rig, write bool) {
		l := r.rw(r.Connect("a"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpCreateContainer, zktest.OpCreate, zktest.OpGetChildren2, zktest.OpDelete} {
				if op == zktest.OpCreateContainer {
					_ = r.Srv.Delete(dir)
				}
				rule := fault(zktest.Match{Op: op, PathPrefix: dir})
				h, err := rwAcquire(r.Ctx, l, write)
				r.Check(err)
				if line := r.Srv.Children(dir); len(line) != 1 || h.Path() != dir+"/"+line[0] {
					r.Errorf("%s of %v lost: hold %s, line %v", name, op, h.Path(), line)
				}
				r.Check(h.Release(r.Ctx))
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
		a, b := r.rw(r.Connect("a")), r.rw(r.Connect("b"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpGetChildren2} {
				w := r.writes(r.Ctx, b)
				rule := fault(zktest.Match{Client: "a", Op: op, PathPrefix: dir})
				waits := rwWaits(r.Ctx, a, write)
				time.Sleep(time.Second)
				r.Srv.CutAll()
				time.Sleep(testrig.SessionTimeout)
				r.Check(w.Err())
				r.Check(w.Release(r.Ctx))
				r.Check(r.rwGranted(waits, "a waiter that lost a request").Release(r.Ctx))
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
		l, other := r.rw(r.Connect("a")), r.rw(r.Connect("b"))
		for _, acquire := range []func(context.Context, *recipes.InterProcessReadWriteLock, bool) (*recipes.Hold, error){rwAcquire, rwTry} {
			for _, free := range []bool{true, false} {
				for step := range 60 {
					var h *recipes.WriteHold
					if !free {
						h = r.writes(r.Ctx, other)
					}
					limit := time.Duration(step) * 73 * time.Microsecond
					ctx, cancel := context.WithTimeout(r.Ctx, limit)
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
						r.Check(got.Release(r.Ctx))
					case !free && errors.Is(err, recipes.ErrBusy):
					default:
						testrig.WantErr(r.T, err, context.DeadlineExceeded)
					}
					if h != nil {
						r.Check(h.Release(r.Ctx))
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
		h := r.writes(r.Ctx, r.rw(r.Connect("a")))
		l := r.rw(r.Connect("b"))
		reader := rwWaits(r.Ctx, l, false)
		r.rwWaiting(reader, "a reader")
		writer := rwWaits(r.Ctx, l, true)
		r.rwWaiting(writer, "a writer")
		r.Check(r.Srv.Delete(dir))
		for _, res := range []result{<-reader, <-writer} {
			if res.hold != nil {
				<-res.hold.Context().Done()
				res.err = res.hold.Close()
			}
			testrig.WantErr(t, res.err, recipes.ErrNodeDeleted)
		}
		<-h.Context().Done()
		testrig.WantErr(t, h.Close(), recipes.ErrLost, recipes.ErrNodeDeleted)
		r.Check(r.writes(r.Ctx, l).Release(r.Ctx))
		r.Check(r.reads(r.Ctx, l).Release(r.Ctx))
		r.rwEmpty()
	})
}
