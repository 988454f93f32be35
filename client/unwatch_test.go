package client_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// asked is how many requests of that kind came.
func (r *rig) asked(op zktest.Op) (n int) {
	for _, req := range r.Srv.Log() {
		if req.Op == op {
			n++
		}
	}
	return n
}

// removals is how many removals were asked for.
func (r *rig) removals() int { return r.asked(zktest.OpRemoveWatches) }

// A reader that gives up leaves no watch on the server.
func TestStop(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "")
		_, _, get, err := c.GetW(r.Ctx, "/a")
		r.Check(err)
		_, _, exists, err := c.ExistsW(r.Ctx, "/a")
		r.Check(err)
		_, _, missing, err := c.ExistsW(r.Ctx, "/missing")
		r.Check(err)
		_, _, children, err := c.ChildrenW(r.Ctx, "/a")
		r.Check(err)
		get.Stop()
		time.Sleep(5 * time.Second)
		if n := r.removals(); n != 0 { // the server's watch is that of exists too
			r.Errorf("%d removals while another waits", n)
		}
		r.notFired(exists)
		for _, w := range []*client.OneShotWatch{exists, missing, children} {
			w.Stop()
			w.Stop()
		}
		r.wantNoWatches(c)
		if n := r.removals(); n != 3 {
			r.Errorf("%d removals, want one for each watch", n)
		}
		// A watch that was removed can be left again.
		_, _, again, err := c.GetW(r.Ctx, "/a")
		r.Check(err)
		r.Check(r.Srv.SetData("/a", nil))
		r.fired(again, zk.EventNodeDataChanged)
		(*client.OneShotWatch)(nil).Stop()
	})
}

// All readers of a shared watch but the last may stop. A reader that comes back
// in time finds it in place.
func TestStopShared(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "")
		var last *client.OneShotWatch
		for range 20 {
			_, _, w, err := c.GetW(r.Ctx, "/a")
			r.Check(err)
			last.Stop()
			last = w
			time.Sleep(700 * time.Millisecond)
		}
		for range 20 {
			last.Stop()
			time.Sleep(700 * time.Millisecond)
			_, _, w, err := c.GetW(r.Ctx, "/a")
			r.Check(err)
			last = w
		}
		if n := r.removals(); n != 0 {
			r.Errorf("%d removals", n)
		}
		r.Check(r.Srv.SetData("/a", nil))
		r.fired(last, zk.EventNodeDataChanged)
	})
}

// A watch that fires soon after it is given up costs no request.
func TestStopBeforeEvent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for i := range 100 {
			path := "/n" + strconv.Itoa(i)
			r.create(path, "")
			_, _, w, err := c.GetW(r.Ctx, path)
			r.Check(err)
			w.Stop()
			time.Sleep(100 * time.Millisecond)
			r.Check(r.Srv.Delete(path))
		}
		r.wantNoWatches(c)
		if n := r.removals(); n != 0 {
			r.Errorf("%d removals", n)
		}
	})
}

// A read that was given up, and whose watch the server left all the same, leaves
// nothing either.
func TestStopOfLostRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "")
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, 2*time.Second)
		_, _, _, err := c.GetW(r.Within(time.Second), "/a")
		testrig.WantErr(r.T, err, context.DeadlineExceeded)
		r.wantNoWatches(c)
	})
}

// A reader that watches while the removal of the same watch is on its way is
// woken.
func TestStopRaces(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]func(*zktest.Server, zktest.Match){
		"late request": func(s *zktest.Server, m zktest.Match) { s.Delay(m, time.Second) },
		"late answer":  func(s *zktest.Server, m zktest.Match) { s.DelayReply(m, time.Second) },
		"no answer":    func(s *zktest.Server, m zktest.Match) { s.Ignore(m) },
		"lost":         func(s *zktest.Server, m zktest.Match) { s.DropBefore(m) },
		"answer lost":  func(s *zktest.Server, m zktest.Match) { s.DropAfter(m) },
		"throttled":    func(s *zktest.Server, m zktest.Match) { s.Fail(m, zktest.CodeThrottledOp) },
	} {
		for _, pause := range []time.Duration{900 * time.Millisecond, time.Second, 1100 * time.Millisecond, 1500 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " ", pause), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.Connect("a")
					r.create("/a", "")
					rule(r.Srv, zktest.Match{Op: zktest.OpRemoveWatches})
					_, _, w, err := c.GetW(r.Ctx, "/a")
					r.Check(err)
					w.Stop()
					time.Sleep(pause)
					_, _, w, err = c.GetW(r.Ctx, "/a")
					r.Check(err)
					_, _, other, err := c.ExistsW(r.Ctx, "/a")
					r.Check(err)
					time.Sleep(10 * time.Second)
					r.Check(r.Srv.SetData("/a", nil))
					r.await("get", w.Done())
					r.await("exists", other.Done())
					r.wantNoWatches(c)
				})
			})
		}
	}
}

// A reader that comes and gives up while its watch is being removed leaves none
// behind.
func TestChangesBriefDuringRemoval(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "")
		in, err := c.Watch(r.Ctx, "/a")
		r.Check(err)
		_, err = in.Next(r.Ctx)
		r.Check(err)
		removal := r.Srv.DelayReply(zktest.Match{Op: zktest.OpRemoveWatches}, time.Second)
		in.Close()
		time.Sleep(1500 * time.Millisecond)
		if removal.Fired() == 0 {
			t.Fatal("no removal is on its way")
		}
		_, err = c.Watch(r.Within(100*time.Millisecond), "/a")
		testrig.WantErr(t, err, context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
		r.wantNoWatches(c)
	})
}

