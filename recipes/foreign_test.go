package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// kazooName is a node of kazoo's Lock or WriteLock, or of its ReadLock.
func kazooName(i int, read bool) string {
	tag := "__lock__"
	if read {
		tag = "__rlock__"
	}
	return fmt.Sprintf("%032x%s", i+1, tag)
}

// foreignAcquires are the ways to get at dir.
func foreignAcquires(r *rig, c *client.Client, opts ...recipes.LockOption) map[string]func(context.Context) (*recipes.Hold, error) {
	m := r.mutex(c, opts...)
	l, err := recipes.NewInterProcessReadWriteLock(c, dir, opts...)
	r.Check(err)
	multi, err := recipes.NewInterProcessMultiLock(m)
	r.Check(err)
	write := func(f func(context.Context) (*recipes.WriteHold, error)) func(context.Context) (*recipes.Hold, error) {
		return func(ctx context.Context) (*recipes.Hold, error) {
			h, err := f(ctx)
			if err != nil {
				return nil, err
			}
			return h.Hold, nil
		}
	}
	several := func(f func(context.Context) (*recipes.MultiHold, error)) func(context.Context) (*recipes.Hold, error) {
		return func(ctx context.Context) (*recipes.Hold, error) {
			h, err := f(ctx)
			if err != nil {
				return nil, err
			}
			return h.Holds()[0], nil
		}
	}
	return map[string]func(context.Context) (*recipes.Hold, error){
		"mutex": m.Acquire, "mutex try": m.TryAcquire,
		"read": l.ReadLock().Acquire, "read try": l.ReadLock().TryAcquire,
		"write": write(l.WriteLock().Acquire), "write try": write(l.WriteLock().TryAcquire),
		"multi": several(multi.Acquire), "multi try": several(multi.TryAcquire),
	}
}

// If kazoo contends on the path and the lock was made without WithKazoo, nothing
// is granted and no node stays. The error names the node and the library.
func TestKazooIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.held(r.mutex(c)).Release(r.Ctx))
		for i, read := range []bool{false, true} {
			path, err := c.Create(r.Ctx, dir+"/"+kazooName(i, read), nil, client.Ephemeral(), client.Sequential())
			r.Check(err)
			for name, acquire := range foreignAcquires(r, c) {
				r.Srv.ResetCounts()
				h, err := acquire(r.Ctx)
				if h != nil {
					t.Errorf("%s: held beside kazoo", name)
				}
				testrig.WantErr(t, err, recipes.ErrForeignLock)
				if text := fmt.Sprint(err); !strings.Contains(text, ": "+path+" belongs to a lock of kazoo: ") || !strings.Contains(text, "WithKazoo") {
					t.Errorf("%s: %s", name, text)
				}
				if errors.Is(err, recipes.ErrBusy) {
					t.Errorf("%s: %v is not a matter of time", name, err)
				}
				if made := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpMulti); strings.HasSuffix(name, "try") && made != 0 {
					t.Errorf("%s: made %d nodes", name, made)
				}
			}
			time.Sleep(time.Second)
			if left := r.Srv.Children(dir); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
			// In view they are all the same.
			q := r.queue(func() ([]recipes.Contender, error) { return r.mutex(c).Queue(r.Ctx) })
			if len(q) != 1 || q[0].Family != recipes.FamilyKazoo || !q[0].Holder || q[0].Session != r.SessionID(c) {
				t.Errorf("queue: %v", q)
			}
			r.Check(r.Srv.Delete(path))
		}
		for name, acquire := range foreignAcquires(r, c) {
			h, err := acquire(r.Ctx)
			if err != nil {
				t.Fatalf("%s, with kazoo gone: %v", name, err)
			}
			r.Check(h.Release(r.Ctx))
		}
	})
}

