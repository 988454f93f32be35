package recipes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// TestInterProcessReadWriteLock.testContendingDowngrading (CURATOR-621): a writer
// that waits stays behind the read hold, and the readers before the writer share.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		l := r.rw(c, recipes.WithNodeData([]byte("mine")))
		w := r.writes(r.ctx, l)
		reader := rwWaits(r.ctx, r.rw(r.connect("b")), false)
		r.rwWaiting(reader, "a reader")
		writer := rwWaits(r.ctx, r.rw(r.connect("c")), true)
		r.rwWaiting(writer, "a writer")
		late := rwWaits(r.ctx, r.rw(r.connect("d")), false)
		r.rwWaiting(late, "a late reader")

		h := r.downgrades(context.WithValue(r.ctx, keyType{}, "v"), w)
		wantErr(t, w.Err(), recipes.ErrReleased)
		r.check(w.Release(r.ctx))
		if h.FencingToken() != w.FencingToken() || h.Context().Value(keyType{}) != "v" || h.Path() == w.Path() {
			t.Errorf("hold %s, token %d of %d", h.Path(), h.FencingToken(), w.FencingToken())
		}
		n, there := r.srv.Node(h.Path())
		if !there || n.Stat.EphemeralOwner != r.session(c) || string(n.Data) != "mine" {
			t.Errorf("node %+v", n)
		}
		r.rwWantLine("__READ__0000000000", "__READ__0000000001", "__WRIT__0000000002", "__READ__0000000003")
		second := r.rwGranted(reader, "a reader before the writer")
		r.rwWaiting(writer, "a writer behind a downgraded reader")
		r.check(second.Release(r.ctx))
		r.rwWaiting(writer, "a writer behind a downgraded reader")
		r.rwWaiting(late, "a reader behind a writer")
		r.check(h.Err())
		r.check(h.Release(r.ctx))
		r.check(r.rwGranted(writer, "the writer").Release(r.ctx))
		r.check(r.rwGranted(late, "the late reader").Release(r.ctx))
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testDowngrading: write, read, release the
// write, release the read; in either order, and as Downgrade.
func TestReadWhileWriting(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		other := r.rw(r.connect("b"))
		for _, writeFirst := range []bool{true, false} {
			w := r.writes(r.ctx, l)
			h := r.reads(w.Context(), l)
			number := w.Path()[len(w.Path())-10:]
			r.rwWantLine("__WRIT__"+number, "__READ__"+number)
			if h.FencingToken() != w.FencingToken() {
				t.Errorf("token %d of %d", h.FencingToken(), w.FencingToken())
			}
			reader := rwWaits(r.ctx, other, false)
			r.rwWaiting(reader, "a reader")
			writer := rwWaits(r.ctx, r.rw(r.connect("c")), true)
			r.rwWaiting(writer, "a writer")
			if writeFirst {
				r.check(w.Release(r.ctx))
				wantErr(t, w.Context().Err(), context.Canceled)
				r.check(h.Err()) // although it descends from it
				r.check(r.rwGranted(reader, "a reader").Release(r.ctx))
				r.rwWaiting(writer, "a writer behind a reader")
				r.check(h.Release(r.ctx))
			} else {
				r.check(h.Release(r.ctx))
				r.rwWaiting(reader, "a reader behind a writer")
				r.check(w.Release(r.ctx))
				r.check(r.rwGranted(reader, "a reader").Release(r.ctx))
			}
			r.check(r.rwGranted(writer, "a writer").Release(r.ctx))
			r.rwEmpty()
		}
	})
}

