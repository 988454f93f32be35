package cache_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// A node that may not be read is read again every half minute. The cache stays synced.
func TestRetryKeepsSynced(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		_, err := r.w.Create(r.Ctx, "/app/secret", []byte("s"), client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		r.Check(err)
		tree := r.tree("/app", opts...)
		h := r.hear(tree)
		time.Sleep(100 * time.Second)
		r.wantHeard(h, tree, "began")
	})
}

// Known nodes have grown, so that one request cannot read them all. The cache reads them by
// several.
func TestGrownTogether(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		var ops []client.Op
		for i := range 10 {
			r.create("/app/n"+strconv.Itoa(i), "x")
			ops = append(ops, client.SetOp("/app/n"+strconv.Itoa(i), []byte(strings.Repeat("y", 1000)), client.AnyVersion))
		}
		small := r.Connect("small", client.WithMaxReply(4096))
		tree := r.start(small, "/app", opts...)
		r.Srv.ResetCounts()
		_, err := r.w.Multi(r.Ctx, ops...)
		r.Check(err)
		time.Sleep(10 * time.Second)
		if n, _ := tree.Snapshot().Get("/app/n0"); len(n.Value) != 1000 || !tree.Synced() {
			r.Errorf("%d bytes, %v; %v", len(n.Value), tree.State(), r.Srv.Counts())
		}
	})
}

// New servers count from 0, so two nodes may have one zxid. The cache tells them apart.
func TestOneZxidOfTwoServers(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		c, other, move := r.another()
		r.Check(r.Srv.Create("/app", []byte("old")))
		at := r.Srv.Zxid()
		time.Sleep(time.Second)
		for other.Zxid() < at-1 {
			r.Check(other.SetData("/", nil))
		}
		r.Check(other.Create("/app", []byte("new")))
		a, _ := r.Srv.Node("/app")
		b, _ := other.Node("/app")
		if a.Stat.Mzxid != b.Stat.Mzxid {
			r.Fatalf("nothing is tested: %+v %+v", a, b)
		}
		for range 20 {
			r.Check(r.Srv.SetData("/", nil))
		}
		tree := r.start(c, "/app", opts...)
		move()
		time.Sleep(4 * testrig.SessionTimeout)
		if got := text(tree.Snapshot()); got != "/app=new" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
	})
}

// The nodes below a node that was deleted and made again count no more.
func TestBytesOfRecreated(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/else", "")
		r.create("/app/d", "")
		data := []byte(strings.Repeat("x", 1000))
		r.Check(r.Srv.Create("/app/d/n", data))
		tree := r.tree("/app", append(opts, cache.WithLimits(cache.Limits{Bytes: 3500}))...)
		for i := range 10 {
			r.Srv.Delay(zktest.Match{Path: "/app/else", Client: "cache", Times: 1}, 200*time.Millisecond)
			r.Check(r.Srv.SetData("/app/else", nil))
			time.Sleep(100 * time.Millisecond) // the events come together, in a round
			r.Check(r.Srv.Delete("/app/d/n"))
			r.Check(r.Srv.Delete("/app/d"))
			r.Check(r.Srv.Create("/app/d", nil))
			time.Sleep(time.Second)
			r.Check(r.Srv.Create("/app/d/n", data))
			time.Sleep(time.Second)
			if !tree.Synced() {
				r.Fatalf("after %d: %v, %d nodes", i, tree.State(), tree.Snapshot().Len())
			}
		}
	})
}

// The limit of levels is that of every node, and not of the last one.
func TestDepthLimit(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		tree := r.tree("/app", append(opts, cache.WithLimits(cache.Limits{Depth: 2}))...)
		_, err := r.w.Multi(r.Ctx, client.CreateOp("/app/a", nil), client.CreateOp("/app/a/b", nil), client.CreateOp("/app/a/b/c", nil), client.CreateOp("/app/a/b/c/d", nil))
		r.Check(err)
		time.Sleep(time.Second)
		if state := tree.State(); !errors.Is(state.Err, cache.ErrLimit) {
			r.Errorf("%v, %s", state, text(tree.Snapshot()))
		}
	})
}

