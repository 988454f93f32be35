package cache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// marked returns a level whose codec takes what begins with a mark, and puts the mark into
// its values. So data of another level shows.
func marked(p cache.Pattern, mark string) *cache.Level[string] {
	return cache.NewLevel(p, func(data []byte) (string, error) {
		if !strings.HasPrefix(string(data), mark) {
			return "garbage", errors.New("no mark " + mark)
		}
		return "decoded " + string(data), nil
	})
}

// The levels of the property test, with what a test without patterns says of their paths.
var markedLevels = []struct {
	*cache.Level[string]

	mark   string
	expect *regexp.Regexp
}{
	{marked("/apps/{app}/config", "c"), "c", regexp.MustCompile(`^/apps/([^/]+)/config$`)},
	{marked("/apps/{app}/instances/{id}", "i"), "i", regexp.MustCompile(`^/apps/([^/]+)/instances/([^/]+)$`)},
	{marked("/apps/{app}/instances/{id}/lease", "l"), "l", regexp.MustCompile(`^/apps/([^/]+)/instances/([^/]+)/lease$`)},
	{marked("/apps/{app}", "a"), "a", regexp.MustCompile(`^/apps/([^/]+)$`)},
}

// markedOrAbove matches the paths of nodes that a level matches, and of nodes above.
var markedOrAbove = regexp.MustCompile(`^/apps(/[^/]+(/config|/instances(/[^/]+(/lease)?)?)?)?$`)

// typedNode is what one look at a node of a level shows.
type typedNode struct {
	level        int
	value        string
	bad          bool
	czxid, mzxid int64
}

func typedNodeOf(level int, n cache.Node[string]) typedNode {
	return typedNode{level, n.Value, n.Err != nil, n.Czxid, n.Mzxid}
}

// typedNodes are the nodes of all levels in a snapshot.
func typedNodes(r *rig, s *cache.Snapshot[cache.Typed]) map[string]typedNode {
	all := map[string]typedNode{}
	for i, l := range markedLevels {
		last := ""
		for params, n := range l.All(s) {
			if _, twice := all[n.Path]; twice || n.Path <= last && !strings.HasPrefix(n.Path, last) {
				r.Errorf("level %v: %s comes twice, or after %s", l, n.Path, last)
			}
			all[n.Path], last = typedNodeOf(i, n), n.Path
			want := l.expect.FindStringSubmatch(n.Path)
			var given []string
			for _, name := range []string{"app", "id"}[:len(want)-1] {
				given = append(given, params.Get(name))
			}
			if !slices.Equal(given, want[1:]) {
				r.Errorf("level %v: %s has the parameters %v", l, n.Path, params)
			}
			if one, there := l.Get(s, given...); !there || one != n {
				r.Errorf("level %v: Get of %v has %+v", l, params, one)
			}
			if path, err := l.Path(given...); err != nil || path != n.Path {
				r.Errorf("level %v: the path of %v is %s, %v", l, params, path, err)
			}
		}
	}
	return all
}

// mirror applies the changes of a typed tree to a map until ctx ends, and compares it with
// each snapshot. It returns how many changes there were.
func mirror(ctx context.Context, r *rig, tree *cache.Tree[cache.Typed], slow time.Duration) (changes int) {
	mine := map[string]typedNode{}
	var last *cache.Snapshot[cache.Typed]
	compare := func() {
		if last == nil {
			return
		}
		if want := typedNodes(r, last); !maps.Equal(mine, want) {
			r.Errorf("the changes lead to %v, and snapshot %#x has %v", mine, last.Zxid(), want)
		}
	}
	for change, err := range tree.Changes(ctx) {
		r.Check(err)
		if change.Snapshot != last {
			compare()
			last = change.Snapshot
		}
		if change.Kind == cache.Began {
			mine = typedNodes(r, last)
		}
		owner := -1
		for i, l := range markedLevels {
			c, ours := l.Change(change)
			if ours != l.expect.MatchString(change.Path) || ours && owner >= 0 {
				r.Errorf("%v is of level %v: %v", change, l, ours)
			}
			if !ours {
				continue
			}
			owner = i
			changes++
			was, known := mine[change.Path]
			if known != (c.Old != nil) || known && was != typedNodeOf(i, *c.Old) {
				r.Errorf("%v begins with %+v, and not with %+v", change, c.Old, was)
			}
			if (c.New == nil) != (c.Kind == cache.Deleted) || c.New != nil && (c.New.Err != nil) != (c.Kind == cache.Undecodable) {
				r.Errorf("%v leads to %+v", change, c.New)
			}
			if c.New == nil {
				delete(mine, change.Path)
			} else {
				mine[change.Path] = typedNodeOf(i, *c.New)
			}
		}
		time.Sleep(slow)
	}
	compare()
	return changes
}