// One of several holds of the write lock turns into a read hold, which lies
// beside the others and outlasts them.
func TestDowngradeReentered(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		outer := r.writes(r.ctx, l)
		inner := r.writes(outer.Context(), l)
		h := r.downgrades(r.ctx, inner)
		wantErr(t, inner.Err(), recipes.ErrReleased)
		r.check(outer.Err())
		r.rwWantLine("__WRIT__0000000000", "__READ__0000000000")
		reader := rwWaits(r.ctx, r.rw(r.connect("b")), false)
		r.rwWaiting(reader, "a reader behind a writer")
		second := r.downgrades(h.Context(), outer) // and the other one, with the same read hold
		if second.Path() != h.Path() {
			t.Errorf("two nodes: %s, %s", second.Path(), h.Path())
		}
		r.check(r.rwGranted(reader, "a reader").Release(r.ctx))
		r.check(h.Release(r.ctx))
		r.rwWantLine("__READ__0000000000")
		r.check(second.Release(r.ctx))
		r.rwEmpty()
	})
}

// What is over is not downgraded.
func TestDowngradeOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		l := r.rw(c)
		for name, tt := range map[string]struct {
			end  func(w *recipes.WriteHold)
			want error
		}{
			"released":   {func(w *recipes.WriteHold) { r.check(w.Release(r.ctx)) }, recipes.ErrReleased},
			"downgraded": {func(w *recipes.WriteHold) { r.check(r.downgrades(r.ctx, w).Release(r.ctx)) }, recipes.ErrReleased},
			"lost":       {func(*recipes.WriteHold) { r.srv.ExpireSession(r.session(c)) }, recipes.ErrLost},
			"deleted":    {func(w *recipes.WriteHold) { r.check(r.srv.Delete(w.Path())) }, recipes.ErrNodeDeleted},
			"directory":  {func(*recipes.WriteHold) { r.check(r.srv.Delete(dir)) }, recipes.ErrNodeDeleted},
		} {
			w := r.writes(r.ctx, l)
			tt.end(w)
			h, err := w.Downgrade(r.ctx)
			wantErr(t, err, tt.want)
			if h != nil {
				t.Errorf("%s: a read hold", name)
			}
			var lockErr *recipes.LockError
			if !errors.As(err, &lockErr) || lockErr.Op != "downgrade" || lockErr.Path != dir {
				t.Errorf("%s: %v", name, err)
			}
			if errors.Is(err, recipes.ErrNodeDeleted) { // found out by the downgrade itself
				wantErr(t, err, recipes.ErrLost)
				wantErr(t, w.Err(), recipes.ErrLost)
			}
			if err := w.Close(); (err != nil) != errors.Is(w.Err(), recipes.ErrLost) {
				t.Errorf("%s: Close = %v", name, err)
			}
			r.rwEmpty()
		}
	})
}

// A downgrade that gets no answer ends with the write hold. So the write hold is
// released in time, and the session lives on with its other holds.
func TestDowngradeEndsWithTheLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		l := r.rw(c)
		w := r.writes(r.ctx, l)
		id := r.session(c)
		r.srv.HoldLog() // nothing is committed any more, everything else is answered
		done := make(chan error, 1)
		go func() {
			_, err := w.Downgrade(r.ctx)
			done <- err
		}()
		r.told(w.Hold)
		lost := time.Now()
		err := <-done
		wantErr(t, err, recipes.ErrLost, client.ErrLeaseExpired)
		if late := time.Since(lost); late > 0 {
			t.Errorf("returned %v after the loss", late)
		}
		wantErr(t, w.Close(), recipes.ErrLost)
		r.srv.ReleaseLog()
		time.Sleep(sessionTimeout)
		if r.session(c) != id {
			t.Error("the session was given up")
		}
		r.rwEmpty()
	})
}

// The write node is deleted while the read node is on its way, and a writer
// comes. There is no read hold, not even for a moment.
func TestDowngradeRacesDeletion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		w := r.writes(r.ctx, l)
		next := rwWaits(r.ctx, r.rw(r.connect("b")), true)
		r.rwWaiting(next, "a writer")
		var theirs *recipes.Hold
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti}, func(context.Context, zktest.Request) {
			r.check(r.srv.Delete(w.Path()))
			theirs = (<-next).hold
		})
		h, err := w.Downgrade(r.ctx)
		wantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		if h != nil || theirs == nil {
			t.Errorf("%v, %v", h, theirs)
		}
		r.rwWantLine("__WRIT__0000000001")
		wantErr(t, w.Close(), recipes.ErrLost)
		r.check(theirs.Release(r.ctx))
		r.rwEmpty()
	})
}

