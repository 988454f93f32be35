package cache_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// The tests of this file are named after faults of Curator's caches, and of other
// caches. integration/caches shows the faults that Curator 5.4 has on a real server.

// heard reads the changes of a cache on a goroutine of its own.
type heard struct {
	changes []cache.Change[string]
	done    chan struct{}
}

// hear begins to read. What was heard may be looked at once done is closed.
func (r *rig) hear(in picture) *heard {
	h := &heard{done: make(chan struct{})}
	go func() {
		defer close(h.done)
		for change, err := range in.Changes(r.Ctx) {
			if err != nil || errors.Is(change.State.Err, cache.ErrClosed) {
				return
			}
			h.changes = append(h.changes, change)
		}
	}()
	return h
}

// text closes the cache, and says what was heard: "kind path" of each change.
func (h *heard) text(in picture) string {
	synctest.Wait() // the reader has read all
	in.Close()
	<-h.done
	var all []string
	for _, c := range h.changes {
		all = append(all, strings.TrimSpace(c.Kind.String()+" "+c.Path))
	}
	return strings.Join(all, ", ")
}

// away cuts the connection of the caches' client while f runs, and waits until the
// cache has caught up.
func (r *rig) away(in *cache.Tree[string], f func()) {
	r.Helper()
	link := r.Srv.Client("cache")
	link.Refuse()
	link.Cut()
	time.Sleep(time.Second)
	f()
	link.Accept()
	_, err := in.WaitSynced(r.Within(time.Minute))
	r.Check(err)
}

func (r *rig) wantHeard(h *heard, in picture, want string) {
	r.Helper()
	if got := h.text(in); got != want {
		r.Errorf("heard\n%s\nwant\n%s", got, want)
	}
}

// CuratorCache lists children again only if the cversion differs. So a directory that
// is made again with as many creations keeps the children of the old one there.
func TestEqualCversion(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/app", "/app/d", "/app/d/x"} {
			r.create(path, "old")
		}
		tree := r.tree("/app", opts...)
		r.away(tree, func() {
			before, _ := r.Srv.Node("/app/d")
			r.remove("/app/d/x")
			r.remove("/app/d")
			r.create("/app/d", "new")
			r.create("/app/d/y", "new")
			if after, _ := r.Srv.Node("/app/d"); after.Stat.Cversion != before.Stat.Cversion || after.Stat.Version != before.Stat.Version {
				r.Fatalf("%+v and %+v are not alike", before.Stat, after.Stat)
			}
		})
		r.want(tree, "/app=old /app/d=new /app/d/y=new")
	})
}

// CuratorCache says initialized also when reads have failed, and then misses these
// nodes for good. A cache here is Synced with all nodes, or is not Synced.
func TestSyncedIsComplete(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/app", "/app/a", "/app/b", "/app/b/c", "/app/d"} {
			r.create(path, "")
		}
		lost := r.Srv.DropBefore(zktest.Match{Path: "/app/b/c", Client: "cache", Times: 3})
		tree, err := cache.NewTree(r.c, "/app", cache.Text, opts...)
		r.Check(err)
		r.Check(tree.Start(r.Within(time.Minute)))
		defer tree.Close()
		if s := tree.Snapshot(); s.Len() != 5 || lost.Fired() != 3 {
			r.Errorf("synced with %s, after %d failed reads", text(s), lost.Fired())
		}
	})
}

// CURATOR-296: Curator's newer caches do not say when they have caught up.
func TestCaughtUpIsSaid(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		tree := r.tree("/app", opts...)
		h := r.hear(tree)
		r.away(tree, func() { r.create("/app/a", "") })
		r.away(tree, func() {})
		r.wantHeard(h, tree, "began, stale, created /app/a, synced, stale, synced")
	})
}

// CURATOR-540, CURATOR-182: PathChildrenCache tells again of children that it has told
// of. Here a reconnection and a new session tell of nothing that is known.
func TestNothingIsToldTwice(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/old", "")
		children, err := cache.NewChildren(r.c, "/app", cache.Text, opts...)
		r.Check(err)
		r.Check(children.Start(r.Within(time.Minute)))
		if s := children.Snapshot(); s.Len() != 2 {
			r.Errorf("Began has %s", text(s))
		}
		h := r.hear(children)
		r.Srv.Client("cache").Cut()
		time.Sleep(time.Minute)
		r.Srv.Client("cache").ExpireSession()
		time.Sleep(time.Minute)
		r.create("/app/new", "")
		_, err = children.Wait(r.Within(time.Minute), r.Srv.Zxid())
		r.Check(err)
		r.wantHeard(h, children, "began, stale, synced, stale, synced, created /app/new")
	})
}

