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

// A tree is read by one request for each node and one more for each directory.
// Watches on the children of nodes that have none cost next to nothing.
func TestLoadReadsEachNodeOnce(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		tree := grown(r, opts...)
		const directories = boundDirs + 1
		if n, most := r.counted(), directories*2+boundDirs*boundEach+20; n > most {
			r.Errorf("%d requests, want at most %d: %v", n, most, r.srv.Counts())
		}
		r.srv.ResetCounts()
		r.create("/app/d03/n05/x", "1")
		time.Sleep(time.Second)
		if n := r.counted(); n > 4 { // one of the writer
			r.Errorf("%d requests for a node that is new: %v", n, r.srv.Counts())
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
				r.check(r.srv.Create(dir+"/n05/x", []byte("1")))
				r.check(r.srv.Create(dir+"/n06/x", []byte("2")))
				r.check(r.srv.Delete(dir + "/n06/x"))
				r.check(r.srv.Delete(dir + "/n07"))
				r.check(r.srv.Create(dir+"/n07", []byte("3")))
				r.check(r.srv.Create(dir+"/n07/x", []byte("4")))
				r.check(r.srv.Delete(dir + "/n08"))
			}
		}
		r.srv.BeforeApply(zktest.Match{Client: "cache", Path: "/app/d10", Op: zktest.OpGetChildren2}, change("/app/d03"))
		r.srv.BeforeReply(zktest.Match{Client: "cache", Path: "/app/d13/n23"}, change("/app/d13"))
		r.srv.BeforeApply(zktest.Match{Client: "cache", Op: zktest.OpSetWatches}, change("/app/d16")) // with one-shot watches
		tree := grown(r, opts...)
		time.Sleep(time.Second)
		want := text(tree.Snapshot())
		_, err := r.w.Set(r.ctx, "/app", nil, client.AnyVersion)
		r.check(err)
		if got := r.now(tree); got != want {
			r.Errorf("the cache had\n%s\nand has\n%s", want, got)
		}
		nodes := 0
		for _, n := range r.srv.Tree() {
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
