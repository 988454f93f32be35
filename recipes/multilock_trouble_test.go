package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// One lock that fails fails all, none stays held, and the locks named behind it
// are not entered (TestInterProcessMultiMutex.testSomeLocksFailToLock; Curator's
// goes on and acquires them).
func TestMultiLockSomeLocksFailToLock(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"at once", "behind another"} {
		bubble(t, func(r *rig) {
			m := r.multi(r.Connect("a"), "/x", "/y", "/z")
			r.Check(r.multiHeld(m).Close())
			single, err := recipes.NewInterProcessMutex(r.Connect("b"), "/x")
			r.Check(err)
			want, first := "/x+/y+/z", (*recipes.Hold)(nil)
			if way == "behind another" {
				want, first = "/y+/z", r.held(single)
			}
			waits := make(<-chan multiResult)
			if first != nil {
				waits = multiAcquire(r.Ctx, m)
				time.Sleep(time.Second)
			}
			r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, PathPrefix: "/y/", Times: zktest.Always}, zktest.CodeNoAuth)
			before := r.cversion("/z")
			if first == nil {
				waits = multiAcquire(r.Ctx, m)
			} else {
				r.Check(first.Close())
			}
			got := <-waits
			if got.hold != nil {
				t.Error("held")
			}
			err = got.err
			testrig.WantErr(t, err, zk.ErrNoAuth)
			var failed *recipes.LockError
			if !errors.As(err, &failed) || failed.Path != want || failed.Op != "acquire" {
				t.Errorf("%s: %v", way, err)
			}
			if r.cversion("/z") != before {
				t.Errorf("%s: went on after the error", way)
			}
			r.nothingIn("/x", "/y", "/z")
			testrig.WantNoGoroutine(t, ourFrames)
		})
	}
}

func (r *rig) cversion(path string) int32 {
	r.Helper()
	n, ok := r.Srv.Node(path)
	if !ok {
		r.Fatalf("no %s", path)
	}
	return n.Stat.Cversion
}

// If the servers refuse to delete all nodes in one transaction, each lock is released alone.
// One release that fails does not keep the others from it, and every failure is said
// (TestInterProcessMultiMutex.testSomeReleasesFail).
func TestMultiLockSomeReleasesFail(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.multi(r.Connect("a"), "/w", "/x", "/y", "/z")
		h := r.multiHeld(m)
		rules := []*zktest.Rule{
			r.Srv.Fail(zktest.Match{Op: zktest.OpMulti, PathPrefix: "/y/"}, zktest.CodeNoAuth),
			r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, PathPrefix: "/w/"}, zktest.CodeNoAuth),
			r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, PathPrefix: "/y/"}, zktest.CodeNoAuth),
		}
		err := h.Release(r.Ctx)
		for _, path := range []string{"/w", "/y"} {
			if !strings.Contains(err.Error(), "release "+path+":") {
				t.Errorf("error %v does not name %s", err, path)
			}
		}
		if strings.Contains(err.Error(), "/x") || strings.Contains(err.Error(), "/z") || strings.Contains(err.Error(), "was released") {
			t.Errorf("error %v", err)
		}
		testrig.WantErr(t, err, zk.ErrNoAuth)
		if again := h.Release(r.Ctx); again == nil || again.Error() != err.Error() {
			t.Errorf("again: %v", again)
		}
		if len(r.Srv.Children("/x")) != 0 || len(r.Srv.Children("/z")) != 0 {
			t.Error("others are held")
		}
		for _, rule := range rules {
			if rule.Fired() != 1 {
				t.Errorf("%v failed %d times", rule, rule.Fired())
			}
		}
		r.nothingIn("/w", "/x", "/y", "/z") // the rest went in the background
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A release may be given a context that descends from the hold, which ends
// with it, and is done when it returns.
func TestMultiLockReleaseWithOwnContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.multi(r.Connect("a"), "/x", "/y")
		for _, limited := range []bool{false, true} {
			h := r.multiHeld(m)
			ctx := h.Context()
			if limited {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			r.Check(h.Release(ctx))
			if len(r.Srv.Children("/x"))+len(r.Srv.Children("/y")) != 0 {
				t.Error("released in the background")
			}
		}
		// It ends in time all the same.
		h := r.multiHeld(m)
		r.Srv.StallReply(zktest.Match{Op: zktest.OpMulti})
		ctx, cancel := context.WithTimeout(h.Context(), time.Second)
		defer cancel()
		began := time.Now()
		testrig.WantErr(t, h.Release(ctx), context.DeadlineExceeded)
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		r.Srv.Client("a").Heal()
		time.Sleep(testrig.SessionTimeout)
		r.nothingIn("/x", "/y")
	})
}