// CuratorCache reads each node for itself, so it shows one write of a transaction and
// not yet the other. A snapshot has all writes of a transaction or none.
func TestTransactionIsWhole(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/app", "/app/a", "/app/b"} {
			r.create(path, "0")
		}
		tree := r.tree("/app", opts...)
		held := r.Srv.StallReply(zktest.Match{Path: "/app/b", Client: "cache"})
		h := r.hear(tree)
		for _, data := range []string{"1", "2"} {
			_, err := r.w.Multi(r.Ctx, client.SetOp("/app/a", []byte(data), client.AnyVersion), client.SetOp("/app/b", []byte(data), client.AnyVersion))
			r.Check(err)
			time.Sleep(time.Second)
		}
		if held.Fired() != 1 || text(tree.Snapshot()) != "/app=0 /app/a=0 /app/b=0" {
			r.Errorf("while an answer is late: %s", text(tree.Snapshot()))
		}
		held.Remove()
		r.want(tree, "/app=0 /app/a=2 /app/b=2")
		h.text(tree)
		for _, c := range h.changes {
			a, _ := c.Snapshot.Get("/app/a")
			if b, _ := c.Snapshot.Get("/app/b"); a.Value != b.Value {
				r.Errorf("%s shows half of a transaction: %s", c.Kind, text(c.Snapshot))
			}
		}
	})
}

// CuratorCache leaves out a node that it may not read, and all below, and never tries
// again. Here the node is an error that is seen, and comes once it may be read.
func TestUnreadableIsSeen(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		_, err := r.w.Create(r.Ctx, "/app/b", []byte("b"), client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		r.Check(err)
		r.create("/app/b/c", "c")
		tree := r.tree("/app", opts...)
		var refused *cache.UnreadableError
		if n, there := tree.Snapshot().Get("/app/b"); there && !errors.As(n.Err, &refused) {
			r.Errorf("a node that may not be read is %+v", n)
		}
		_, err = r.w.SetACL(r.Ctx, "/app/b", zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		time.Sleep(time.Minute)
		r.want(tree, "/app= /app/b=b /app/b/c=c")
	})
}

// With COMPRESSED_DATA CuratorCache leaves out a node whose data is damaged, and all
// below. Here the node is there with an error, and what is below it too.
func TestDamagedDataHidesNothing(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/app", "/app/b", "/app/b/c"} {
			r.create(path, "{}")
		}
		r.set("/app/b", "{")
		tree, err := cache.NewTree(r.c, "/app", cache.JSON[struct{}](), opts...)
		r.Check(err)
		r.Check(tree.Start(r.Within(time.Minute)))
		defer tree.Close()
		s := tree.Snapshot()
		var damaged *cache.UndecodableError
		if b, there := s.Get("/app/b"); !there || !errors.As(b.Err, &damaged) {
			r.Errorf("/app/b is %+v, %v", b, there)
		}
		if _, there := s.Get("/app/b/c"); !there {
			r.Error("what is below a damaged node is not there")
		}
	})
}

// CuratorCache forgets everything at its end (CURATOR-452: under the eyes of readers),
// and caches of Curator's have kept nodes alive after it (CURATOR-105, -447).
func TestSnapshotOutlivesClose(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "1")
		r.create("/app/a", "2")
		tree := r.tree("/app", opts...)
		tree.Close()
		r.wantNothingLeft()
		if got := text(tree.Snapshot()); got != "/app=1 /app/a=2" {
			r.Errorf("after Close the snapshot is %s", got)
		}
		if state := tree.State(); state.Phase != cache.Stale || !errors.Is(state.Err, cache.ErrClosed) {
			r.Errorf("after Close the state is %v", state)
		}
	})
}

