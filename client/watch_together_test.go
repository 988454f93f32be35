package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A reader does not wait for the read of another one that shares its watch. So which of
// the two comes first makes no difference to their requests.
func TestWatchDoesNotWaitForOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		r.Srv.Ignore(zktest.Match{Op: zktest.OpGetData, Path: "/a"})
		ctx, cancel := context.WithCancel(r.Ctx)
		var first sync.WaitGroup
		first.Go(func() {
			_, _, _, err := c.GetW(ctx, "/a")
			testrig.WantErr(t, err, context.Canceled)
		})
		synctest.Wait()
		_, _, w, err := c.GetW(r.Within(time.Second), "/a")
		r.Check(err)
		cancel() // does not end the other one's watch
		first.Wait()
		r.notFired(w)
		r.Check(r.Srv.SetData("/a", nil))
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
		c := r.Connect("a")
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, time.Second)
		_, _, _, err := c.GetW(r.Within(time.Second/2), "/a")
		testrig.WantErr(t, err, context.DeadlineExceeded)
		r.Srv.Delay(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, 2*time.Second)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, w, err := c.GetW(r.Ctx, "/a")
			r.Check(err)
			r.fired(w, zk.EventNodeDataChanged)
		})
		time.Sleep(time.Second)
		r.Check(r.Srv.SetData("/a", nil))
		wg.Wait()
		r.wantNoWatches(c)
	})
}

// A read without an answer keeps no persistent watch waiting. Before ZooKeeper 3.9 the later
// of the two takes the place of the other, and that is the persistent one.
func TestChangesBehindReadsTogether(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, _ zktest.Version) {
		r.create("/a", "")
		c := r.Connect("a")
		r.Srv.Delay(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, time.Second)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, _, w, err := c.GetW(r.Ctx, "/a")
				r.Check(err)
				r.await("the watch", w.Done())
			})
		}
		synctest.Wait()
		begun := time.Now()
		changes, err := c.Watch(r.Within(2*time.Second), "/a")
		r.Check(err)
		if took := time.Since(begun); took > 1100*time.Millisecond {
			r.Errorf("the persistent watch took %v", took)
		}
		defer changes.Close()
		for i := range 3 {
			for { // what was missed, and then each change
				change, err := changes.Next(r.Within(time.Second))
				if r.Check(err); change.Kind != client.ChangeMissed {
					break
				}
				r.Check(r.Srv.SetData("/a", nil))
			}
			if i < 2 {
				r.Check(r.Srv.SetData("/a", nil))
			}
		}
		wg.Wait()
	})
}

// Readers of a node that changes faster than they read keep no persistent watch waiting.
func TestChangesBesideBusyReaders(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		bubble(t, func(r *rig) {
			r.create("/a", "")
			c := r.Connect("a")
			ctx, cancel := context.WithCancel(r.Ctx)
			var wg sync.WaitGroup
			wg.Go(func() {
				for tick := time.NewTicker(700 * time.Microsecond); ctx.Err() == nil; <-tick.C {
					r.Check(r.Srv.SetData("/a", nil))
				}
			})
			for range 8 {
				wg.Go(func() {
					for ctx.Err() == nil {
						_, _, w, err := c.GetW(ctx, "/a")
						if err != nil {
							return
						}
						select {
						case <-w.Done():
						case <-ctx.Done():
						}
						w.Stop()
					}
				})
			}
			changes, err := c.Watch(r.Within(time.Second), "/a")
			r.Check(err)
			changes.Close()
			cancel()
			wg.Wait()
			r.wantNoWatches(c)
		}, zktest.WithSeed(seed))
	}
}

// Of two reads that are to arm one watch, the server runs the second after a change has fired
// the watch, and after its reader has given up or not. What it leaves does not stay.
func TestStopBehindAnsweredRead(t *testing.T) {
	t.Parallel()
	for _, givesUp := range []bool{false, true} {
		bubble(t, func(r *rig) {
			r.create("/a", "")
			c := r.Connect("a")
			r.Srv.DelayReply(zktest.Match{Op: zktest.OpGetData, Path: "/a", Nth: 1}, 100*time.Millisecond)
			late := r.Srv.Delay(zktest.Match{Op: zktest.OpGetData, Path: "/a", Nth: 2}, 2*time.Second)
			ctx, cancel := context.WithCancel(r.Ctx)
			var second sync.WaitGroup
			read := make(chan *client.OneShotWatch, 1)
			go func() {
				_, _, w, err := c.GetW(r.Ctx, "/a")
				r.Check(err)
				read <- w
			}()
			synctest.Wait()
			second.Go(func() {
				_, _, w, err := c.GetW(ctx, "/a")
				if givesUp {
					testrig.WantErr(t, err, context.Canceled)
					return
				}
				r.Check(err)
				r.fired(w, zk.EventNodeDataChanged)
			})
			first := <-read
			if givesUp {
				cancel()
				second.Wait()
			}
			r.Check(r.Srv.SetData("/a", nil))
			r.fired(first, zk.EventNodeDataChanged) // and its reader does not come back
			second.Wait()
			cancel()
			r.Check(late.Wait(r.Ctx, 1))
			r.wantNoWatches(c)
		})
	}
}

// A read that left a watch is given up, and the next read is refused. The watch does not
// stay.
func TestStopBeforeRefusedRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpGetData, Path: "/a"}, 200*time.Millisecond)
		_, _, _, err := c.GetW(r.Within(100*time.Millisecond), "/a")
		testrig.WantErr(t, err, context.DeadlineExceeded)
		_, err = r.Connect("b").SetACL(r.Ctx, "/a", zk.WorldACL(zk.PermWrite|zk.PermAdmin), client.AnyVersion)
		r.Check(err)
		_, _, _, err = c.GetW(r.Ctx, "/a")
		testrig.WantErr(t, err, client.ErrNoAuth)
		r.wantNoWatches(c)
	})
}

// A reader relies on a watch that stands, and its read fails after the other reader has
// stopped. The watch does not stay on the server.
func TestStopBehindFailedRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		_, _, first, err := c.GetW(r.Ctx, "/a")
		r.Check(err)
		r.Srv.Ignore(zktest.Match{Op: zktest.OpGetData, Path: "/a"})
		ctx, cancel := context.WithCancel(r.Ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _, err := c.GetW(ctx, "/a")
			testrig.WantErr(t, err, context.Canceled)
		})
		synctest.Wait()
		first.Stop()
		cancel()
		wg.Wait()
		r.wantNoWatches(c)
	})
}
