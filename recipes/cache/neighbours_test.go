package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// neighbours are users of the same client that come and go: caches, and watches of the
// program itself, all on the same few paths.
type neighbours struct {
	*rig
	*rand.Rand
	paths []string
	trees map[*cache.Tree[string]]string
	stops []func()
}

func (n *neighbours) path() string { return n.paths[n.IntN(len(n.paths))] }

func (n *neighbours) do(step int) {
	ctx, cancel := context.WithTimeout(n.Ctx, 10*time.Second)
	defer cancel()
	path := n.path()
	switch n.IntN(12) {
	case 0, 1:
		opts := []cache.Option{cache.WithLazyStart()}
		if n.IntN(2) == 0 {
			opts = append(opts, cache.WithOneShotWatches())
		}
		tree, err := cache.NewTree(n.c, path, cache.Text, opts...)
		n.Check(err)
		n.Check(tree.Start(n.Ctx))
		n.trees[tree] = path
	case 2:
		for tree := range n.trees {
			tree.Close()
			delete(n.trees, tree)
			break
		}
	case 3:
		if _, _, w, err := n.c.GetW(ctx, path); err == nil {
			n.stops = append(n.stops, w.Stop)
		}
	case 4:
		if _, _, w, err := n.c.ChildrenW(ctx, path); err == nil {
			n.stops = append(n.stops, w.Stop)
		}
	case 5:
		var opts []client.WatchOption
		if n.IntN(2) == 0 {
			opts = append(opts, client.Recursive())
		}
		if w, err := n.c.Watch(ctx, path, opts...); err == nil {
			n.stops = append(n.stops, w.Close)
		}
	case 6:
		if len(n.stops) > 0 {
			i := n.IntN(len(n.stops))
			n.stops[i]()
			n.stops = append(n.stops[:i], n.stops[i+1:]...)
		}
	case 7:
		_ = n.w.DeleteAll(ctx, path)
	case 8:
		if n.IntN(4) == 0 {
			n.Srv.Client("cache").Cut()
		}
	case 9:
		_, _ = n.w.Set(ctx, path, []byte(fmt.Sprint(step)), client.AnyVersion)
	default:
		_, _ = n.w.Create(ctx, path, []byte(fmt.Sprint(step)), client.WithParents())
	}
}

// there is what the server has at path and below.
func (n *neighbours) there(path string) string {
	var all []string
	for _, node := range n.Srv.Tree() {
		if node.Path == path || strings.HasPrefix(node.Path, path+"/") {
			all = append(all, node.Path+"="+string(node.Data))
		}
	}
	return strings.Join(all, " ")
}

// Caches miss nothing, and leave no watch, whatever else uses the same paths of the
// same client.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		versions := []zktest.Version{zktest.ZooKeeper39, zktest.ZooKeeper380, zktest.ZooKeeper35}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				n := &neighbours{
					rig: r, Rand: rand.New(rand.NewPCG(seed, 1)), trees: map[*cache.Tree[string]]string{},
					paths: []string{"/a", "/a/b", "/a/b/c", "/a/d", "/a/b/e"},
				}
				for round := range 6 {
					for step := range 60 {
						n.do(1000*round + step)
						time.Sleep(time.Duration(n.IntN(40)) * time.Millisecond * time.Duration(n.IntN(40)))
					}
					time.Sleep(30 * time.Second)
					for tree, path := range n.trees {
						if got, want := text(tree.Snapshot()), n.there(path); got != want || !tree.Synced() {
							r.Errorf("round %d: %s is %v and has\n%s\nwant\n%s", round, path, tree.State(), got, want)
						}
					}
				}
				for tree := range n.trees {
					tree.Close()
				}
				for _, stop := range n.stops {
					stop()
				}
				time.Sleep(10 * time.Second)
				r.wantNothingLeft()
			}, zktest.WithVersion(versions[seed%3]), zktest.WithSeed(seed))
		})
	}
}