// A goroutine releases the write hold while it is downgraded: the node stays
// until the read node is there, so no writer gets in between.
func TestDowngradeRacesRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		w := r.writes(r.ctx, l)
		next := rwWaits(r.ctx, r.rw(r.connect("b")), true)
		r.rwWaiting(next, "a writer")
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti}, func(ctx context.Context, _ zktest.Request) {
			r.check(w.Release(ctx))
		})
		h := r.downgrades(r.ctx, w)
		r.rwWaiting(next, "a writer behind a downgraded reader")
		r.check(h.Release(r.ctx))
		r.check(r.rwGranted(next, "the writer").Release(r.ctx))
		r.rwEmpty()
	})
}

// Every request of a downgrade may be lost, before or after it is applied.
func TestDowngradeLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.srv.LoseReply, "request": r.srv.DropBefore, "stalled": r.srv.StallReply, "after": r.srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpDelete} {
				w := r.writes(r.ctx, l)
				rule := fault(zktest.Match{Op: op, PathPrefix: dir})
				h := r.downgrades(r.ctx, w)
				r.check(w.Close())
				r.rwWantLine("__READ__" + w.Path()[len(w.Path())-10:])
				if n, _ := r.srv.Node(h.Path()); n.Stat.EphemeralOwner == 0 {
					t.Errorf("%s of %v lost: %s is not there", name, op, h.Path())
				}
				if rule.Fired() != 1 {
					t.Errorf("%s of %v: the fault happened %d times", name, op, rule.Fired())
				}
				r.check(h.Release(r.ctx))
				r.rwEmpty()
			}
		}
	})
}

// A downgrade that ends at any moment of its way has either happened or not:
// never neither hold, never a writer in between, nothing left.
func TestDowngradeCancelledAtEveryStep(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l, other := r.rw(r.connect("a")), r.rw(r.connect("b"))
		outcomes := map[bool]int{}
		for step := range 60 {
			w := r.writes(r.ctx, l)
			next := rwWaits(r.ctx, other, true)
			time.Sleep(10 * time.Millisecond)
			limit := time.Duration(step) * 73 * time.Microsecond
			ctx, cancel := context.WithTimeout(r.ctx, limit)
			start := time.Now()
			h, err := w.Downgrade(ctx)
			if took := time.Since(start); took > limit {
				t.Errorf("limit %v: took %v", limit, took)
			}
			cancel()
			outcomes[err == nil]++
			if err != nil {
				wantErr(t, err, context.DeadlineExceeded)
				r.check(w.Err())
				if _, there := r.srv.Node(w.Path()); !there {
					t.Error("held, and no node")
				}
			} else {
				wantErr(t, w.Err(), recipes.ErrReleased)
				if err := w.Close(); err != nil {
					wantErr(t, err, context.DeadlineExceeded)
				}
			}
			r.rwWaiting(next, "a writer")
			number := w.Path()[len(w.Path())-10:]
			if err != nil {
				if line := r.rwLine(); !slices.Contains(line, "__WRIT__"+number) || len(line) != 2 {
					t.Errorf("limit %v: line %v", limit, line)
				}
				r.check(w.Release(r.ctx))
			} else {
				if line := r.rwLine(); !slices.Contains(line, "__READ__"+number) || len(line) != 2 {
					t.Errorf("limit %v: line %v", limit, line)
				}
				r.check(h.Release(r.ctx))
			}
			r.check(r.rwGranted(next, "the writer").Release(r.ctx))
		}
		if outcomes[true] < 5 || outcomes[false] < 5 {
			t.Errorf("outcomes %v: one of them is hardly tested", outcomes)
		}
		r.rwEmpty()
	})
}