// somePath returns a path that a level may match, or none.
func somePath(random *rand.Rand) string {
	parts := [][]string{
		{"a", "b", "config"}, {"config", "instances", "instances", "instances", "instance", "configs"}, {"1", "2", "config"}, {"lease", "lease", "leases"}, {"x"},
	}
	path := "/apps"
	for _, names := range parts[:min(len(parts), 1+random.IntN(len(parts)+2))] {
		path += "/" + names[random.IntN(len(names))]
	}
	return path
}

// someData is of any level, or of the one of the path.
func someData(random *rand.Rand, path string, n int) []byte {
	mark := []string{"a", "c", "i", "l", "", "x"}[random.IntN(6)]
	for _, l := range markedLevels {
		if l.expect.MatchString(path) && random.IntN(2) == 0 {
			mark = l.mark
		}
	}
	return fmt.Appendf(nil, "%s%d", mark, n)
}

// write makes one transaction of a few writes to a tree.
func (r *rig) write(random *rand.Rand, n int) {
	var ops []client.Op
	touched := map[string]bool{}
	for range 1 + random.IntN(2) {
		path := somePath(random)
		node, there := r.Srv.Node(path)
		for !there { // the first of its nodes that is missing
			above := path[:strings.LastIndexByte(path, '/')]
			if _, there = r.Srv.Node(above); there {
				break
			}
			path = above
		}
		if touched[path] {
			continue
		}
		touched[path] = true
		data := someData(random, path, n)
		what := random.IntN(8)
		switch leaf := node.Stat.NumChildren == 0; {
		case node.Path == "":
			ops = append(ops, client.CreateOp(path, data))
		case leaf && what < 2:
			ops = append(ops, client.DeleteOp(path, client.AnyVersion))
		case leaf && what < 4:
			ops = append(ops, client.DeleteOp(path, client.AnyVersion), client.CreateOp(path, data))
		default:
			ops = append(ops, client.SetOp(path, data, client.AnyVersion))
		}
	}
	_, _ = r.w.Multi(r.Ctx, ops...) // one may need what another takes away
}

// The typed view is that of a plain cache of the same nodes, after each of many random
// transactions, and after reconnections. The changes lead from one view to the next.
func TestTypedTreeAgainstPlain(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		random := rand.New(rand.NewPCG(16, 38))
		r.create("/apps", "c")
		var levels cache.Levels
		for _, l := range markedLevels {
			levels = append(levels, l.Level)
		}
		tree, plain := r.typed(levels, opts...), r.tree("/apps", opts...)
		ctx, cancel := context.WithCancel(r.Ctx)
		var readers sync.WaitGroup
		counts := make([]int, 2)
		for i := range counts {
			readers.Go(func() { counts[i] = mirror(ctx, r, tree, time.Duration(i)*20*time.Millisecond) })
		}
		before, bads, kept := map[string]typedNode{}, 0, 0
		for n := range 200 {
			if n%25 == 24 {
				r.away(plain, func() {
					for i := range 5 {
						r.write(random, 1000*n+i)
					}
				})
			} else {
				r.write(random, n)
			}
			raw, err := plain.Wait(r.Within(time.Minute), r.Srv.Zxid())
			r.Check(err)
			after := typedNodes(r, r.seen(tree))
			want := map[string]typedNode{}
			for path, node := range raw.All() {
				for i, l := range markedLevels {
					if !l.expect.MatchString(path) {
						continue
					}
					one := typedNode{i, "decoded " + node.Value, !strings.HasPrefix(node.Value, l.mark), node.Czxid, node.Mzxid}
					if was, known := before[path]; one.bad {
						bads++
						one.value = ""
						if known && (was.czxid == one.czxid || after[path].value == was.value) { // of a node that was made again it may be lost
							one.value = was.value
						}
						if one.value != "" {
							kept++
						}
					}
					want[path] = one
				}
			}
			if !maps.Equal(after, want) {
				r.Fatalf("step %d: the typed view is\n%v\nwant\n%v\nthe nodes are\n%s", n, after, want, text(raw))
			}
			var has, wanted []string
			for path := range tree.Snapshot().All() {
				has = append(has, path)
			}
			for path := range raw.All() {
				if markedOrAbove.MatchString(path) {
					wanted = append(wanted, path)
				}
			}
			if !slices.Equal(has, wanted) {
				r.Errorf("step %d: the tree has %v, want %v", n, has, wanted)
			}
			before = after
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		readers.Wait()
		r.Logf("%d nodes at the end, %d looks at bad values, %d with a last good one, changes %v", len(before), bads, kept, counts)
		if len(before) < 5 || kept < 150 || bads-kept < 60 || counts[0] < 60 || counts[1] < 50 {
			r.Errorf("%d nodes at the end, %d looks at bad values, %d with a last good one, changes %v", len(before), bads, kept, counts)
		}
	})
}
