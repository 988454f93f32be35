package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// An event of a transaction comes before each answer that shows it, and after each that
// does not. Its bound says so.
func TestFeedEventsBeforeAnswers(t *testing.T) {
	t.Parallel()
	everyFeed(t, func(r *rig, mode inside.FeedMode) {
		r.create("/p", "1")
		f := r.feed(r.Connect("a"), "/p", mode)
		f.read("/p")
		before := f.head
		f.told()
		r.Srv.BeforeApply(zktest.Match{Client: "a", Path: "/p"}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.SetData("/p", []byte("2")))
		})
		after := f.read("/p")
		head := f.head
		events := f.told("data /p")
		if string(after.Data) != "2" || head <= before {
			r.Errorf("%q at %#x, after %#x", after.Data, head, before)
		}
		if e := events[0]; e.After < before || e.After >= head || e.Zxid > 0 && e.Zxid != after.Stat.Mzxid {
			r.Errorf("event %+v between answers at %#x and %#x", e, before, head)
		}
		if after.Unwatched != (mode == inside.FeedOneShot) { // the event may have ended the new watch too
			r.Errorf("unwatched: %v", after.Unwatched)
		}
		f.read("/p")
		r.Check(r.Srv.SetData("/p", nil))
		r.settle()
		if e := f.told("data /p")[0]; e.After < head {
			r.Errorf("event %+v after an answer at %#x", e, head)
		}
	})
}

// The context that opens a feed bounds the opening alone.
func TestFeedOutlivesItsContext(t *testing.T) {
	t.Parallel()
	everyFeed(t, func(r *rig, mode inside.FeedMode) {
		r.create("/p", "")
		c := r.Connect("a")
		ctx, cancel := context.WithCancel(r.Ctx)
		feed, err := inner.Feed(ctx, c, "/p", mode)
		r.Check(err)
		defer feed.Close()
		f := &reader{rig: r, Feed: feed, mode: mode}
		f.await("the first event", f.Ready())
		f.told("missed ")
		cancel()
		r.settle()
		f.read("/p")
		r.Check(r.Srv.SetData("/p", nil))
		r.settle()
		f.told("data /p")
	})
}

// After a reconnection, and in a new session, there is a gap: the reader is told, and
// its requests fail until it knows.
func TestFeedGap(t *testing.T) {
	t.Parallel()
	everyFeed(t, func(r *rig, mode inside.FeedMode) {
		r.create("/p", "")
		c := r.Connect("a")
		f := r.feed(c, "/p", mode)
		for _, cut := range []func() int{r.Srv.Client("a").Cut, r.Srv.Client("a").ExpireSession} {
			f.read("/p")
			line, since := f.Connection(), r.Srv.Zxid()
			cut()
			r.Check(r.Srv.SetData("/p", nil)) // nobody hears of it
			r.settle()
			r.Session(c)
			if _, _, err := f.Read(r.Ctx, []inside.Ask{{Path: "/p"}}); err == nil {
				r.Error("a reader that does not know of a reconnection reads")
			}
			if _, err := f.Sync(r.Ctx); err == nil {
				r.Error("a reader that does not know of a reconnection syncs")
			}
			f.told("missed ")
			if f.Connection() == line {
				r.Errorf("the connection is %d, as before", line)
			}
			if a := f.read("/p"); a.Stat.Mzxid <= since {
				r.Errorf("%+v, although the node has changed after %#x", a, since)
			}
			f.told()
			r.Check(r.Srv.SetData("/p", nil))
			r.settle()
			f.told("data /p")
		}
	})
}

// A root that is deleted and made again is told of, and so is one that is made late.
func TestFeedReplacedRoot(t *testing.T) {
	t.Parallel()
	everyFeed(t, func(r *rig, mode inside.FeedMode) {
		r.create("/p", "")
		f := r.feed(r.Connect("a"), "/p", mode)
		f.read("/p")
		f.ask(inside.Ask{Path: "/p", Children: true})
		r.Check(r.Srv.Delete("/p"))
		r.settle()
		f.told("deleted /p")
		if a := f.ask(inside.Ask{Path: "/p", Missing: mode == inside.FeedOneShot}); !errors.Is(a.Err, zk.ErrNoNode) || a.Unwatched {
			r.Errorf("%+v", a)
		}
		r.create("/p", "2")
		r.settle()
		f.told("created /p")
		if a := f.read("/p"); string(a.Data) != "2" || a.Unwatched {
			r.Errorf("%+v", a)
		}
		f.Close()
		r.settle()
		if n := r.Srv.WatchCount(); n != 0 {
			r.Errorf("watches are left: %+v", r.Srv.Watches())
		}
	})
}

// A feed of a closed client is over.
func TestFeedOfClosedClient(t *testing.T) {
	t.Parallel()
	everyFeed(t, func(r *rig, mode inside.FeedMode) {
		r.create("/p", "")
		c := r.Connect("a")
		f := r.feed(c, "/p", mode)
		f.read("/p")
		r.Check(c.Close())
		r.await("the end", f.Ready())
		_, err := f.Take()
		testrig.WantErr(r.T, err, client.ErrClosed)
		if _, _, err := f.Read(r.Ctx, []inside.Ask{{Path: "/p"}}); err == nil {
			r.Error("a feed of a closed client reads")
		}
		if _, err := inner.Feed(r.Ctx, c, "/p", mode); !errors.Is(err, client.ErrClosed) {
			r.Errorf("a new feed: %v", err)
		}
	})
}