// A write node that cannot be removed in time is removed later; the read hold
// stands, and the write hold tells.
func TestDowngradeWithoutRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		w := r.writes(r.ctx, l)
		r.srv.BeforeReply(zktest.Match{Op: zktest.OpMulti}, func(context.Context, zktest.Request) {
			time.AfterFunc(5*time.Millisecond, r.srv.Freeze)
		})
		r.srv.Delay(zktest.Match{Op: zktest.OpDelete}, 10*time.Millisecond)
		h, err := w.Downgrade(r.within(time.Second))
		r.check(err)
		wantErr(t, w.Release(r.ctx), context.DeadlineExceeded)
		r.check(h.Err())
		r.srv.Thaw()
		time.Sleep(5 * time.Second)
		r.rwWantLine("__READ__0000000000")
		r.check(h.Release(r.ctx))
		r.rwEmpty()
	})
}

// The hold's own context may bound its downgrade.
func TestDowngradeWithOwnContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		w := r.writes(r.ctx, l)
		h := r.downgrades(w.Context(), w)
		r.rwWantLine("__READ__0000000000")
		r.check(w.Close())
		r.check(h.Err())
		again := r.reads(h.Context(), l)
		if again.Path() != h.Path() {
			t.Errorf("not re-entered: %s", again.Path())
		}
		r.check(h.Release(r.ctx))
		r.check(again.Release(r.ctx))
		r.rwEmpty()
	})
}

// A refusal leaves the write hold as it was.
func TestDowngradeRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		w := r.writes(r.ctx, l)
		r.srv.Fail(zktest.Match{Op: zktest.OpMulti}, zktest.CodeNoAuth)
		_, err := w.Downgrade(r.ctx)
		wantErr(t, err, zk.ErrNoAuth)
		r.check(w.Err())
		r.rwWantLine("__WRIT__0000000000")
		r.check(r.downgrades(r.ctx, w).Release(r.ctx))
		r.rwEmpty()
	})
}

// The session is lost at either request: both holds are, and nothing stays.
func TestDowngradeLosesSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		l := r.rw(c)
		for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpDelete} {
			for name, lose := range map[string]func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule{
				"before": r.srv.BeforeApply, "after": r.srv.BeforeReply,
			} {
				w := r.writes(r.ctx, l)
				id := r.session(c)
				lose(zktest.Match{Op: op, Session: id}, func(context.Context, zktest.Request) { r.srv.ExpireSession(id) })
				h, err := w.Downgrade(r.ctx)
				time.Sleep(time.Second)
				if h != nil { // between the two
					err = h.Err()
					wantErr(t, h.Close(), recipes.ErrLost)
				}
				wantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
				if w.Err() == nil {
					t.Errorf("%s %v: the write hold lives", name, op)
				}
				_ = w.Close() // released or lost
				r.rwEmpty()
			}
		}
	})
}

// A hold of one namespace is downgraded, or read beside, from another.
func TestDowngradeInNamespace(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		sub, err := c.Namespace("locks")
		r.check(err)
		l, err := recipes.NewInterProcessReadWriteLock(sub, "/orders")
		r.check(err)
		w := r.writes(r.ctx, l)
		beside := r.reads(w.Context(), r.rw(c))
		r.rwWantLine("__WRIT__0000000000", "__READ__0000000000")
		h := r.downgrades(beside.Context(), w)
		r.rwWantLine("__READ__0000000000")
		r.check(beside.Release(r.ctx))
		r.check(h.Release(r.ctx))
		r.rwEmpty()
	})
}

// A read hold that was lost beside the write hold says nothing of that: the
// downgrade takes another.
func TestDowngradeAfterALostRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l, err := recipes.NewInterProcessReadWriteLock(r.connect("a"), "/rw")
		r.check(err)
		w, err := l.WriteLock().Acquire(r.ctx)
		r.check(err)
		lost, err := l.ReadLock().Acquire(w.Context())
		r.check(err)
		time.Sleep(time.Second)
		r.check(r.srv.Delete(lost.Path()))
		time.Sleep(time.Second)
		read, err := w.Downgrade(context.WithoutCancel(lost.Context()))
		r.check(err)
		r.check(read.Err())
		r.check(read.Close())
		wantErr(t, lost.Close(), recipes.ErrLost)
	})
}
