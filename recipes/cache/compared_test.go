package cache_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// The comparison of another cache may end a one-shot watch by an event that is no news.
// The cache reads once to set the watch again, although the server has no later
// transaction to show.
func TestComparisonOfAnother(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "1")
		tree := r.tree("/app", opts...)
		feed, err := inside.Of[client.Client, client.Session, client.Op]().Feed(r.ctx, r.c, "/app", inside.FeedOneShot)
		r.check(err)
		defer feed.Close()
		_, err = feed.Take()
		r.check(err)
		r.srv.ResetCounts()
		_, _, err = feed.Compare(r.ctx, 1, []inside.Ask{{Path: "/app/a"}})
		r.check(err)
		time.Sleep(5 * time.Second)
		if n := r.srv.Count(zktest.OpGetData); n > 1 {
			r.Errorf("%d reads of a node that has not changed", n)
		}
		r.set("/app/a", "2")
		r.want(tree, "/app= /app/a=2")
	})
}

// The comparison of another cache may also end the watch of a cache that waits for its
// node to be made.
func TestComparisonWhileMissing(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		tree := r.tree("/app", opts...)
		feed, err := inside.Of[client.Client, client.Session, client.Op]().Feed(r.ctx, r.c, "/app", inside.FeedOneShot)
		r.check(err)
		defer feed.Close()
		_, err = feed.Take()
		r.check(err)
		_, _, err = feed.Compare(r.ctx, r.srv.Zxid(), []inside.Ask{{Path: "/app"}}) // it is gone
		r.check(err)
		time.Sleep(5 * time.Second)
		r.create("/app", "1")
		time.Sleep(5 * time.Second)
		if got := text(tree.Snapshot()); got != "/app=1" {
			r.Errorf("the cache has %q", got)
		}
	})
}
