package recipes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// TestInterProcessReadWriteLock.testContendingDowngrading (CURATOR-621): a writer
// that waits stays behind the read hold, and the readers before the writer share.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l := r.rw(c, recipes.WithNodeData([]byte("mine")))
		w := r.writes(r.Ctx, l)
		reader := rwWaits(r.Ctx, r.rw(r.Connect("b")), false)
		r.rwWaiting(reader, "a reader")
		writer := rwWaits(r.Ctx, r.rw(r.Connect("c")), true)
		r.rwWaiting(writer, "a writer")
		late := rwWaits(r.Ctx, r.rw(r.Connect("d")), false)
		r.rwWaiting(late, "a late reader")

		h := r.downgrades(context.WithValue(r.Ctx, keyType{}, "v"), w)
		testrig.WantErr(t, w.Err(), recipes.ErrReleased)
		r.Check(w.Release(r.Ctx))
		if h.FencingToken() != w.FencingToken() || h.Context().Value(keyType{}) != "v" || h.Path() == w.Path() {
			t.Errorf("hold %s, token %d of %d", h.Path(), h.FencingToken(), w.FencingToken())
		}
		n, there := r.Srv.Node(h.Path())
		if !there || n.Stat.EphemeralOwner != r.SessionID(c) || string(n.Data) != "mine" {
			t.Errorf("node %+v", n)
		}
		r.rwWantLine("__READ__0000000000", "__READ__0000000001", "__WRIT__0000000002", "__READ__0000000003")
		second := r.rwGranted(reader, "a reader before the writer")
		r.rwWaiting(writer, "a writer behind a downgraded reader")
		r.Check(second.Release(r.Ctx))
		r.rwWaiting(writer, "a writer behind a downgraded reader")
		r.rwWaiting(late, "a reader behind a writer")
		r.Check(h.Err())
		r.Check(h.Release(r.Ctx))
		r.Check(r.rwGranted(writer, "the writer").Release(r.Ctx))
		r.Check(r.rwGranted(late, "the late reader").Release(r.Ctx))
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testDowngrading: write, read, release the
// write, release the read; in either order, and as Downgrade.
func TestReadWhileWriting(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		other := r.rw(r.Connect("b"))
		for _, writeFirst := range []bool{true, false} {
			w := r.writes(r.Ctx, l)
			h := r.reads(w.Context(), l)
			number := w.Path()[len(w.Path())-10:]
			r.rwWantLine("__WRIT__"+number, "__READ__"+number)
			if h.FencingToken() != w.FencingToken() {
				t.Errorf("token %d of %d", h.FencingToken(), w.FencingToken())
			}
			reader := rwWaits(r.Ctx, other, false)
			r.rwWaiting(reader, "a reader")
			writer := rwWaits(r.Ctx, r.rw(r.Connect("c")), true)
			r.rwWaiting(writer, "a writer")
			if writeFirst {
				r.Check(w.Release(r.Ctx))
				testrig.WantErr(t, w.Context().Err(), context.Canceled)
				r.Check(h.Err()) // although it descends from it
				r.Check(r.rwGranted(reader, "a reader").Release(r.Ctx))
				r.rwWaiting(writer, "a writer behind a reader")
				r.Check(h.Release(r.Ctx))
			} else {
				r.Check(h.Release(r.Ctx))
				r.rwWaiting(reader, "a reader behind a writer")
				r.Check(w.Release(r.Ctx))
				r.Check(r.rwGranted(reader, "a reader").Release(r.Ctx))
			}
			r.Check(r.rwGranted(writer, "a writer").Release(r.Ctx))
			r.rwEmpty()
		}
	})
}

// One of several holds of the write lock turns into a read hold, which lies
// beside the others and outlasts them.
func TestDowngradeReentered(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		outer := r.writes(r.Ctx, l)
		inner := r.writes(outer.Context(), l)
		h := r.downgrades(r.Ctx, inner)
		testrig.WantErr(t, inner.Err(), recipes.ErrReleased)
		r.Check(outer.Err())
		r.rwWantLine("__WRIT__0000000000", "__READ__0000000000")
		reader := rwWaits(r.Ctx, r.rw(r.Connect("b")), false)
		r.rwWaiting(reader, "a reader behind a writer")
		second := r.downgrades(h.Context(), outer) // and the other one, with the same read hold
		if second.Path() != h.Path() {
			t.Errorf("two nodes: %s, %s", second.Path(), h.Path())
		}
		r.Check(r.rwGranted(reader, "a reader").Release(r.Ctx))
		r.Check(h.Release(r.Ctx))
		r.rwWantLine("__READ__0000000000")
		r.Check(second.Release(r.Ctx))
		r.rwEmpty()
	})
}