// The right to read a directory is taken and given again. With one-shot watches nobody tells a
// cache of that.
func TestListRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		r.create("/app/d", "")
		tree := r.tree("/app")
		_, err := r.w.SetACL(r.Ctx, "/app/d", zk.WorldACL(zk.PermAll&^zk.PermRead), client.AnyVersion)
		r.Check(err)
		r.create("/app/d/one", "1")
		time.Sleep(time.Second)
		_, err = r.w.SetACL(r.Ctx, "/app/d", zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		time.Sleep(100 * time.Second)
		r.create("/app/d/two", "2")
		time.Sleep(100 * time.Second)
		if got := text(tree.Snapshot()); got != "/app= /app/d= /app/d/one=1 /app/d/two=2" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
	})
}

// A list that is refused once is read again.
func TestListRefusedOnce(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/d", "")
		r.create("/app/d/one", "1")
		rule := r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Path: "/app/d", Client: "cache", Times: 1}, -102)
		tree := r.tree("/app", opts...)
		_ = rule
		time.Sleep(100 * time.Second)
		if got := text(tree.Snapshot()); got != "/app= /app/d= /app/d/one=1" || !tree.Synced() {
			r.Errorf("%s, %v, fired %d", got, tree.State(), rule.Fired())
		}
	})
}

// A node that is too large to be read was deleted and made again, with other children.
func TestTooLargeRecreated(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		big := strings.Repeat("x", 10_000)
		r.create("/app/big", big)
		r.create("/app/big/a", "a")
		small := r.Connect("small", client.WithMaxReply(4096))
		tree := r.start(small, "/app", opts...)
		_, err := r.w.Multi(r.Ctx, client.DeleteOp("/app/big/a", -1), client.DeleteOp("/app/big", -1), client.CreateOp("/app/big", []byte(big)), client.CreateOp("/app/big/b", []byte("b")))
		r.Check(err)
		time.Sleep(100 * time.Second)
		r.create("/app/big/c", "c")
		time.Sleep(100 * time.Second)
		if got := text(tree.Snapshot()); got != "/app= /app/big= /app/big/b=b /app/big/c=c" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
	})
}

// The same, where the events come together.
func TestTooLargeRecreatedTogether(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/else", "")
		big := []byte(strings.Repeat("x", 10_000))
		r.Check(r.Srv.Create("/app/big", big))
		small := r.Connect("small", client.WithMaxReply(4096))
		tree := r.start(small, "/app", opts...)
		r.Srv.Delay(zktest.Match{Path: "/app/else", Client: "cache", Times: 1}, 200*time.Millisecond)
		r.Check(r.Srv.SetData("/app/else", nil))
		time.Sleep(100 * time.Millisecond)
		r.Check(r.Srv.Delete("/app/big"))
		r.Check(r.Srv.Create("/app/big", big))
		r.Check(r.Srv.Create("/app/big/b", []byte("b")))
		time.Sleep(100 * time.Second)
		r.create("/app/big/c", "c")
		time.Sleep(100 * time.Second)
		if got := text(tree.Snapshot()); got != "/app= /app/big= /app/big/b=b /app/big/c=c /app/else=" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
	})
}

