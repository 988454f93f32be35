package client_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// fired waits for a watch and checks what ended it.
func (r *rig) fired(w *client.OneShotWatch, event zk.EventType, targets ...error) {
	r.Helper()
	r.await("the watch", w.Done())
	got, err := w.Event()
	if got != event || (err != nil) != (len(targets) > 0) {
		r.Errorf("Event = %v, %v; want %v", got, err, event)
	}
	testrig.WantErr(r.T, err, targets...)
}

func (r *rig) notFired(w *client.OneShotWatch) {
	r.Helper()
	synctest.Wait()
	select {
	case <-w.Done():
		event, err := w.Event()
		r.Errorf("fired without a reason: %v, %v", event, err)
	default:
		if event, err := w.Event(); event != 0 || err != nil {
			r.Errorf("Event before the end: %v, %v", event, err)
		}
	}
}

func TestWatchEvents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		get := func() *client.OneShotWatch {
			_, _, w, err := c.GetW(r.Ctx, "/a")
			r.Check(err)
			return w
		}
		exists := func(want bool) *client.OneShotWatch {
			ok, _, w, err := c.ExistsW(r.Ctx, "/a")
			r.Check(err)
			if ok != want {
				r.Errorf("exists: %v", ok)
			}
			return w
		}
		children := func() *client.OneShotWatch {
			_, _, w, err := c.ChildrenW(r.Ctx, "/a")
			r.Check(err)
			return w
		}
		w := exists(false)
		r.notFired(w)
		r.create("/a", "1")
		r.fired(w, zk.EventNodeCreated)
		d, e, k := get(), exists(true), children()
		r.Check(r.Srv.SetData("/a", []byte("2")))
		r.fired(d, zk.EventNodeDataChanged)
		r.fired(e, zk.EventNodeDataChanged)
		r.notFired(k)
		d, e = get(), exists(true)
		r.create("/a/b", "")
		r.fired(k, zk.EventNodeChildrenChanged)
		r.notFired(d)
		r.Check(r.Srv.Delete("/a/b"))
		k = children()
		r.Check(r.Srv.Delete("/a"))
		r.fired(d, zk.EventNodeDeleted)
		r.fired(e, zk.EventNodeDeleted)
		r.fired(k, zk.EventNodeDeleted)
		if n, m := r.Srv.WatchCount(), client.HubSize(c); n != 0 || m != 0 {
			r.Errorf("left: %d watches there, %d here", n, m)
		}
	})
}

// However many wait, the server has one watch, and all of them are woken.
func TestWatchIsShared(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		ns, err := c.Namespace("x")
		r.Check(err)
		r.create("/x/a", "")
		for _, tt := range []struct {
			c    *client.Client
			path string
		}{{c, "/a"}, {ns, "/x/a"}} {
			var woken sync.WaitGroup
			flagged := func() (n int) {
				for _, req := range r.Srv.Log() {
					if req.Watch && req.Path == tt.path {
						n++
					}
				}
				return n
			}
			read := func() {
				for range 50 {
					woken.Go(func() {
						_, _, w, err := c.GetW(r.Ctx, tt.path)
						r.Check(err)
						r.fired(w, zk.EventNodeDataChanged)
					})
				}
				time.Sleep(time.Second)
				if n, m := r.Srv.WatchCount(), client.HubSize(c); n != 1 || m != 1 {
					r.Errorf("%d watches on the server, %d here, want one", n, m)
				}
			}
			read() // all at once: none waits for another one's answer
			n := flagged()
			read()
			if m := flagged(); m != n {
				r.Errorf("%d of 50 reads asked for a watch that stood", m-n)
			}
			r.Check(r.Srv.SetData(tt.path, nil))
			woken.Wait()
		}
	})
}

// A reader that waits is woken by a reconnection and by the end of the session.
func TestWatchReconnectAndLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		s := r.Session(c)
		_, _, w, err := s.GetW(r.Ctx, "/a")
		r.Check(err)
		r.Srv.CutAll()
		r.await("the watch", w.Done())
		if event, err := w.Event(); event != zk.EventNotWatching || err == nil {
			r.Errorf("after a reconnection: %v, %v", event, err)
		}
		_, _, w, err = s.GetW(r.Ctx, "/a")
		r.Check(err)
		_, _, other, err := s.ChildrenW(r.Ctx, "/a")
		r.Check(err)
		r.Srv.ExpireSession(s.ID())
		r.fired(w, zk.EventNotWatching, client.ErrSessionLost)
		r.fired(other, zk.EventNotWatching, client.ErrSessionLost)
		_, _, w, err = c.GetW(r.Ctx, "/a")
		r.Check(err)
		r.Check(c.CloseContext(r.Ctx))
		r.fired(w, zk.EventNotWatching, client.ErrClosed)
		r.WantNoWatch()
	})
}

