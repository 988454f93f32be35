package cache_test

import (
	"context"
	"fmt"
	"strings"
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
		_, err := r.w.Multi(r.Ctx, ops...)
		r.Check(err)
	}
	r.Srv.ResetCounts()
	return r.tree("/app", opts...)
}

// counted is how many requests the server has had, without the pings of a session.
func (r *rig) counted() (all int) {
	for op, n := range r.Srv.Counts() {
		if op != zktest.OpPing {
			all += n
		}
	}
	return all
}

// The watches of a connection are gone when the connection is. A reconnection leaves no more
// watches than there were, and none is removed.
func TestReconnectLeavesNoMoreWatches(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		tree := grown(r, opts...)
		watches := r.Srv.WatchCount()
		for range 3 {
			r.Srv.ResetCounts()
			r.Srv.Client("cache").Cut()
			time.Sleep(30 * time.Second)
			if !tree.Synced() {
				r.Errorf("state %v", tree.State())
			}
			if n := r.Srv.WatchCount(); n != watches {
				r.Errorf("%d watches after a reconnection, %d before", n, watches)
			}
			if n := r.Srv.Count(zktest.OpRemoveWatches); n != 0 {
				r.Errorf("%d requests to remove watches", n)
			}
		}
		tree.Close()
		r.wantNothingLeft()
	})
}

// With a persistent watch a tree is read by requests for many nodes each. With one-shot watches
// it is one read and one list for each node.
func TestLoadReadsEachNodeOnce(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		tree := grown(r, opts...)
		const nodes = 1 + boundDirs + boundDirs*boundEach
		reads, lists := r.Srv.Count(zktest.OpGetData), r.Srv.Count(zktest.OpGetChildren2)
		if n := r.Srv.Count(zktest.OpMultiRead); n > 15 || n == 0 && (reads != nodes || lists != nodes) || n > 0 && reads+lists != 0 {
			r.Errorf("%d rounds, %d reads, %d lists of %d nodes", n, reads, lists, nodes)
		}
		r.Srv.ResetCounts()
		r.create("/app/d03/n05/x", "1")
		time.Sleep(time.Second)
		if n := r.counted(); n > 4 { // one of the writer
			r.Errorf("%d requests for a node that is new: %v", n, r.Srv.Counts())
		}
		if n, there := tree.Snapshot().Get("/app/d03/n05/x"); !there || n.Value != "1" {
			r.Errorf("%+v, %v", n, there)
		}
		tree.Close()
		r.wantNothingLeft()
	})
}

// A tree changes while it is read. With one-shot watches a node may change after it was
// read, and before there is a watch on its children.
func TestChangesDuringLoad(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		change := func(dir string) func(context.Context, zktest.Request) {
			return func(context.Context, zktest.Request) {
				r.Check(r.Srv.Create(dir+"/n05/x", []byte("1")))
				r.Check(r.Srv.Create(dir+"/n06/x", []byte("2")))
				r.Check(r.Srv.Delete(dir + "/n06/x"))
				r.Check(r.Srv.Delete(dir + "/n07"))
				r.Check(r.Srv.Create(dir+"/n07", []byte("3")))
				r.Check(r.Srv.Create(dir+"/n07/x", []byte("4")))
				r.Check(r.Srv.Delete(dir + "/n08"))
			}
		}
		r.Srv.BeforeApply(zktest.Match{Client: "cache", Path: "/app/d10", Nth: 2}, change("/app/d03")) // the list
		r.Srv.BeforeReply(zktest.Match{Client: "cache", Path: "/app/d13/n23"}, change("/app/d13"))
		r.Srv.BeforeApply(zktest.Match{Client: "cache", Path: "/app/d16", Nth: 2}, change("/app/d16"))
		tree := grown(r, opts...)
		time.Sleep(time.Second)
		want := text(tree.Snapshot())
		_, err := r.w.Set(r.Ctx, "/app", nil, client.AnyVersion)
		r.Check(err)
		if got := r.now(tree); got != want {
			r.Errorf("the cache had\n%s\nand has\n%s", want, got)
		}
		nodes := 0
		for _, n := range r.Srv.Tree() {
			if got, there := tree.Snapshot().Get(n.Path); there && got.Value == string(n.Data) {
				nodes++
			} else if strings.HasPrefix(n.Path, "/app") {
				r.Errorf("%s is %+v", n.Path, got)
			}
		}
		if nodes != tree.Snapshot().Len() {
			r.Errorf("%d nodes, %d of them on the server", tree.Snapshot().Len(), nodes)
		}
	})
}