// A cache without a connection says so, and how it was lost.
func TestStaleWithoutConnection(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		fresh, err := cache.NewValue(r.c, "/app", cache.Text, opts...)
		r.Check(err)
		if err := fresh.State().Err; err == nil || err.Error() != "cache: it is not started; call Start" {
			r.Errorf("%v", fresh.State())
		}
		tree := r.start(r.c, "/app", opts...)
		r.Srv.Refuse()
		r.Srv.CutAll()
		time.Sleep(100 * time.Millisecond)
		for range 3 { // before the session has ended, and after that
			if err := tree.State().Err; !errors.Is(err, client.ErrNotConnected) || !strings.Contains(err.Error(), "client: not connected: ") {
				r.Errorf("%v", tree.State())
			}
			time.Sleep(testrig.SessionTimeout)
		}
		_, err = tree.WaitSynced(r.Within(time.Second))
		if err == nil || !strings.Contains(err.Error(), "client: not connected: ") {
			r.Errorf("%v", err)
		}
		r.Srv.Accept()
		_, err = tree.WaitSynced(r.Within(time.Minute))
		r.Check(err)
	})
}

// A directory grows until no answer can hold its list. A cache that needs the list is stale, and says which limit
// is to be raised. When the directory has shrunk, the cache follows it again.
func TestListTooLong(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		small := r.Connect("small", client.WithMaxReply(4096))
		tree := r.start(small, "/app", opts...)
		name := func(i int) string { return fmt.Sprintf("/app/%080d", i) }
		for i := range 100 {
			r.create(name(i), "")
		}
		r.Srv.CutAll() // with a persistent watch, nobody needs the list before
		time.Sleep(10 * time.Second)
		const want = "the list of its children is larger than client.WithMaxReply allows"
		if err := tree.State().Err; err == nil || !strings.Contains(err.Error(), want) || tree.Synced() {
			r.Errorf("%v", tree.State())
		}
		for i := range 100 {
			r.Check(r.Srv.Delete(name(i)))
		}
		time.Sleep(time.Hour)
		if got := text(tree.Snapshot()); got != "/app=" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
	})
}

// The rights are taken between the reading of the data and that of the list.
func TestRightsTakenBetween(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/d", "")
		r.create("/app/d/one", "1")
		seen := 0
		tree, err := cache.NewTree(r.c, "/app", cache.Text, append(opts, cache.WithLazyStart())...)
		r.Check(err)
		for _, op := range []zktest.Op{zktest.OpMultiRead, zktest.OpGetChildren2} {
			r.Srv.Delay(zktest.Match{Op: op, Client: "cache", Path: "/app/d", Times: 2}, time.Second)
		}
		r.Check(tree.Start(r.Ctx))
		time.Sleep(1200 * time.Millisecond)
		_, err = r.w.SetACL(r.Ctx, "/app/d", zk.WorldACL(zk.PermAll&^zk.PermRead), client.AnyVersion)
		r.Check(err)
		time.Sleep(5 * time.Second)
		r.Log(tree.State(), text(tree.Snapshot()), seen)
		_, err = r.w.SetACL(r.Ctx, "/app/d", zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		time.Sleep(100 * time.Second)
		if got := text(tree.Snapshot()); got != "/app= /app/d= /app/d/one=1" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
		tree.Close()
	})
}

// A slow round makes the cache stale. It is synced again with the next snapshot, and not
// before.
func TestLateUntilASnapshot(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "")
		r.create("/app/b", "")
		tree := r.tree("/app", opts...)
		h := r.hear(tree)
		r.Srv.Delay(zktest.Match{Path: "/app/a", Client: "cache", Times: 1}, 3*time.Second)
		r.Srv.Delay(zktest.Match{Path: "/app/b", Client: "cache", Times: 1}, 3*time.Second)
		r.Check(r.Srv.SetData("/app/a", []byte("1")))
		time.Sleep(time.Second / 2)
		r.Check(r.Srv.SetData("/app/b", []byte("1")))
		time.Sleep(20 * time.Second)
		r.wantHeard(h, tree, "began, stale, updated /app/a, updated /app/b, synced")
	})
}