// A one-shot watch tells once, and the next read arms it again.
func TestFeedArmsAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/p", "")
		f := r.feed(r.Connect("a"), "/p", inside.FeedOneShot)
		for range 3 {
			if a := f.read("/p"); a.Unwatched {
				r.Errorf("%+v", a)
			}
			r.Check(r.Srv.SetData("/p", nil))
			r.Check(r.Srv.SetData("/p", nil))
			r.settle()
			f.told("data /p")
		}
		if a := f.read("/none"); !errors.Is(a.Err, zk.ErrNoNode) {
			r.Errorf("%+v", a)
		}
		r.create("/none", "")
		r.settle()
		f.told() // getData leaves no watch on a missing node
		if got := fmt.Sprint(r.oneShots()); got != "[]" {
			r.Errorf("watches on %v", got)
		}
	})
}

// A slow reader costs a bounded amount of memory: one gap takes the place of the events
// that wait.
func TestFeedOfSlowReader(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/p", "")
		f := r.feed(r.Connect("a"), "/p", inside.FeedDeep)
		const queue = 1 << 14
		for range queue {
			r.Check(r.Srv.SetData("/p", nil))
		}
		r.settle()
		r.Check(r.Srv.SetData("/p", nil))
		r.Check(r.Srv.SetData("/p", nil))
		r.settle()
		f.told("missed ", "data /p")
		f.read("/p") // the connection is the same
	})
}

// Feeds and other readers of the same path each hear of it, and the server keeps the
// watch until the last of them has left.
func TestFeedBesideOtherReaders(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/p", "")
		c := r.Connect("a")
		one, two := r.feed(c, "/p", inside.FeedOneShot), r.feed(c, "/p", inside.FeedOneShot)
		ask := []inside.Ask{{Path: "/p"}, {Path: "/p", Children: true}}
		for _, f := range []*reader{one, two} {
			_, _, err := f.Read(r.Ctx, ask)
			r.Check(err)
		}
		_, _, w, err := c.GetW(r.Ctx, "/p")
		r.Check(err)
		r.Check(r.Srv.SetData("/p", nil))
		r.settle()
		one.told("data /p")
		two.told("data /p")
		r.await("the watch", w.Done())

		one.read("/p")
		_, _, w, err = c.GetW(r.Ctx, "/p")
		r.Check(err)
		w.Stop()
		one.Close()
		r.settle()
		if got := fmt.Sprint(r.oneShots()); got != "[/p]" { // of the children, for two
			r.Errorf("watches on %v", got)
		}
		two.read("/p")
		r.Check(r.Srv.Delete("/p"))
		r.settle()
		two.told("deleted /p") // once
		two.Close()
		r.settle()
		if n := r.Srv.WatchCount(); n != 0 || client.HubSize(c) != 0 {
			r.Errorf("%d watches on the server, %d in the client", n, client.HubSize(c))
		}
	})
}

// Another reader that stops takes no watch from a feed. A watch that has fired is not
// removed from the server.
func TestFeedOutlivesOtherReader(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/p", "")
		c := r.Connect("a")
		f := r.feed(c, "/p", inside.FeedOneShot)
		_, _, w, err := c.GetW(r.Ctx, "/p")
		r.Check(err)
		f.read("/p")
		w.Stop()
		r.settle()
		r.Check(r.Srv.SetData("/p", nil))
		r.settle()
		f.told("data /p")

		f.read("/p")
		f.Close()
		r.Check(r.Srv.SetData("/p", nil))
		r.settle()
		if n := r.Srv.Count(zktest.OpRemoveWatches); n != 0 {
			r.Errorf("%d requests to remove watches", n)
		}
	})
}

// A reader that gives up leaves no watch behind.
func TestFeedGivesUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/p", "")
		c := r.Connect("a")
		f := r.feed(c, "/p", inside.FeedOneShot)
		r.Srv.DelayReply(zktest.Match{Client: "a", Op: zktest.OpGetData}, 500*time.Millisecond)
		if _, _, err := f.Read(r.Within(100*time.Millisecond), []inside.Ask{{Path: "/p"}}); !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("error %v", err)
		}
		r.settle()
		if n := r.Srv.WatchCount(); n != 0 || client.HubSize(c) != 0 {
			r.Errorf("%d watches on the server, %d in the client", n, client.HubSize(c))
		}
	})
}

// The event of an earlier watch may come while a read sets another one. The client removes
// that one, whatever the reader does.
func TestFeedEventBeforeWatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit time.Duration // of the read
		err   error
	}{
		"given up":  {100 * time.Millisecond, context.DeadlineExceeded},
		"never out": {0, context.DeadlineExceeded},
		"answered":  {time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.create("/p", "")
				c := r.Connect("a")
				f := r.feed(c, "/p", inside.FeedOneShot)
				f.read("/p")
				r.Srv.Delay(zktest.Match{Client: "a", Op: zktest.OpGetData}, 500*time.Millisecond)
				read := make(chan error, 1)
				go func() {
					_, _, err := f.Read(r.Within(tt.limit), []inside.Ask{{Path: "/p"}})
					read <- err
				}()
				time.Sleep(200 * time.Millisecond) // after the reader gave up, and before the read
				if tt.limit > 0 {
					r.Check(r.Srv.SetData("/p", []byte("new")))
				}
				if err := <-read; !errors.Is(err, tt.err) {
					r.Errorf("error %v, want %v", err, tt.err)
				}
				r.settle()
				if n := r.Srv.WatchCount(); n != 0 || client.HubSize(c) != 0 {
					r.Errorf("%d watches on the server, %d in the client", n, client.HubSize(c))
				}
			})
		})
	}
}