// CURATOR-319: NodeCache makes the parents of its node, and PathChildrenCache its
// directory, again and again. A cache here writes nothing.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		value, err := cache.NewValue(r.c, "/p/q/value", cache.Text, opts...)
		r.Check(err)
		children, err := cache.NewChildren(r.c, "/p/r", cache.Text, opts...)
		r.Check(err)
		tree, err := cache.NewTree(r.c, "/p/s", cache.Text, opts...)
		r.Check(err)
		before := r.Srv.Zxid()
		for _, in := range []picture{value, children, tree} {
			r.Check(in.Start(r.Ctx))
			defer in.Close()
		}
		time.Sleep(time.Minute)
		if now := r.Srv.Zxid(); now != before {
			r.Errorf("%d transactions; there is %v", now-before, r.Srv.Children("/"))
		}
		for _, path := range []string{"/p", "/p/q", "/p/r"} {
			r.create(path, "")
		}
		r.create("/p/q/value", "v")
		r.remove("/p/q/value")
		r.remove("/p/q")
		r.remove("/p/r")
		before = r.Srv.Zxid()
		time.Sleep(time.Minute)
		if now := r.Srv.Zxid(); now != before {
			r.Errorf("%d transactions; there is %v", now-before, r.Srv.Children("/p"))
		}
	})
}

// GitHub issue 1302 of Curator: the iterator of TreeCache fails once a node has lost
// its last child.
func TestWalkAfterTheLastChild(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/app", "/app/a", "/app/a/b"} {
			r.create(path, "")
		}
		tree := r.tree("/app", opts...)
		r.remove("/app/a/b")
		r.want(tree, "/app= /app/a=")
		r.remove("/app/a")
		r.want(tree, "/app=")
		for name := range tree.Snapshot().Children("/app") {
			r.Errorf("a child %s", name)
		}
	})
}

// All listeners of Curator's caches share one thread of the client, so one that blocks
// keeps all others waiting. Here each reader has its own pace.
func TestSlowReaderDelaysNobody(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		slow, quick := r.tree("/app", opts...), r.tree("/app", opts...)
		begun, release := make(chan struct{}), make(chan struct{})
		go func() {
			for range slow.Changes(r.Ctx) {
				close(begun)
				<-release
				return
			}
		}()
		<-begun
		h := r.hear(quick)
		r.create("/app/a", "")
		r.want(quick, "/app= /app/a=")
		r.want(slow, "/app= /app/a=")
		r.wantHeard(h, quick, "began, created /app/a")
		close(release)
	})
}

// On a server without addWatch CuratorCache asks for its watch without a pause. A
// cache here asks once, and does without.
func TestNoAddWatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		tree := r.tree("/app")
		for range 3 {
			r.Srv.Client("cache").Cut()
			time.Sleep(time.Minute)
		}
		if n := r.Srv.Count(zktest.OpAddWatch); n > 1 {
			r.Errorf("%d times addWatch", n)
		}
		r.create("/app/a", "")
		r.want(tree, "/app= /app/a=")
	}, zktest.WithVersion(zktest.ZooKeeper35))
}

// ClickHouse Keeper's recursive watches name the path of the watch and not the node
// that has changed. CuratorCache then misses all changes below.
func TestEventsThatNameTheWatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		r.create("/app/a", "1")
		tree := r.tree("/app")
		r.set("/app/a", "2")
		r.create("/app/b", "3")
		r.want(tree, "/app= /app/a=2 /app/b=3")
	}, zktest.WithQuirks(zktest.QuirkEventOfWatch, zktest.QuirkKeeperNodes))
}

// A read that fails once has taken healthy nodes out of other caches (vitess 15632).
// Here the node stays, and the cache reads it again.
func TestOneFailedReadRemovesNothing(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "1")
		tree := r.tree("/app", opts...)
		h := r.hear(tree)
		failed := r.Srv.DropBefore(zktest.Match{Path: "/app/a", Client: "cache"})
		r.set("/app/a", "2")
		r.want(tree, "/app= /app/a=2")
		got := h.text(tree)
		if failed.Fired() != 1 || !strings.Contains(got, "updated /app/a") || strings.Contains(got, "deleted") || strings.Contains(got, "created") {
			r.Errorf("%d reads failed; heard %s", failed.Fired(), got)
		}
	})
}

// The tree cache of Prometheus has goroutines for each node. A cache here has one.
func TestOneGoroutine(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		for _, a := range []string{"/app/a", "/app/b", "/app/c", "/app/d", "/app/e"} {
			r.create(a, "")
			r.create(a+"/x", "")
		}
		tree := r.tree("/app", opts...)
		r.set("/app/c", "1")
		r.now(tree)
		if own := testrig.Goroutines(r.T, ourFrames); len(own) != 1 {
			r.Errorf("%d goroutines:\n%s", len(own), strings.Join(own, "\n\n"))
		}
	})
}