// A change comes while the answer to a sync is late. The cache does not say synced for longer
// than otherwise.
func TestSlowSync(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "")
		tree := r.tree("/app", opts...)
		r.Srv.Delay(zktest.Match{Op: zktest.OpSync, Client: "cache", Times: 1}, 5*time.Second)
		go func() { _, _ = tree.Wait(r.Ctx, r.Srv.Zxid()+1) }()
		time.Sleep(100 * time.Millisecond)
		r.Check(r.Srv.SetData("/app/a", []byte("1")))
		time.Sleep(2 * time.Second)
		if tree.Synced() {
			r.Errorf("%v, %s", tree.State(), text(tree.Snapshot()))
		}
		time.Sleep(20 * time.Second)
		r.want(tree, "/app= /app/a=1")
	})
}

// A node that may not be read turns out to be too large. Its children are read.
func TestRefusedThenTooLarge(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		_, err := r.w.Create(r.Ctx, "/app/big", []byte(strings.Repeat("x", 10_000)), client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		r.Check(err)
		r.create("/app/big/b", "b")
		small := r.Connect("small", client.WithMaxReply(4096))
		tree := r.start(small, "/app", opts...)
		_, err = r.w.SetACL(r.Ctx, "/app/big", zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		time.Sleep(100 * time.Second)
		n, _ := tree.Snapshot().Get("/app/big")
		if got := text(tree.Snapshot()); got != "/app= /app/big= /app/big/b=b" || !tree.Synced() || !errors.Is(n.Err, client.ErrReplyTooLarge) {
			r.Errorf("%s, %v, %v", got, tree.State(), n.Err)
		}
	})
}

// A change that comes just before a sync has been late for a second does not make the cache stale
// at once.
func TestChangeBeforeALateSync(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		tree := r.tree("/app", opts...)
		h := r.hear(tree)
		r.Srv.Delay(zktest.Match{Op: zktest.OpSync, Client: "cache", Times: 1}, 1200*time.Millisecond)
		go func() { _, _ = tree.Wait(r.Ctx, r.Srv.Zxid()+1) }()
		time.Sleep(950 * time.Millisecond)
		r.Check(r.Srv.SetData("/app", []byte("1")))
		time.Sleep(10 * time.Second)
		r.wantHeard(h, tree, "began, updated /app")
	})
}

// The same with the options that clients have by default, and after a short freeze.
func TestGrownTogetherByDefault(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.Check(r.Srv.Create("/app", nil))
		for i := range 600 {
			r.Check(r.Srv.Create("/app/n"+strconv.Itoa(i), nil))
		}
		tree := r.tree("/app", opts...)
		link := r.Srv.Client("cache")
		r.Srv.ResetCounts()
		link.Freeze()
		for i := range 600 {
			r.Check(r.Srv.SetData("/app/n"+strconv.Itoa(i), []byte(strings.Repeat("y", 10_000))))
		}
		time.Sleep(time.Second)
		link.Thaw()
		time.Sleep(10 * time.Second)
		if n, _ := tree.Snapshot().Get("/app/n0"); len(n.Value) != 10_000 || !tree.Synced() {
			r.Errorf("%d bytes, %v; %v", len(n.Value), tree.State(), r.Srv.Counts())
		}
	})
}

// The error of a state names a few of the nodes that cannot be read.
func TestErrorIsShort(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.Check(r.Srv.Create("/app", nil))
		for i := range 2000 {
			r.Check(r.Srv.Create("/app/n"+strconv.Itoa(i), nil))
		}
		tree := r.tree("/app", opts...)
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Client: "cache", Times: zktest.Always}, -127)
		link := r.Srv.Client("cache")
		link.Freeze()
		for i := range 2000 {
			r.Check(r.Srv.SetData("/app/n"+strconv.Itoa(i), []byte("y")))
		}
		time.Sleep(time.Second)
		link.Thaw()
		time.Sleep(5 * time.Second)
		if state := tree.State(); state.Err != nil && len(state.Err.Error()) > 2000 {
			r.Errorf("%d bytes", len(state.Err.Error()))
		}
		r.Srv.ClearRules()
	})
}