// What is over is not downgraded.
func TestDowngradeOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l := r.rw(c)
		for name, tt := range map[string]struct {
			end  func(w *recipes.WriteHold)
			want error
		}{
			"released":   {func(w *recipes.WriteHold) { r.Check(w.Release(r.Ctx)) }, recipes.ErrReleased},
			"downgraded": {func(w *recipes.WriteHold) { r.Check(r.downgrades(r.Ctx, w).Release(r.Ctx)) }, recipes.ErrReleased},
			"lost":       {func(*recipes.WriteHold) { r.Srv.ExpireSession(r.SessionID(c)) }, recipes.ErrLost},
			"deleted":    {func(w *recipes.WriteHold) { r.Check(r.Srv.Delete(w.Path())) }, recipes.ErrNodeDeleted},
			"directory":  {func(*recipes.WriteHold) { r.Check(r.Srv.Delete(dir)) }, recipes.ErrNodeDeleted},
		} {
			w := r.writes(r.Ctx, l)
			tt.end(w)
			h, err := w.Downgrade(r.Ctx)
			testrig.WantErr(t, err, tt.want)
			if h != nil {
				t.Errorf("%s: a read hold", name)
			}
			var lockErr *recipes.LockError
			if !errors.As(err, &lockErr) || lockErr.Op != "downgrade" || lockErr.Path != dir {
				t.Errorf("%s: %v", name, err)
			}
			if errors.Is(err, recipes.ErrNodeDeleted) { // found out by the downgrade itself
				testrig.WantErr(t, err, recipes.ErrLost)
				testrig.WantErr(t, w.Err(), recipes.ErrLost)
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
		c := r.Connect("a")
		l := r.rw(c)
		w := r.writes(r.Ctx, l)
		id := r.SessionID(c)
		r.Srv.HoldLog() // nothing is committed any more, everything else is answered
		done := make(chan error, 1)
		go func() {
			_, err := w.Downgrade(r.Ctx)
			done <- err
		}()
		r.told(w.Hold)
		lost := time.Now()
		err := <-done
		testrig.WantErr(t, err, recipes.ErrLost, client.ErrLeaseExpired)
		if late := time.Since(lost); late > 0 {
			t.Errorf("returned %v after the loss", late)
		}
		testrig.WantErr(t, w.Close(), recipes.ErrLost)
		r.Srv.ReleaseLog()
		time.Sleep(testrig.SessionTimeout)
		if r.SessionID(c) != id {
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
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		next := rwWaits(r.Ctx, r.rw(r.Connect("b")), true)
		r.rwWaiting(next, "a writer")
		var theirs *recipes.Hold
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(w.Path()))
			theirs = (<-next).hold
		})
		h, err := w.Downgrade(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		if h != nil || theirs == nil {
			t.Errorf("%v, %v", h, theirs)
		}
		r.rwWantLine("__WRIT__0000000001")
		testrig.WantErr(t, w.Close(), recipes.ErrLost)
		r.Check(theirs.Release(r.Ctx))
		r.rwEmpty()
	})
}

// A goroutine releases the write hold while it is downgraded: the node stays
// until the read node is there, so no writer gets in between.
func TestDowngradeRacesRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		next := rwWaits(r.Ctx, r.rw(r.Connect("b")), true)
		r.rwWaiting(next, "a writer")
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti}, func(ctx context.Context, _ zktest.Request) {
			r.Check(w.Release(ctx))
		})
		h := r.downgrades(r.Ctx, w)
		r.rwWaiting(next, "a writer behind a downgraded reader")
		r.Check(h.Release(r.Ctx))
		r.Check(r.rwGranted(next, "the writer").Release(r.Ctx))
		r.rwEmpty()
	})
}

