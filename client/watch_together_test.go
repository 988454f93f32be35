package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// A reader does not wait for the read of another one that shares its watch. So which of
// the two comes first makes no difference to their requests.
func TestWatchDoesNotWaitForOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.connect("a")
		r.srv.Ignore(zktest.Match{Op: zktest.OpGetData, Path: "/a"})
		ctx, cancel := context.WithCancel(r.ctx)
		var first sync.WaitGroup
		first.Go(func() {
			_, _, _, err := c.GetW(ctx, "/a")
			wantErr(t, err, context.Canceled)
		})
		synctest.Wait()
		_, _, w, err := c.GetW(r.within(time.Second), "/a")
		r.check(err)
		cancel() // does not end the other one's watch
		first.Wait()
		r.notFired(w)
		r.check(r.srv.SetData("/a", nil))
		r.fired(w, zk.EventNodeDataChanged)
		r.wantNoWatches(c)
	})
}

// The event of an earlier watch comes before the answer to a read. The read has left a
// watch that fires no more for its reader. It does not stay on the server.
func TestWatchOfLateAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.connect("a")
		r.srv.DelayReply(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, time.Second)
		_, _, _, err := c.GetW(r.within(time.Second/2), "/a")
		wantErr(t, err, context.DeadlineExceeded)
		r.srv.Delay(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, 2*time.Second)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, w, err := c.GetW(r.ctx, "/a")
			r.check(err)
			r.fired(w, zk.EventNodeDataChanged)
		})
		time.Sleep(time.Second)
		r.check(r.srv.SetData("/a", nil))
		wg.Wait()
		if n := r.srv.WatchCount(); n != 1 {
			r.Errorf("%d watches on the server, want that of the read", n)
		}
		r.wantNoWatches(c)
	})
}

// A persistent watch is armed when no read that may leave a one-shot watch there is on
// its way. Before ZooKeeper 3.9 such a read would take its place.
func TestChangesBehindReadsTogether(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, _ zktest.Version) {
		r.create("/a", "")
		c := r.connect("a")
		r.srv.Ignore(zktest.Match{Op: zktest.OpGetData, Path: "/a"})
		ctx, cancel := context.WithCancel(r.ctx)
		var wg sync.WaitGroup
		var watches [2]*client.OneShotWatch
		wg.Go(func() { // on its way until cancel
			_, _, _, err := c.GetW(ctx, "/a")
			wantErr(r.T, err, context.Canceled)
		})
		synctest.Wait()
		for i := range watches {
			_, _, w, err := c.GetW(r.ctx, "/a")
			r.check(err)
			watches[i] = w
		}
		wg.Go(func() {
			changes, err := c.Watch(r.ctx, "/a")
			r.check(err)
			changes.Close()
		})
		time.Sleep(time.Second)
		if n := r.asked(zktest.OpAddWatch); n != 0 {
			r.Errorf("%d persistent watches while a read is on its way", n)
		}
		cancel()
		wg.Wait()
		if n := r.asked(zktest.OpAddWatch); n != 1 {
			r.Errorf("%d persistent watches, want one", n)
		}
		r.check(r.srv.SetData("/a", nil))
		for _, w := range watches {
			r.fired(w, zk.EventNodeDataChanged)
		}
	})
}

// A reader relies on a watch that stands, and its read fails after the other reader has
// stopped. The watch does not stay on the server.
func TestStopBehindFailedRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.connect("a")
		_, _, first, err := c.GetW(r.ctx, "/a")
		r.check(err)
		r.srv.Ignore(zktest.Match{Op: zktest.OpGetData, Path: "/a"})
		ctx, cancel := context.WithCancel(r.ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _, err := c.GetW(ctx, "/a")
			wantErr(t, err, context.Canceled)
		})
		synctest.Wait()
		first.Stop()
		cancel()
		wg.Wait()
		r.wantNoWatches(c)
	})
}
