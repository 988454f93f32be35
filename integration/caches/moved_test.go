package caches_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes/cache"
)

// TestOtherServers moves a client to another server while the first is killed, as if the ensemble
// was restored from a backup, or made anew. The transactions of the other server go on
// behind those that the caches have seen, or are fewer. Each cache has what that server has.
func TestOtherServers(t *testing.T) {
	for name, further := range map[string]bool{"restored": true, "made anew": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			first, other := harness.StartServer(ctx, t), harness.StartServer(ctx, t)
			old := connect(ctx, t, first.Addr())
			for _, c := range []*client.Client{old, connect(ctx, t, other.Addr())} { // what both have
				create(ctx, t, c, top, "")
				create(ctx, t, c, top+"/limit", "old")
			}
			create(ctx, t, old, top+"/late", "") // after the backup
			for i := range 100 {
				set(ctx, t, old, top+"/limit", strconv.Itoa(i))
			}
			var moved atomic.Bool
			c := connect(ctx, t, first.Addr(), client.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				if moved.Load() {
					addr = other.Addr()
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}))
			var trees []*cache.Tree[string]
			for _, opts := range [][]cache.Option{nil, {cache.WithOneShotWatches()}} {
				tree, err := cache.NewTree(c, top, cache.Text, opts...)
				if err == nil {
					err = tree.Start(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer tree.Close()
				trees = append(trees, tree)
			}
			now := connect(ctx, t, other.Addr())
			create(ctx, t, now, top+"/flag", "on") // since the restore
			stat := set(ctx, t, now, "/", "")
			for seen := trees[0].Snapshot().Zxid(); further && stat.Mzxid <= seen; {
				stat = set(ctx, t, now, "/", "")
			}
			moved.Store(true)
			if err := first.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			stat = set(ctx, t, now, top, "moved")
			want := fmt.Sprintf("%s=moved %s/flag=on %s/limit=old", top, top, top)
			for i, tree := range trees {
				for text(tree) != want || !tree.Synced() {
					if ctx.Err() != nil {
						t.Fatalf("cache %d: %s, %v", i, text(tree), tree.State())
					}
					time.Sleep(10 * time.Millisecond)
				}
				if n, _ := tree.Snapshot().Get(top); n.Mzxid != stat.Mzxid {
					t.Errorf("cache %d has the change %d, and the server %d", i, n.Mzxid, stat.Mzxid)
				}
			}
		})
	}
}

// text is the snapshot of a tree.
func text(tree *cache.Tree[string]) string {
	var all []string
	for path, n := range tree.Snapshot().All() {
		all = append(all, path+"="+n.Value)
	}
	return strings.Join(all, " ")
}

func create(ctx context.Context, t *testing.T, c *client.Client, path, data string) {
	t.Helper()
	if _, err := c.Create(ctx, path, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func set(ctx context.Context, t *testing.T, c *client.Client, path, data string) *zk.Stat {
	t.Helper()
	stat, err := c.Set(ctx, path, []byte(data), client.AnyVersion)
	if err != nil {
		t.Fatal(err)
	}
	return stat
}