// A holder that came before kazoo keeps the lock. When the holder leaves, the
// waiter directly behind it is granted without a look. Every acquire that looks
// is refused.
func TestKazooComesLater(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		waits := acquire(r.Ctx, r.mutex(r.Connect("b")))
		time.Sleep(time.Second)
		kazoo := r.standing(fmt.Sprintf("%s%010d", kazooName(0, false), 2), "")
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		if len(q) != 3 || !q[0].Holder || q[1].Holder || !q[2].Holder {
			t.Errorf("queue, with two holders: %v", q)
		}
		r.Check(h.Err())
		r.Check(h.Release(r.Ctx))
		granted := <-waits
		r.Check(granted.err)
		_, err := m.Acquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrForeignLock)
		r.Check(granted.hold.Release(r.Ctx))
		_, err = m.Acquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrForeignLock)
		r.empty()
		r.Check(r.Srv.Delete(kazoo))
	})
}

// With WithKazoo there is one line: ours wait for kazoo's nodes by number, with
// a watch on the nearest, and readers of either library share.
func TestKazooInLine(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.held(r.mutex(c)).Release(r.Ctx))
		kazoo := func(i int, read bool) string {
			path, err := c.Create(r.Ctx, dir+"/"+kazooName(i, read), nil, client.Ephemeral(), client.Sequential())
			r.Check(err)
			return path
		}
		for name, acquire := range foreignAcquires(r, c, recipes.WithKazoo()) {
			for i, read := range []bool{false, true} {
				first, second := kazoo(2*i, read), kazoo(2*i+1, read)
				shared := read && strings.HasPrefix(name, "read")
				if try := strings.HasSuffix(name, "try"); try || shared {
					h, err := acquire(r.Ctx)
					if shared {
						r.Check(err)
						r.Check(h.Release(r.Ctx))
					} else {
						var busy *recipes.BusyError
						if !errors.As(err, &busy) || busy.Holder.Path != first || busy.Holder.Family != recipes.FamilyKazoo {
							t.Errorf("%s behind %s: %v", name, first, err)
						}
					}
					r.Check(r.Srv.Delete(first))
					r.Check(r.Srv.Delete(second))
					continue
				}
				done := make(chan *recipes.Hold, 1)
				go func() {
					h, err := acquire(r.Ctx)
					r.Check(err)
					done <- h
				}()
				time.Sleep(time.Second)
				watched := 0
				for _, w := range r.Srv.Watches() {
					if w.Path == second {
						watched++
					}
				}
				if watched != 1 {
					t.Errorf("%s: %d watches on %s", name, watched, second)
				}
				later := kazoo(5, false) // a node behind the waiter's own delays no grant
				r.Check(r.Srv.Delete(first))
				time.Sleep(time.Second)
				select {
				case <-done:
					t.Fatalf("%s: held beside %s", name, second)
				default:
				}
				r.Check(r.Srv.Delete(second))
				h := <-done
				r.Check(h.Err())
				r.Check(h.Release(r.Ctx))
				r.Check(r.Srv.Delete(later))
			}
		}
		r.empty()
	})
}

// kazoo's numbers past the end of the counter are no more safe than ours.
func TestKazooAtTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.held(r.mutex(c)).Release(r.Ctx))
		for _, number := range []string{"-2147483648", "-000000001"} {
			kazoo := r.standing(kazooName(0, false)+number, "")
			h, err := r.mutex(c, recipes.WithKazoo()).Acquire(r.Ctx)
			testrig.WantErr(t, err, recipes.ErrSequenceExhausted)
			if h != nil {
				t.Error("held")
			}
			h, err = r.mutex(c).Acquire(r.Ctx)
			testrig.WantErr(t, err, recipes.ErrForeignLock)
			if h != nil || !strings.Contains(err.Error(), ": "+kazoo+" belongs to a lock of kazoo: ") {
				t.Errorf("%v, %v", h, err)
			}
			r.Check(r.Srv.Delete(kazoo))
			r.empty() // what was refused leaves in the background, and would be ahead of a try
		}
		// What only looks like kazoo's is passed over.
		for _, name := range []string{"__lock__", kazooName(1, false), kazooName(1, false) + "7", "x__rlock__00000000012"} {
			r.standing(name, "")
		}
		for name, acquire := range foreignAcquires(r, c) {
			h, err := acquire(r.Ctx)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r.Check(h.Release(r.Ctx))
		}
	})
}