// If a held lock is lost while the caller waits for another lock, the acquire
// fails at once. A lost place in a queue is found when its turn comes.
func TestMultiLockLostWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client)
		want []error
		path string // of the lock that failed
		late bool   // found when its turn comes
	}{
		"held node": {lose: func(r *rig, _ *client.Client) { r.deleteLast("/a") }, want: []error{recipes.ErrLost, recipes.ErrNodeDeleted}, path: "/a"},
		"waiting node": {
			lose: func(r *rig, _ *client.Client) { r.deleteLast("/m") }, want: []error{recipes.ErrNodeDeleted}, path: "/m", late: true,
		},
		"held permit": {
			lose: func(r *rig, _ *client.Client) { r.deleteLast("/b/leases") }, want: []error{recipes.ErrLost, recipes.ErrNodeDeleted}, path: "/b",
		},
		"session": {lose: func(r *rig, c *client.Client) { r.Srv.ExpireSession(r.SessionID(c)) }, want: []error{recipes.ErrLost, client.ErrSessionLost}, path: "/a"},
		"silence": {lose: func(r *rig, _ *client.Client) { r.Srv.Client("a").Freeze() }, want: []error{recipes.ErrLost, client.ErrLeaseExpired}, path: "/a"},
		"closed": {lose: func(r *rig, c *client.Client) {
			go func() { _ = c.CloseContext(r.Ctx) }()
		}, want: []error{recipes.ErrLost, client.ErrClosed}, path: "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				single, err := recipes.NewInterProcessMutex(r.Connect("b"), "/m")
				r.Check(err)
				h := r.held(single)
				c := r.Connect("a")
				locks := r.mixedLocks(c)
				waits := multiAcquire(r.Ctx, r.multiOf(locks...))
				time.Sleep(time.Second)
				for _, behind := range []string{"/s/locks", "/z"} {
					if in := r.Srv.Children(behind); len(in) != 0 {
						t.Errorf("stands in %s while it waits for /m: %v", behind, in)
					}
				}
				began := time.Now()
				tt.lose(r, c)
				if tt.late {
					time.Sleep(time.Second)
					r.Check(h.Release(r.Ctx))
				}
				got := <-waits
				if got.hold != nil {
					t.Fatalf("held: %v", got.hold.Err())
				}
				if took := time.Since(began); took > testrig.SessionTimeout {
					t.Errorf("told after %v", took)
				}
				testrig.WantErr(t, got.err, tt.want...)
				var failed *recipes.LockError
				if !errors.As(got.err, &failed) || failed.Path != tt.path || failed.Op != "acquire" {
					t.Errorf("error %v", got.err)
				}
				if !tt.late {
					r.Check(h.Release(r.Ctx))
				}
				r.Srv.Client("a").Thaw()
				time.Sleep(testrig.SessionTimeout)
				r.nothingIn("/a", "/b/locks", "/b/leases", "/m", "/s/locks", "/s/leases", "/z")
				testrig.WantNoGoroutine(t, ourFrames)
			})
		})
	}
}

// mixedLocks are /a, permits of /b, /m, permits of /s, /z, in this order of
// turns.
func (r *rig) mixedLocks(c *client.Client) []recipes.Lock {
	r.Helper()
	mutex := func(path string) recipes.Lock {
		m, err := recipes.NewInterProcessMutex(c, path)
		r.Check(err)
		return m
	}
	two := func(path string) recipes.Lock {
		s, err := recipes.NewInterProcessSemaphoreV2(c, path, 2)
		r.Check(err)
		return s.Permits(2)
	}
	return []recipes.Lock{mutex("/a"), two("/b"), mutex("/m"), two("/s"), mutex("/z")}
}

