package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// news is what an observer was told.
type news struct {
	mu      sync.Mutex // guards started and told
	started []client.CacheInfo
	told    []client.CacheUpdate
	block   chan struct{} // if not nil, the hook waits for its end
}

func (n *news) observer() client.Observer {
	return client.Observer{Cache: func(i client.CacheInfo) func(client.CacheUpdate) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.started = append(n.started, i)
		return func(u client.CacheUpdate) {
			if n.block != nil {
				<-n.block
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			n.told = append(n.told, u)
		}
	}}
}

// line is an update without its times.
func line(u client.CacheUpdate) string {
	s := fmt.Sprintf("%v %d nodes", u.State, u.Nodes)
	if u.Snapshots > 0 {
		s += fmt.Sprintf(" %v %d", u.Cause, u.Snapshots)
	}
	for what, n := range map[string]int64{" resyncs": u.Resyncs, " gaps": u.Gaps, " limits": u.Limits} {
		if n > 0 {
			s += what + " " + strconv.FormatInt(n, 10)
		}
	}
	return s
}

func (r *rig) wantNews(n *news, want ...string) {
	r.Helper()
	synctest.Wait()
	got := make([]string, 0, len(n.told))
	for _, u := range n.told {
		got = append(got, line(u))
	}
	if got = slices.Compact(got); !slices.Equal(got, want) { // the reason may be another one
		r.Fatalf("the observer was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An observer hears of each snapshot, why it came and how long the change has waited for it.
func TestObserver(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		var n news
		r.create("/app", "")
		tree := r.start(r.Connect("seen", client.WithObserver(n.observer())), "/app", opts...)
		const trip = 70 * time.Millisecond
		r.Srv.Delay(zktest.Match{Path: "/app", Client: "seen", Times: 1}, trip)
		r.Check(r.Srv.SetData("/app", []byte("new")))
		_, err := tree.Wait(r.Within(time.Minute), r.Srv.Zxid())
		r.Check(err)
		r.Srv.Client("seen").Cut()
		time.Sleep(5 * time.Second)
		tree.Close()
		r.wantNews(&n, "syncing 0 nodes", "synced 1 nodes started 1", "synced 1 nodes changed 1",
			"stale 1 nodes", "synced 1 nodes resync 1 resyncs 1", "ended 1 nodes")
		if want := (client.CacheInfo{Recipe: "Tree", Path: "/app"}); len(n.started) != 1 || n.started[0] != want {
			r.Errorf("%v, want %v", n.started, want)
		}
		for _, u := range n.told {
			switch {
			case u.Snapshots > 0 && u.Cause == client.CacheChanged && (u.Delay < trip || u.Delay > 2*trip):
				r.Errorf("a change has waited for %v, want %v", u.Delay, trip)
			case u.State == client.CacheStale && u.Err == nil, u.State == client.CacheEnded && !errors.Is(u.Err, cache.ErrClosed):
				r.Errorf("%v as %v", u.State, u.Err)
			}
		}
	})
}

// A hook that blocks holds up neither the cache nor its Close, and misses no snapshot.
func TestObserverThatBlocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := news{block: make(chan struct{})}
		r.create("/app", "")
		tree := r.start(r.Connect("seen", client.WithObserver(n.observer())), "/app")
		for i := range 5 {
			r.set("/app", strconv.Itoa(i))
			_, err := tree.Wait(r.Within(time.Second), r.Srv.Zxid())
			r.Check(err)
		}
		tree.Close()
		close(n.block)
		r.wantNews(&n, "syncing 0 nodes", "ended 1 nodes changed 6")
	})
}

// A Start that fails ends what the observer hears. The next one is another cache to it.
func TestObserverOfFailedStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var n news
		r.create("/app", "")
		r.create("/app/a", "")
		c := r.Connect("seen", client.WithObserver(n.observer()))
		tree, err := cache.NewTree(c, "/app", cache.Text, cache.WithLimits(cache.Limits{Nodes: 1}))
		r.Check(err)
		if err := tree.Start(r.Within(time.Minute)); !errors.Is(err, cache.ErrLimit) {
			r.Errorf("%v", err)
		}
		r.wantNews(&n, "syncing 0 nodes", "ended 0 nodes limits 1")
		if err := n.told[len(n.told)-1].Err; !errors.Is(err, cache.ErrLimit) {
			r.Errorf("the start has ended by %v", err)
		}
		n.told = nil
		r.Check(r.Srv.Delete("/app/a"))
		r.Check(tree.Start(r.Within(time.Minute)))
		r.create("/app/a", "")
		time.Sleep(time.Second)
		tree.Close()
		r.wantNews(&n, "syncing 0 nodes", "synced 1 nodes started 1", "stale 1 nodes limits 1", "ended 1 nodes")
		if len(n.started) != 2 {
			r.Errorf("%v", n.started)
		}
	})
}

