package cache_test

import (
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// CuratorCache compares the version alone. If a node is deleted and made again with
// the same version, while the connection is lost, CuratorCache stores it and does not
// report it. One child in place of another leaves cversion+2. With an equal cversion
// it is missed for ever there.
func TestRecreatedWhileAway(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "old")
		tree := r.tree("/app", opts...)
		link := r.Srv.Client("cache")
		link.Refuse()
		link.Cut()
		time.Sleep(time.Second)
		if state := tree.State(); state.Phase != cache.Stale {
			r.Errorf("without a connection the state is %v", state)
		}
		r.remove("/app/a")
		r.create("/app/a", "new")
		r.create("/app/b", "b")
		link.Accept()
		var kinds []cache.Kind
		for change, err := range tree.Changes(r.Within(time.Minute)) {
			r.Check(err)
			if kinds = append(kinds, change.Kind); change.Kind == cache.BecameSynced {
				break
			}
		}
		r.want(tree, "/app= /app/a=new /app/b=b")
		if len(kinds) != 4 || kinds[1] != cache.Recreated || kinds[2] != cache.Created {
			r.Errorf("changes %v", kinds)
		}
	})
}

// A reconnection reads each node once, and tells of nothing that has not changed.
func TestReconnectReadsOnce(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			r.create("/app/"+name, name)
		}
		tree := r.tree("/app", opts...)
		before, _ := tree.Snapshot().Get("/app/a")
		h := r.hear(tree)
		r.Srv.ResetCounts()
		r.Srv.Client("cache").Cut()
		time.Sleep(5 * time.Second)
		if !tree.Synced() {
			r.Errorf("state %v", tree.State())
		}
		if n := r.Srv.Count(zktest.OpGetData) + r.Srv.Count(zktest.OpGetChildren2); n != 0 && n != 7+7 {
			r.Errorf("%d reads and lists after a reconnection without changes", n)
		}
		if n := r.Srv.Count(zktest.OpMultiRead); n > 3 { // the root, its names, the others
			r.Errorf("%d rounds after a reconnection without changes", n)
		}
		if after, _ := tree.Snapshot().Get("/app/a"); before != after {
			r.Errorf("%+v became %+v", before, after)
		}
		r.Srv.ResetCounts()
		r.set("/app/c", "C")
		time.Sleep(time.Second)
		if n := r.counted(); n != 2 { // one of the writer
			r.Errorf("%d requests for one change: %v", n, r.Srv.Counts())
		}
		r.want(tree, "/app= /app/a=a /app/b=b /app/c=C /app/d=d /app/e=e /app/f=f")
		r.wantHeard(h, tree, "began, stale, synced, updated /app/c")
	})
}

// A tree that is too large is a state, and the last snapshot stays.
func TestLimit(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "a")
		tree := r.tree("/app", append(opts, cache.WithLimits(cache.Limits{Nodes: 3}))...)
		r.create("/app/b", "b")
		r.want(tree, "/app= /app/a=a /app/b=b")
		r.create("/app/c", "c")
		time.Sleep(time.Second)
		var limit *cache.LimitError
		if state := tree.State(); state.Phase != cache.Stale || !errors.As(state.Err, &limit) || !errors.Is(state.Err, cache.ErrLimit) || limit.What != "nodes" {
			r.Errorf("state %v", state)
		}
		if got := text(tree.Snapshot()); got != "/app= /app/a=a /app/b=b" {
			r.Errorf("snapshot %s", got)
		}
		r.remove("/app/b")
		time.Sleep(time.Minute)
		r.want(tree, "/app= /app/a=a /app/c=c")
		tree.Close()
		r.wantNothingLeft()
	})
}

// A value that cannot be decoded is a change of its own, and the last good one stays.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/n", "1")
		value, err := cache.NewValue(r.c, "/n", cache.JSON[int]())
		r.Check(err)
		r.Check(value.Start(r.Within(time.Minute)))
		r.set("/n", "x")
		_, err = value.Wait(r.Within(time.Minute), r.Srv.Zxid())
		r.Check(err)
		n, there := value.Get()
		var bad *cache.UndecodableError
		if !there || n.Value != 1 || !errors.As(n.Err, &bad) || bad.Mzxid != n.Mzxid {
			r.Errorf("%+v, %v", n, there)
		}
		r.set("/n", "2")
		_, err = value.Wait(r.Within(time.Minute), r.Srv.Zxid())
		r.Check(err)
		if n, _ := value.Get(); n.Value != 2 || n.Err != nil {
			r.Errorf("%+v", n)
		}
		value.Close()
		_, err = value.WaitSynced(r.Ctx)
		if !errors.Is(err, client.ErrClosed) || !errors.Is(err, cache.ErrClosed) {
			r.Errorf("after Close: %v", err)
		}
		r.wantNothingLeft()
	})
}