// Many readers watch, wait for a random while and give up: none misses anything.
func TestStopMissesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const last, readers = 200, 6
		r.create("/a", "0")
		c := r.Connect("a")
		var all sync.WaitGroup
		for i := range readers {
			all.Go(func() {
				for seen := 0; seen < last; {
					data, _, w, err := c.GetW(r.Ctx, "/a")
					r.Check(err)
					seen, _ = strconv.Atoi(string(data))
					select {
					case <-w.Done():
					case <-time.After(time.Duration((seen*7+i*13)%40) * 100 * time.Millisecond):
						w.Stop() // before it looks again after a while
						time.Sleep(time.Duration((seen*3+i*11)%25) * 100 * time.Millisecond)
					}
				}
			})
		}
		_, _, w, err := c.GetW(r.Ctx, "/a")
		r.Check(err)
		for v := 1; v <= last; v++ {
			time.Sleep(time.Duration(v*7919%40) * 100 * time.Millisecond)
			r.Check(r.Srv.SetData("/a", []byte(strconv.Itoa(v))))
			time.Sleep(10 * time.Millisecond)
			select {
			case <-w.Done():
			default:
				r.Fatalf("the %d. change was missed", v)
			}
			if _, _, w, err = c.GetW(r.Ctx, "/a"); err != nil {
				r.Fatal(err)
			}
			if v%3 == 0 {
				w.Stop()
				time.Sleep(time.Duration(900+v%5*50) * time.Millisecond)
				if _, _, w, err = c.GetW(r.Ctx, "/a"); err != nil {
					r.Fatal(err)
				}
			}
		}
		all.Wait()
		w.Stop()
		r.wantNoWatches(c)
	})
}

// Servers that cannot remove watches are asked once, and a hold outlives that.
// ClickHouse Keeper is never asked.
func TestStopUnsupported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opt   zktest.Option
		asked int
	}{
		"ZooKeeper": {zktest.WithoutOps(zktest.OpRemoveWatches), 1},
		"Keeper":    {zktest.WithProfile(zktest.ClickHouseKeeper), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				s := r.Session(c)
				h := r.keep(s)
				defer h.Done()
				for i := range 20 {
					_, _, w, err := s.ExistsW(r.Ctx, "/a"+strconv.Itoa(i))
					r.Check(err)
					w.Stop()
					time.Sleep(3 * time.Second)
				}
				if n := r.removals(); n != tt.asked {
					r.Errorf("asked %d times", n)
				}
				r.Check(s.Err())
			}, tt.opt)
		})
	}
}

// Many watches that are given up at once are removed a few at a time, and many persistent
// watches are set again so. Otherwise a server that is slow with them answers the client's
// heartbeats too late: the connection is dropped, and locks are lost.
func TestFewWatchesChangeAtOnce(t *testing.T) {
	t.Parallel()
	const watches = 2500
	type readers struct {
		one [watches]*client.OneShotWatch
		all [watches]*client.Changes
	}
	for name, tt := range map[string]struct {
		op    zktest.Op
		begin func(*rig, *readers)
	}{
		"one-shot removed": {zktest.OpRemoveWatches, func(_ *rig, rs *readers) {
			for _, w := range rs.one {
				w.Stop()
			}
		}},
		"persistent removed": {zktest.OpRemoveWatches, func(_ *rig, rs *readers) {
			for _, w := range rs.all {
				w.Close()
			}
		}},
		"persistent set": {zktest.OpAddWatch, func(r *rig, _ *readers) { r.Srv.CutAll() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				h := r.hold(c, "/e")
				var rs readers
				var wg sync.WaitGroup
				for i := range watches {
					wg.Go(func() {
						var err error
						_, _, rs.one[i], err = c.ExistsW(r.Ctx, fmt.Sprintf("/one/%04d", i))
						r.Check(err)
						rs.all[i], err = c.Watch(r.Ctx, fmt.Sprintf("/all/%04d", i))
						r.Check(err)
					})
				}
				wg.Wait()
				before := r.asked(tt.op)
				r.Srv.Delay(zktest.Match{Op: tt.op, Times: zktest.Always}, 25*time.Millisecond) // each of them
				tt.begin(r, &rs)
				time.Sleep(time.Second)
				for change := range c.States(r.Within(2 * time.Minute)) {
					if change.State != client.Connected {
						r.Errorf("%v: %v", change.State, change.Err)
					}
				}
				if n := r.asked(tt.op) - before; n != watches {
					r.Errorf("%d requests, want %d", n, watches)
				}
				if err := h.Err(); err != nil {
					r.Errorf("the hold: %v", err)
				}
			})
		})
	}
}

// The goroutine that removes watches ends with the session, also if most are still to be removed.
func TestRemovalsEndWithTheSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "")
		var all []*client.OneShotWatch
		for i := range 500 {
			path := "/a/" + strconv.Itoa(i)
			r.create(path, "")
			_, _, w, err := c.GetW(r.Ctx, path)
			r.Check(err)
			all = append(all, w)
		}
		for _, w := range all {
			w.Stop()
		}
		for r.removals() == 0 {
			time.Sleep(time.Millisecond)
		}
		r.Check(c.CloseContext(r.Ctx))
		if n := r.removals(); n == len(all) {
			r.Errorf("all %d watches were removed before the client was closed", n)
		}
	}, zktest.WithLatency(10*time.Millisecond, 10*time.Millisecond))
}
