package cache_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// A value that is too large for the client is a state of its node. It hides no other
// change, and the nodes below it are there.
func TestValueTooLarge(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/old", strings.Repeat("x", 10_000))
		r.create("/app/old/below", "b")
		small := r.Connect("small", client.WithMaxReply(4096))
		tree := r.start(small, "/app", opts...)
		r.create("/app/new", strings.Repeat("x", 10_000))
		r.create("/app/new/below", "b")
		r.create("/app/a", "a")
		time.Sleep(time.Second)
		if got := text(tree.Snapshot()); got != "/app= /app/a=a /app/new= /app/new/below=b /app/old= /app/old/below=b" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
		for _, path := range []string{"/app/old", "/app/new"} {
			unread := (*cache.UnreadableError)(nil)
			if n, _ := tree.Snapshot().Get(path); !errors.As(n.Err, &unread) || !errors.Is(n.Err, client.ErrReplyTooLarge) {
				r.Errorf("%s: %v", path, n.Err)
			}
			r.set(path, "small")
		}
		time.Sleep(31 * time.Second) // one-shot watches: no watch stands on such a node
		r.want(tree, "/app= /app/a=a /app/new=small /app/new/below=b /app/old=small /app/old/below=b")
		tree.Close()
		r.wantNothingLeft()
	})
}

// A cache that knows of a change and cannot read it is not synced, and says why.
func TestStuckIsStale(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "a")
		tree := r.tree("/app", opts...)
		rule := r.Srv.Fail(zktest.Match{Path: "/app/a", Client: "cache", Times: zktest.Always}, -1)
		r.set("/app/a", "b")
		time.Sleep(time.Second)
		if state := tree.State(); state.Phase != cache.Stale || state.Err == nil || !strings.Contains(state.Err.Error(), "/app/a") {
			r.Errorf("%v after %d answers without the data", state, rule.Fired())
		}
		r.Srv.ClearRules()
		time.Sleep(2 * time.Second)
		if !tree.Synced() {
			r.Errorf("%v", tree.State())
		}
		r.want(tree, "/app= /app/a=b")
	})
}

// Caches that share one-shot watches wait for each other now and then. None of them
// says stale of that.
func TestSharedWatchesStaySynced(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		for i := range 5 {
			r.create("/app/n"+strconv.Itoa(i), "")
		}
		var followed sync.WaitGroup
		var trees []*cache.Tree[string]
		for range 4 {
			tree := r.tree("/app", opts...)
			trees = append(trees, tree)
			followed.Go(func() {
				for change := range tree.Changes(r.Ctx) {
					if change.Kind == cache.BecameStale && !errors.Is(change.State.Err, cache.ErrClosed) {
						r.Errorf("%v", change.State)
					}
				}
			})
		}
		for i := range 200 {
			r.set("/app/n"+strconv.Itoa(i%5), strconv.Itoa(i))
		}
		for _, tree := range trees {
			r.want(tree, "/app= /app/n0=195 /app/n1=196 /app/n2=197 /app/n3=198 /app/n4=199")
			tree.Close()
		}
		followed.Wait()
	})
}

// After many small nodes, a cache does not take any number of large ones into its memory
// before it sees that they exceed its limit.
func TestLargeBehindSmall(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.Check(r.Srv.Create("/app/large", nil))
		for i := range 2000 {
			r.Check(r.Srv.Create("/app/n"+strconv.Itoa(i), nil))
		}
		data := []byte(strings.Repeat("x", 100_000))
		for i := range 200 {
			r.Check(r.Srv.Create("/app/large/n"+strconv.Itoa(i), data))
		}
		var read atomic.Int32
		r.Srv.OnRequest(func(q zktest.Request) {
			for _, path := range append(q.Paths, q.Path)[:max(len(q.Paths), 1)] {
				if strings.HasPrefix(path, "/app/large/") {
					read.Add(1)
				}
			}
		})
		tree, err := cache.NewTree(r.c, "/app", cache.Bytes, append(opts, cache.WithLimits(cache.Limits{Bytes: 1_000_000}))...)
		r.Check(err)
		err = tree.Start(r.Ctx)
		if n := read.Load(); n < 11 || n > 100 || !errors.Is(err, cache.ErrLimit) {
			r.Errorf("%d nodes of 100 kB were read, %v", n, err)
		}
	})
}
