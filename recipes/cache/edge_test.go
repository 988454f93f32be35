package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// start starts a cache of the tree at path with a client.
func (r *rig) start(c *client.Client, path string, opts ...cache.Option) *cache.Tree[string] {
	r.Helper()
	t, err := cache.NewTree(c, path, cache.Text, opts...)
	r.Check(err)
	r.Cleanup(t.Close)
	r.Check(t.Start(r.Within(time.Minute)))
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
		app := r.Connect("app", client.WithNamespace("app"))
		r.want(r.start(app, "/", opts...), "/= /zookeeper=mine /zookeeper/x=too")
		r.want(r.start(app, "/zookeeper", opts...), "/zookeeper=mine /zookeeper/x=too")
	})
}

// Nodes that the filter leaves out do not count towards the limits, however many they
// are.
func TestFilterUnderLimit(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		for i := range 12 {
			r.create(fmt.Sprintf("/app/n%d", i), "")
		}
		seven := cache.WithFilter(func(path string) bool { return strings.HasSuffix(path, "7") })
		r.want(r.tree("/app", append(opts, seven, cache.WithLimits(cache.Limits{Nodes: 4}))...), "/app= /app/n7=")
	})
}

// A cache looks again at a node that it may not read every half minute, also while it
// hears of other changes all the time.
func TestUnreadableIsTriedAgain(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/busy", "")
		_, err := r.w.Create(r.Ctx, "/app/secret", []byte("s"), client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		r.Check(err)
		tree := r.tree("/app", opts...)
		if n, _ := tree.Snapshot().Get("/app/secret"); !errors.Is(n.Err, zk.ErrNoAuth) {
			r.Fatalf("nothing is tested: %+v", n)
		}
		_, err = r.w.SetACL(r.Ctx, "/app/secret", zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		for i := range 6 {
			time.Sleep(10 * time.Second)
			r.set("/app/busy", strconv.Itoa(i))
		}
		r.want(tree, "/app= /app/busy=5 /app/secret=s")
	})
}

// The bytes of a value that is dropped, as the client may not read it any more, are
// not counted any longer.
func TestBytesOfUnreadable(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", strings.Repeat("x", 1000))
		tree := r.tree("/app", append(opts, cache.DropUndecodable(), cache.WithLimits(cache.Limits{Bytes: 1500}))...)
		for range 4 {
			_, err := r.w.SetACL(r.Ctx, "/app/a", zk.WorldACL(zk.PermAll&^zk.PermRead), client.AnyVersion)
			r.Check(err)
			r.set("/app/a", strings.Repeat("y", 1000))
			r.Srv.Client("cache").Cut()
			time.Sleep(5 * time.Second)
			if n, _ := tree.Snapshot().Get("/app/a"); !errors.Is(n.Err, zk.ErrNoAuth) {
				r.Fatalf("nothing is tested: %+v", n)
			}
			_, err = r.w.SetACL(r.Ctx, "/app/a", zk.WorldACL(zk.PermAll), client.AnyVersion)
			r.Check(err)
			time.Sleep(31 * time.Second)
			if n, _ := tree.Snapshot().Get("/app/a"); n.Err != nil || len(n.Value) != 1000 || !tree.Synced() {
				r.Errorf("%+v, %v", n, tree.State())
			}
		}
	})
}

// What a reconnection brings to light is told as such also to a reader that takes its
// time, while the cache goes on without changes.
func TestCauseLasts(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/else", "")
		tree := r.tree("/app", opts...)
		link := r.Srv.Client("cache")
		var told []string
		for change, err := range tree.Changes(r.Within(time.Hour)) {
			r.Check(err)
			told = append(told, fmt.Sprintf("%v %v", change.Kind, change.Cause))
			switch change.Kind {
			case cache.Began:
				link.Refuse()
				link.Cut()
				continue
			case cache.BecameStale:
				r.create("/app/new", "x")
				link.Accept()
				time.Sleep(5 * time.Second)
				r.set("/else", "1")
				_ = r.now(tree) // a version with the same nodes and a larger zxid
				continue
			case cache.BecameSynced:
			default:
				continue
			}
			break
		}
		if got := strings.Join(told, ", "); got != "began live, stale live, created resync, synced resync" {
			r.Error(got)
		}
	})
}

