package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

const (
	boundDirs = 20
	boundEach = 24 // nodes in each directory
)

// grown is a rig with a tree of directories, and a cache of it.
func grown(r *rig, opts ...cache.Option) *cache.Tree[string] {
	r.Helper()
	r.create("/app", "")
	for d := range boundDirs {
		dir := fmt.Sprintf("/app/d%02d", d)
		ops := []client.Op{client.CreateOp(dir, nil)}
		for i := range boundEach {
			ops = append(ops, client.CreateOp(fmt.Sprintf("%s/n%02d", dir, i), []byte("x")))
		}
		_, err := r.w.Multi(r.ctx, ops...)
		r.check(err)
	}
	r.srv.ResetCounts()
	return r.tree("/app", opts...)
}

// counted is how many requests the server has had, without the pings of a session.
func (r *rig) counted() (all int) {
	for op, n := range r.srv.Counts() {
		if op != zktest.OpPing {
			all += n
		}
	}
	return all
}

// The watches of a connection are gone when the connection is. A client that
// compares late has none of them removed one by one.
func TestReconnectRemovesNoWatches(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		tree := grown(r, opts...)
		for range 2 { // a comparison leaves watches too
			late := r.srv.DelayReply(zktest.Match{Op: zktest.OpSync}, 5*time.Second)
			r.srv.ResetCounts()
			r.srv.Client("cache").Cut()
			time.Sleep(30 * time.Second)
			late.Remove()
			if !tree.Synced() {
				r.Errorf("state %v", tree.State())
			}
			if n := r.counted(); n > boundDirs {
				r.Errorf("%d requests after a reconnection without changes: %v", n, r.srv.Counts())
			}
		}
		tree.Close()
		r.wantNothingLeft()
	})
}