// deleteLast deletes the youngest child.
func (r *rig) deleteLast(dir string) {
	r.Helper()
	last := ""
	for _, name := range r.Srv.Children(dir) {
		if last == "" || name[len(name)-10:] > last[len(last)-10:] {
			last = name
		}
	}
	r.Check(r.Srv.Delete(dir + "/" + last))
}

// The loss of one lock ends the hold of all; the release says it, and gives
// the others back.
func TestMultiLockLossWhileHolding(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client, h *recipes.MultiHold)
		want error
	}{
		"first node": {func(r *rig, _ *client.Client, h *recipes.MultiHold) { r.Check(r.Srv.Delete(h.Holds()[0].Path())) }, recipes.ErrNodeDeleted},
		"last node":  {func(r *rig, _ *client.Client, h *recipes.MultiHold) { r.Check(r.Srv.Delete(h.Holds()[4].Path())) }, recipes.ErrNodeDeleted},
		"a permit":   {func(r *rig, _ *client.Client, _ *recipes.MultiHold) { r.deleteLast("/s/leases") }, recipes.ErrNodeDeleted},
		"expired":    {func(r *rig, c *client.Client, _ *recipes.MultiHold) { r.Srv.ExpireSession(r.SessionID(c)) }, client.ErrSessionLost},
		"partition":  {func(r *rig, _ *client.Client, _ *recipes.MultiHold) { r.Srv.Client("a").Partition() }, client.ErrLeaseExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				h := r.multiHeld(r.everyKind(c))
				time.Sleep(time.Minute)
				r.Check(h.Err())
				tt.lose(r, c, h)
				select {
				case <-h.Context().Done():
				case <-time.After(testrig.SessionTimeout):
					t.Fatal("never told")
				}
				testrig.WantErr(t, context.Cause(h.Context()), recipes.ErrLost, tt.want)
				testrig.WantErr(t, h.Err(), recipes.ErrLost, tt.want)
				err := h.Release(r.Ctx)
				testrig.WantErr(t, err, recipes.ErrLost, tt.want)
				if errors.Is(tt.want, recipes.ErrNodeDeleted) && strings.Count(err.Error(), "recipes: release") != 1 {
					t.Errorf("Release = %v", err)
				}
				testrig.WantErr(t, h.Err(), recipes.ErrLost, tt.want)
				r.Srv.Client("a").Heal()
				time.Sleep(testrig.SessionTimeout)
				r.nothingIn(multiDirs...)
				testrig.WantNoGoroutine(t, ourFrames)
			})
		})
	}
}

// A hold of one of the locks that is released by itself ends the whole.
func TestMultiLockOneReleasedByItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.multiHeld(r.multi(r.Connect("a"), "/x", "/y"))
		r.Check(h.Holds()[1].Release(r.Ctx))
		select {
		case <-h.Context().Done():
		case <-time.After(time.Second):
			t.Error("never told")
		}
		testrig.WantErr(t, h.Err(), recipes.ErrReleased)
		r.Check(h.Close())
		r.nothingIn("/x", "/y")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// Acquire returns when its one deadline comes, at any moment of its way, and
// leaves nothing.
func TestMultiLockCancelledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, busy := range []string{"", "/m", "/w", "/x"} {
		t.Run("busy "+busy, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				m := r.everyKind(r.Connect("a"))
				all := r.everyKindAlone(r.Connect("b"))
				for step := range 90 {
					var other *recipes.MultiHold
					if busy != "" {
						other = r.multiHeld(r.multiOf(all[busy]))
					}
					limit := time.Duration(step) * 97 * time.Microsecond
					ctx, cancel := context.WithTimeout(r.Ctx, limit)
					began := time.Now()
					h, err := m.Acquire(ctx)
					if took := time.Since(began); took > limit {
						t.Errorf("limit %v: took %v", limit, took)
					}
					cancel()
					switch {
					case err == nil && busy != "":
						t.Fatal("two holders")
					case err == nil:
						r.Check(h.Release(r.Ctx))
					default:
						testrig.WantErr(t, err, context.DeadlineExceeded)
						var failed *recipes.LockError
						if !errors.As(err, &failed) || failed.Op != "acquire" || failed.Path == "" {
							t.Errorf("error %#v", err)
						}
					}
					if other != nil {
						r.Check(other.Close())
					}
				}
				r.nothingIn(multiDirs...)
				testrig.WantNoGoroutine(t, ourFrames)
			})
		})
	}
}