// A Wait for a transaction that never comes costs other Waits no time, while it lasts
// and after it.
func TestWaitForTheFuture(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/else", "")
		tree := r.tree("/app", opts...)
		quick := func(when string) {
			for i := range 20 {
				r.set("/else", strconv.Itoa(i))
				begun := time.Now()
				_ = r.now(tree)
				if took := time.Since(begun); took > 100*time.Millisecond {
					r.Errorf("%s: %v", when, took)
				}
			}
		}
		ctx, cancel := context.WithCancel(r.Ctx)
		ended := make(chan error)
		go func() { // ends with ctx
			_, err := tree.Wait(ctx, 1<<40)
			ended <- err
		}()
		time.Sleep(10 * time.Second)
		quick("beside it")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.Error(err)
		}
		quick("after it")
	})
}

// Whoever deletes in a transaction can wait for a snapshot without the node.
func TestWaitForADelete(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/job", "")
		tree := r.tree("/app", opts...)
		_ = r.now(tree)
		r.Srv.DelayEvents(time.Second)
		done, err := r.Connect("other").Multi(r.Ctx, client.DeleteOp("/app/job", client.AnyVersion))
		r.Check(err)
		now, err := tree.Wait(r.Ctx, done[0].Zxid)
		r.Check(err)
		if _, there := now.Get("/app/job"); there {
			r.Error("a snapshot from before the delete")
		}
	})
}

// The end of the client ends a cache at once, also one that waits as its tree is too
// large.
func TestClientClosedFirst(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		for _, nodes := range []int{1, 10} {
			c := r.Connect("other")
			tree := r.start(c, "/app", append(opts, cache.WithLimits(cache.Limits{Nodes: nodes}))...)
			r.create("/app/a", "")
			time.Sleep(time.Second)
			if state := tree.State(); (state.Phase == cache.Synced) != (nodes > 1) {
				r.Fatalf("nothing is tested: %v", state)
			}
			r.Check(c.Close())
			begun := time.Now()
			_, err := tree.Wait(r.Ctx, 1<<40)
			if took := time.Since(begun); took > time.Second || !errors.Is(err, cache.ErrClosed) {
				r.Errorf("%v after %v", err, took)
			}
			r.wantNothingLeft()
			r.remove("/app/a")
		}
	})
}

// A state says why there is nothing yet, and the error of a wait says it too.
func TestWhyNotSynced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		tree, err := cache.NewTree(r.c, "/app", cache.Text, cache.WithLazyStart())
		r.Check(err)
		_, err = tree.WaitSynced(r.Within(time.Second))
		if err == nil || !strings.Contains(err.Error(), "it is not started; call Start") {
			r.Errorf("before Start: %v", err)
		}
		link := r.Srv.Client("cache")
		link.Refuse()
		link.Cut()
		time.Sleep(time.Second)
		waited := make(chan error)
		go func() { // ends when the cache is synced
			_, err := tree.WaitSynced(r.Ctx)
			waited <- err
		}()
		synctest.Wait()
		r.Check(tree.Start(r.Ctx))
		for _, pause := range []time.Duration{time.Second, time.Minute} { // suspended, then without a session
			time.Sleep(pause)
			if state := tree.State(); state.Phase != cache.Syncing || state.Err == nil || strings.Contains(state.Err.Error(), "Start") {
				r.Errorf("without a connection: %v", state)
			}
		}
		link.Accept()
		r.Check(<-waited)
		if state := tree.State(); state.Phase != cache.Synced || state.Err != nil {
			r.Error(state)
		}
		tree.Close()
	})
}
