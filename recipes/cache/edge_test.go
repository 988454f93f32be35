package cache_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// start starts a cache of the tree at path with a client, and waits until it is synced.
func (r *rig) start(c *client.Client, path string, opts ...cache.Option) *cache.Tree[string] {
	r.Helper()
	t, err := cache.NewTree(c, path, cache.Text, opts...)
	r.check(err)
	r.check(t.Start(r.ctx))
	r.Cleanup(t.Close)
	_, err = t.WaitSynced(r.within(time.Minute))
	r.check(err)
	return t
}

// Only the servers' own /zookeeper is left out, and only of a tree of everything. In a
// namespace a node of that name is one like any other.
func TestNodesOfTheServers(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/zookeeper", "mine")
		r.create("/app/zookeeper/x", "too")
		r.want(r.tree("/", opts...), "/= /app= /app/zookeeper=mine /app/zookeeper/x=too")
		r.want(r.tree("/zookeeper", append(opts, cache.WithDepth(1))...), "/zookeeper= /zookeeper/config= /zookeeper/quota=")
		app := r.connect("app", client.WithNamespace("app"))
		r.want(r.start(app, "/", opts...), "/= /zookeeper=mine /zookeeper/x=too")
		r.want(r.start(app, "/zookeeper", opts...), "/zookeeper=mine /zookeeper/x=too")
	})
}
