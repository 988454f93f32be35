package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/zktest"
)

// A comparison tells what has changed since a transaction and leaves watches on the
// rest, beside a persistent watch too.
func TestFeedCompare(t *testing.T) {
	t.Parallel()
	everyFeed(t, func(r *rig, mode inside.FeedMode) {
		r.create("/p", "")
		for _, name := range []string{"a", "b", "c", "d"} {
			r.create("/p/"+name, "")
		}
		since := r.srv.Zxid()
		r.check(r.srv.SetData("/p/a", nil))
		r.create("/p/b/x", "")
		r.check(r.srv.Delete("/p/c"))
		c := r.connect("a")
		f := r.feed(c, "/p", mode)
		var asks []inside.Ask
		for _, name := range []string{"a", "b", "c", "d"} {
			asks = append(asks, inside.Ask{Path: "/p/" + name}, inside.Ask{Path: "/p/" + name, Children: true})
		}
		unasked, zxid, err := f.Compare(r.ctx, since, asks)
		r.check(err)
		if len(unasked) != 0 || zxid != r.srv.Zxid() {
			r.Errorf("unasked %v, at %#x", unasked, zxid)
		}
		events, err := f.Take()
		r.check(err)
		told := map[string]bool{}
		for _, e := range events {
			told[feedNames[e.Kind]+" "+e.Path] = true
		}
		if fmt.Sprint(told) != "map[children /p/b:true data /p/a:true deleted /p/c:true]" {
			r.Errorf("events %v", told)
		}
		r.srv.ResetCounts()
		_, _, err = f.Compare(r.ctx, since, asks[len(asks)-2:])
		r.check(err)
		if n := r.srv.Count(zktest.OpSetWatches); n != 0 {
			r.Errorf("%d requests for watches that stand", n)
		}
		r.settle()
		if got := strings.Join(r.oneShots(), " "); got != "/p/a /p/b /p/d /p/d" {
			r.Errorf("watches on %s", got)
		}
		r.create("/p/d/x", "")
		r.settle()
		want := []string{"children /p/d"}
		if mode == inside.FeedDeep { // which tells it too
			want = []string{"created /p/d/x", "children /p/d"}
		}
		f.told(want...)
		f.Close()
		r.settle()
		if n := r.srv.WatchCount(); n != 0 || client.HubSize(c) != 0 {
			r.Errorf("%d watches on the server, %d in the client", n, client.HubSize(c))
		}
	})
}

// A comparison asks nothing about the path of a persistent watch: before ZooKeeper 3.9
// the server would put the one in place of the other.
func TestFeedCompareSparesPersistentWatch(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, _ zktest.Version) {
		r.create("/p", "")
		r.create("/p/a", "")
		c := r.connect("a")
		w := r.watch(c, "/p/a")
		f := r.feed(c, "/p", inside.FeedOneShot)
		unasked, _, err := f.Compare(r.ctx, r.srv.Zxid(), []inside.Ask{{Path: "/p"}, {Path: "/p/a"}})
		r.check(err)
		if fmt.Sprint(unasked) != fmt.Sprint([]inside.Ask{{Path: "/p/a"}}) {
			r.Errorf("unasked %v", unasked)
		}
		f.read("/p/a")
		for range 2 {
			r.check(r.srv.SetData("/p/a", nil))
		}
		r.settle()
		r.told(w, "data /p/a", "data /p/a")
		f.told("data /p/a") // the read relies on the persistent watch, once

		f.read("/p/a")
		w.Close()
		r.settle()
		f.told("missed ") // and hears that it is gone
	})
}

// Requests stay below what servers take, and a comparison that they do not know is
// asked for once.
func TestFeedCompareSplits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		f := r.feed(c, "/p", inside.FeedOneShot)
		var asks []inside.Ask
		for i := range 40 {
			asks = append(asks, inside.Ask{Path: fmt.Sprintf("/p/%s%d", strings.Repeat("x", 20<<10), i)})
		}
		_, _, err := f.Compare(r.ctx, r.srv.Zxid(), asks)
		r.check(err)
		if n := r.srv.Count(zktest.OpSetWatches); n != 6 {
			r.Errorf("%d requests", n)
		}
	}, zktest.WithMaxFrame(256<<10))
	bubble(t, func(r *rig) {
		f := r.feed(r.connect("a"), "/p", inside.FeedOneShot)
		for range 2 {
			if _, _, err := f.Compare(r.ctx, 1, []inside.Ask{{Path: "/p"}}); !errors.Is(err, client.ErrUnsupported) {
				r.Errorf("error %v", err)
			}
			r.settle()
			if _, err := f.Take(); err != nil { // the server closes the connection
				r.Error(err)
			}
		}
		if n := r.srv.Count(zktest.OpSetWatches); n > 1 {
			r.Errorf("%d requests", n)
		}
	}, zktest.WithoutOps(zktest.OpSetWatches))
}

// The comparison of another feed may end a watch that is about to be set. Beside a
// persistent watch no reader sets that watch again, so it is removed.
func TestFeedCompareBesideAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/p", "")
		r.create("/p/a", "")
		c := r.connect("a")
		one, two := r.feed(c, "/p", inside.FeedOneShot), r.feed(c, "/p", inside.FeedDeep)
		r.srv.Delay(zktest.Match{Client: "a", Op: zktest.OpSetWatches}, time.Second)
		old := make(chan error, 1)
		go func() {
			_, _, err := one.Compare(r.ctx, 1, []inside.Ask{{Path: "/p/a"}})
			old <- err
		}()
		synctest.Wait()
		_, _, err := two.Compare(r.ctx, r.srv.Zxid(), []inside.Ask{{Path: "/p/a"}})
		r.check(errors.Join(err, <-old))
		one.told("data /p/a")
		two.told("data /p/a")
		r.settle()
		if got := r.oneShots(); len(got) != 0 {
			r.Errorf("watches on %v", got)
		}
	})
}

// A comparison that was given up may be carried out later. Its events then look like the
// end of watches that stand: those of other readers are removed all the same.
func TestFeedCompareGivenUp(t *testing.T) {
	t.Parallel()
	everyFeed(t, func(r *rig, mode inside.FeedMode) {
		for _, other := range []string{"feed", "reader"} {
			r.check(r.srv.Create("/"+other, nil))
			since := r.srv.Zxid()
			r.check(r.srv.SetData("/"+other, nil))
			c := r.connect("a" + other)
			gone, stays := r.feed(c, "/"+other, mode), r.feed(c, "/"+other, inside.FeedOneShot)
			session := r.session(c)
			var watch *client.OneShotWatch
			if other == "feed" {
				stays.read("/" + other)
			} else {
				_, _, w, err := session.GetW(r.ctx, "/"+other)
				r.check(err)
				watch = w
			}
			late := r.srv.BeforeApply(zktest.Match{Op: zktest.OpSetWatches}, func(context.Context, zktest.Request) {
				time.Sleep(500 * time.Millisecond)
			})
			ctx, cancel := context.WithCancel(r.ctx)
			compared := make(chan error)
			go func() { // ends with ctx
				_, _, err := gone.Compare(ctx, since, []inside.Ask{{Path: "/" + other}, {Path: "/" + other, Children: true}})
				compared <- err
			}()
			r.check(late.Wait(r.ctx, 1))
			cancel()
			wantErr(t, <-compared, context.Canceled)
			gone.Close()
			stays.Close()
			if watch != nil {
				watch.Stop()
			}
			r.settle()
			r.settle()
			if got := r.srv.Watches(); len(got) != 0 {
				r.Errorf("%s: watches are left: %+v", other, got)
			}
		}
	})
}