// everyKindAlone are the locks of everyKind by their paths.
func (r *rig) everyKindAlone(c *client.Client) map[string]recipes.Lock {
	r.Helper()
	mutex, err := recipes.NewInterProcessMutex(c, "/m")
	r.Check(err)
	write, err := recipes.NewInterProcessReadWriteLock(c, "/w")
	r.Check(err)
	single, err := recipes.NewInterProcessSemaphoreMutex(c, "/x")
	r.Check(err)
	return map[string]recipes.Lock{"/m": mutex, "/w": write.ReadLock(), "/x": single}
}

// Every request may be lost, before or after it is applied: one node in each
// lock, and none after the release.
func TestMultiLockLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.everyKind(r.Connect("a"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			for _, at := range []zktest.Match{
				{Op: zktest.OpCreateContainer},
				{Op: zktest.OpMulti},
				{Op: zktest.OpMulti, Nth: 2},
				{Op: zktest.OpMulti, Nth: 3},
				{Op: zktest.OpGetChildren2},
				{Op: zktest.OpGetChildren2, Nth: 4},
				{Op: zktest.OpMulti, Nth: 4}, // the release, of the locks and of the permits
				{Op: zktest.OpMulti, Nth: 5},
				{Op: zktest.OpDelete},
			} {
				what := fmt.Sprint(name, " of ", at.Op, " ", at.Nth)
				if at.Op == zktest.OpCreateContainer {
					_ = r.Srv.Delete("/w")
				}
				rule := fault(at)
				h := r.multiHeld(m)
				for i, dir := range []string{"/m", "/r", "/w", "/s/leases", "/x/leases"} {
					n := 1
					if dir == "/s/leases" {
						n = 2
					}
					if in := r.Srv.Children(dir); len(in) != n || !strings.HasPrefix(h.Holds()[i].Path(), dir+"/") {
						t.Errorf("%s: %v in %s, hold %s", what, in, dir, h.Holds()[i].Path())
					}
				}
				r.Check(h.Release(r.Ctx))
				if rule.Fired() != 1 {
					t.Errorf("%s: happened %d times", what, rule.Fired())
				}
				r.nothingIn(multiDirs...)
			}
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A session that ends between the transaction and its answer takes the places
// with it. The multi-lock does not believe in them, and takes places again in the
// next session.
func TestMultiLockExpiryAtTheGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.everyKind(c)
		r.Check(r.multiHeld(m).Close())
		for nth := 1; nth <= 3; nth++ {
			id := r.SessionID(c)
			r.Srv.BeforeReply(zktest.Match{Op: zktest.OpMulti, Nth: nth}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
			h, err := m.Acquire(r.Ctx)
			if h == nil {
				testrig.WantErr(t, err, client.ErrSessionLost)
			} else {
				if r.SessionID(c) == id {
					t.Error("held in a session that is over")
				}
				r.Check(h.Close())
			}
			if (nth == 1) != (h != nil) {
				t.Errorf("at transaction %d: %v", nth, err)
			}
			r.nothingIn(multiDirs...)
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A queue near the end of its numbers refuses, and no other is held.
func TestMultiLockSequenceExhausted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.multi(r.Connect("a"), "/x", "/y", "/z")
		r.Check(r.multiHeld(m).Close())
		r.Check(r.Srv.SetCounter("/y", 2147483647))
		for range 2 { // found, and known
			_, err := m.Acquire(r.Ctx)
			testrig.WantErr(t, err, recipes.ErrSequenceExhausted)
			var failed *recipes.LockError
			if !errors.As(err, &failed) || failed.Path != "/y" {
				t.Errorf("error %v", err)
			}
		}
		r.nothingIn("/x", "/y", "/z")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
