package cache_test

import (
	"testing"

	"github.com/docent-go/docent/recipes/cache"
)

// A tree follows creations, new data, deletions, re-creations, and a root that comes
// and goes, and leaves nothing behind.
func TestTree(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		tree := r.tree("/app", opts...)
		r.want(tree, "")
		r.create("/app", "1")
		r.want(tree, "/app=1")
		r.create("/app/b", "2")
		r.create("/app/b-x", "3")
		r.create("/app/b/c", "4")
		r.want(tree, "/app=1 /app/b=2 /app/b/c=4 /app/b-x=3")
		r.set("/app/b/c", "5")
		r.remove("/app/b-x")
		r.want(tree, "/app=1 /app/b=2 /app/b/c=5")
		r.remove("/app/b/c")
		r.remove("/app/b")
		r.create("/app/b", "6")
		r.want(tree, "/app=1 /app/b=6")
		r.remove("/app/b")
		r.remove("/app")
		r.want(tree, "")
		if _, there := tree.Snapshot().Root(); there || !tree.Synced() {
			r.Errorf("a missing root is a state: %v, state %v", there, tree.State())
		}
		r.create("/app", "7")
		r.create("/app/d", "8")
		r.want(tree, "/app=7 /app/d=8")
		tree.Close()
		r.wantNothingLeft()
	})
}