// Every request of a downgrade may be lost, before or after it is applied.
func TestDowngradeLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpDelete} {
				w := r.writes(r.Ctx, l)
				rule := fault(zktest.Match{Op: op, PathPrefix: dir})
				h := r.downgrades(r.Ctx, w)
				r.Check(w.Close())
				r.rwWantLine("__READ__" + w.Path()[len(w.Path())-10:])
				if n, _ := r.Srv.Node(h.Path()); n.Stat.EphemeralOwner == 0 {
					t.Errorf("%s of %v lost: %s is not there", name, op, h.Path())
				}
				if rule.Fired() != 1 {
					t.Errorf("%s of %v: the fault happened %d times", name, op, rule.Fired())
				}
				r.Check(h.Release(r.Ctx))
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
		l, other := r.rw(r.Connect("a")), r.rw(r.Connect("b"))
		outcomes := map[bool]int{}
		for step := range 60 {
			w := r.writes(r.Ctx, l)
			next := rwWaits(r.Ctx, other, true)
			time.Sleep(10 * time.Millisecond)
			limit := time.Duration(step) * 73 * time.Microsecond
			ctx, cancel := context.WithTimeout(r.Ctx, limit)
			start := time.Now()
			h, err := w.Downgrade(ctx)
			if took := time.Since(start); took > limit {
				t.Errorf("limit %v: took %v", limit, took)
			}
			cancel()
			outcomes[err == nil]++
			if err != nil {
				testrig.WantErr(t, err, context.DeadlineExceeded)
				r.Check(w.Err())
				if _, there := r.Srv.Node(w.Path()); !there {
					t.Error("held, and no node")
				}
			} else {
				testrig.WantErr(t, w.Err(), recipes.ErrReleased)
				if err := w.Close(); err != nil {
					testrig.WantErr(t, err, context.DeadlineExceeded)
				}
			}
			r.rwWaiting(next, "a writer")
			number := w.Path()[len(w.Path())-10:]
			if err != nil {
				if line := r.rwLine(); !slices.Contains(line, "__WRIT__"+number) || len(line) != 2 {
					t.Errorf("limit %v: line %v", limit, line)
				}
				r.Check(w.Release(r.Ctx))
			} else {
				if line := r.rwLine(); !slices.Contains(line, "__READ__"+number) || len(line) != 2 {
					t.Errorf("limit %v: line %v", limit, line)
				}
				r.Check(h.Release(r.Ctx))
			}
			r.Check(r.rwGranted(next, "the writer").Release(r.Ctx))
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
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		r.Srv.BeforeReply(zktest.Match{Op: zktest.OpMulti}, func(context.Context, zktest.Request) {
			time.AfterFunc(5*time.Millisecond, r.Srv.Freeze)
		})
		r.Srv.Delay(zktest.Match{Op: zktest.OpDelete}, 10*time.Millisecond)
		h, err := w.Downgrade(r.Within(time.Second))
		r.Check(err)
		testrig.WantErr(t, w.Release(r.Ctx), context.DeadlineExceeded)
		r.Check(h.Err())
		r.Srv.Thaw()
		time.Sleep(5 * time.Second)
		r.rwWantLine("__READ__0000000000")
		r.Check(h.Release(r.Ctx))
		r.rwEmpty()
	})
}

// The hold's own context may bound its downgrade.
func TestDowngradeWithOwnContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		h := r.downgrades(w.Context(), w)
		r.rwWantLine("__READ__0000000000")
		r.Check(w.Close())
		r.Check(h.Err())
		again := r.reads(h.Context(), l)
		if again.Path() != h.Path() {
			t.Errorf("not re-entered: %s", again.Path())
		}
		r.Check(h.Release(r.Ctx))
		r.Check(again.Release(r.Ctx))
		r.rwEmpty()
	})
}

// A refusal leaves the write hold as it was.
func TestDowngradeRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		r.Srv.Fail(zktest.Match{Op: zktest.OpMulti}, zktest.CodeNoAuth)
		_, err := w.Downgrade(r.Ctx)
		testrig.WantErr(t, err, zk.ErrNoAuth)
		r.Check(w.Err())
		r.rwWantLine("__WRIT__0000000000")
		r.Check(r.downgrades(r.Ctx, w).Release(r.Ctx))
		r.rwEmpty()
	})
}

// The session is lost at either request: both holds are, and nothing stays.
func TestDowngradeLosesSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l := r.rw(c)
		for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpDelete} {
			for name, lose := range map[string]func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule{
				"before": r.Srv.BeforeApply, "after": r.Srv.BeforeReply,
			} {
				w := r.writes(r.Ctx, l)
				id := r.SessionID(c)
				lose(zktest.Match{Op: op, Session: id}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
				h, err := w.Downgrade(r.Ctx)
				time.Sleep(time.Second)
				if h != nil { // between the two
					err = h.Err()
					testrig.WantErr(t, h.Close(), recipes.ErrLost)
				}
				testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
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
		c := r.Connect("a")
		sub, err := c.Namespace("locks")
		r.Check(err)
		l, err := recipes.NewInterProcessReadWriteLock(sub, "/orders")
		r.Check(err)
		w := r.writes(r.Ctx, l)
		beside := r.reads(w.Context(), r.rw(c))
		r.rwWantLine("__WRIT__0000000000", "__READ__0000000000")
		h := r.downgrades(beside.Context(), w)
		r.rwWantLine("__READ__0000000000")
		r.Check(beside.Release(r.Ctx))
		r.Check(h.Release(r.Ctx))
		r.rwEmpty()
	})
}

// A read hold that was lost beside the write hold says nothing of that: the
// downgrade takes another.
func TestDowngradeAfterALostRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l, err := recipes.NewInterProcessReadWriteLock(r.Connect("a"), "/rw")
		r.Check(err)
		w, err := l.WriteLock().Acquire(r.Ctx)
		r.Check(err)
		lost, err := l.ReadLock().Acquire(w.Context())
		r.Check(err)
		time.Sleep(time.Second)
		r.Check(r.Srv.Delete(lost.Path()))
		time.Sleep(time.Second)
		read, err := w.Downgrade(context.WithoutCancel(lost.Context()))
		r.Check(err)
		r.Check(read.Err())
		r.Check(read.Close())
		testrig.WantErr(t, lost.Close(), recipes.ErrLost)
	})
}