// A hook that still blocks when the next Start has succeeded is told of its own start alone.
func TestObserverBlocksAcrossStarts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := news{block: make(chan struct{})}
		r.create("/app", "")
		r.create("/app/a", "")
		tree, err := cache.NewTree(r.Connect("seen", client.WithObserver(n.observer())), "/app", cache.Text, cache.WithLimits(cache.Limits{Nodes: 1}))
		r.Check(err)
		if err := tree.Start(r.Within(time.Minute)); !errors.Is(err, cache.ErrLimit) {
			r.Errorf("%v", err)
		}
		synctest.Wait()
		r.Check(r.Srv.Delete("/app/a"))
		r.Check(tree.Start(r.Within(time.Minute)))
		r.set("/app", "new")
		_, err = tree.Wait(r.Within(time.Minute), r.Srv.Zxid())
		r.Check(err)
		tree.Close()
		close(n.block)
		synctest.Wait()
		var snapshots int64
		ended := 0
		for _, u := range n.told {
			snapshots += u.Snapshots
			if u.State == client.CacheEnded {
				ended++
			}
		}
		if snapshots != 2 || ended != 2 || len(n.told) != 4 {
			r.Errorf("%d snapshots and %d ends in %v", snapshots, ended, n.told)
		}
	})
}

// observed plays with a tree of a client that is observed, and returns the sum of what was told.
func (r *rig) observed(play func(c *client.Client) *cache.Tree[string]) (sum client.CacheUpdate, longest time.Duration) {
	r.Helper()
	var n news
	play(r.Connect("seen", client.WithObserver(n.observer()), client.WithMaxReply(4096))).Close()
	synctest.Wait()
	for _, u := range n.told {
		sum.Snapshots, sum.Resyncs, sum.Gaps, sum.Limits = sum.Snapshots+u.Snapshots, sum.Resyncs+u.Resyncs, sum.Gaps+u.Gaps, sum.Limits+u.Limits
		if u.Snapshots > 0 {
			longest = max(longest, u.Delay)
		}
	}
	return sum, longest
}

// Of a first snapshot and of a resync the delay is that of the reading. Outages and pauses do not
// count.
func TestObservedDelayOfReading(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(r *rig, c *client.Client, opts []cache.Option) *cache.Tree[string]{
		"pause after a limit": func(r *rig, c *client.Client, opts []cache.Option) *cache.Tree[string] {
			tree := r.start(c, "/app", append(opts, cache.WithLimits(cache.Limits{Nodes: 1}))...)
			r.create("/app/a", "")
			time.Sleep(5 * time.Minute)
			r.Check(r.Srv.Delete("/app/a"))
			time.Sleep(11 * time.Minute)
			return tree
		},
		"outage": func(r *rig, c *client.Client, opts []cache.Option) *cache.Tree[string] {
			tree := r.start(c, "/app", opts...)
			r.Srv.StallReply(zktest.Match{Path: "/app", Client: "seen", Times: 1})
			r.set("/app", "new")
			time.Sleep(100 * time.Millisecond)
			r.Srv.Refuse()
			r.Srv.Client("seen").Cut()
			time.Sleep(5 * time.Minute)
			r.Srv.Accept()
			time.Sleep(time.Minute)
			return tree
		},
		"lazy start over a limit": func(r *rig, c *client.Client, opts []cache.Option) *cache.Tree[string] {
			r.create("/app/a", "")
			tree := r.start(c, "/app", append(opts, cache.WithLazyStart(), cache.WithLimits(cache.Limits{Nodes: 1}))...)
			time.Sleep(time.Second)
			r.Check(r.Srv.Delete("/app/a"))
			time.Sleep(time.Minute)
			return tree
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyWatch(t, func(r *rig, opts ...cache.Option) {
				r.create("/app", "")
				sum, longest := r.observed(func(c *client.Client) *cache.Tree[string] { return play(r, c, opts) })
				if sum.Snapshots == 0 || longest > time.Second {
					r.Errorf("%+v, delayed by %v", sum, longest)
				}
			})
		})
	}
}

// A node that may not be read makes one snapshot, however often the cache looks again.
func TestObservedUnreadable(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		_, err := r.w.Create(r.Ctx, "/app/secret", nil, client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		r.Check(err)
		sum, _ := r.observed(func(c *client.Client) *cache.Tree[string] {
			tree := r.start(c, "/app", opts...)
			time.Sleep(5 * time.Minute)
			return tree
		})
		if sum.Snapshots != 1 {
			r.Errorf("%+v", sum)
		}
	})
}

// A list that stays too long is one limit, whatever faults come in between.
func TestObservedLongList(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		sum, _ := r.observed(func(c *client.Client) *cache.Tree[string] {
			tree := r.start(c, "/app", opts...)
			for i := range 60 {
				r.create(fmt.Sprintf("/app/%0100d", i), "")
			}
			for range 10 {
				time.Sleep(3 * time.Minute)
				r.Srv.Client("seen").Cut()
			}
			r.Srv.Fail(zktest.Match{Op: zktest.OpSync, Client: "seen", Times: 3}, zktest.CodeThrottledOp)
			time.Sleep(15 * time.Minute)
			return tree
		})
		if sum.Limits != 1 {
			r.Errorf("%+v", sum)
		}
	})
}