// A read that fails leaves nothing, here or there.
func TestWatchOnMissingNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		_, _, w, err := c.GetW(r.Ctx, "/missing")
		testrig.WantErr(t, err, zk.ErrNoNode)
		_, _, k, err := c.ChildrenW(r.Ctx, "/missing")
		testrig.WantErr(t, err, zk.ErrNoNode)
		if w != nil || k != nil {
			r.Errorf("watches %v, %v beside an error", w, k)
		}
		// Nor does a read that comes later inherit the wish for a watch.
		r.create("/missing", "")
		_, _, err = c.Get(r.Ctx, "/missing")
		r.Check(err)
		_, _, err = c.Children(r.Ctx, "/missing")
		r.Check(err)
		if n, m := r.Srv.WatchCount(), client.HubSize(c); n != 0 || m != 0 {
			r.Errorf("left: %d watches there, %d here", n, m)
		}
	})
}

// An abandoned wait costs nothing when the node has changed, and a read that
// was given up does not keep others from watching.
func TestWatchAbandoned(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for i := range 50 {
			path := fmt.Sprintf("/n%d", i)
			r.create(path, "")
			_, _, _, err := c.GetW(r.Ctx, path)
			r.Check(err)
		}
		for i := range 50 {
			r.Check(r.Srv.Delete(fmt.Sprintf("/n%d", i)))
		}
		r.Check(c.Sync(r.Ctx, "/"))
		if n := client.HubSize(c); n != 0 {
			r.Errorf("%d watches in the hub", n)
		}

		r.create("/a", "")
		r.Srv.Delay(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, 2*time.Second)
		short := r.Within(time.Second)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _, err := c.GetW(short, "/a")
			testrig.WantErr(t, err, context.DeadlineExceeded)
		})
		wg.Go(func() {
			time.Sleep(time.Second / 2) // behind the first
			_, _, w, err := c.GetW(r.Ctx, "/a")
			r.Check(err)
			r.Check(r.Srv.SetData("/a", nil))
			r.fired(w, zk.EventNodeDataChanged)
		})
		wg.Wait()
	})
}

// Readers that share watches never miss a change that happens after their
// read: if they did, one of them would wait for ever.
func TestWatchMissesNothing(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *rig){
		"calm":     func(*rig) {},
		"blips":    func(r *rig) { r.Srv.CutAll() },
		"expiry":   func(r *rig) { r.Srv.ExpireSession(r.Srv.Sessions()[0].ID) },
		"recreate": func(r *rig) { _ = r.Srv.Delete("/a"); r.create("/a", "0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				const last, readers = 300, 8
				r.create("/a", "0")
				c := r.Connect("a")
				var wg sync.WaitGroup
				for i := range readers {
					wg.Go(func() { followUntil(r, c, i, last) })
				}
				for v := 1; v <= last; v++ {
					time.Sleep(time.Duration(v*7919%1500) * time.Microsecond)
					if v%10 == 0 && v < last && len(r.Srv.Sessions()) > 0 {
						trouble(r)
					}
					r.Check(r.Srv.SetData("/a", []byte(strconv.Itoa(v))))
				}
				wg.Wait()
			})
		})
	}
}

// followUntil reads /a and waits, as recipes do, until it has seen last.
// Every third reader asks with a plain read in between.
func followUntil(r *rig, c *client.Client, i, last int) {
	for {
		data, _, w, err := c.GetW(r.Ctx, "/a")
		if errors.Is(err, zk.ErrNoNode) {
			continue // deleted for the moment
		}
		r.Check(err)
		v, err := strconv.Atoi(string(data))
		r.Check(err)
		if v == last {
			return
		}
		if i%3 == 0 {
			_, _, _ = c.Get(r.Ctx, "/a")
		}
		select {
		case <-w.Done():
		case <-time.After(10 * time.Minute):
			now, _ := r.Srv.Node("/a")
			r.Errorf("reader %d read %d, the server has %s, and was not woken", i, v, now.Data)
			return
		}
	}
}
