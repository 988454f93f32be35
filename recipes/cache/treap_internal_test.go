package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plain is what a treap is compared with.
type plain map[string]*kept[int]

// ordered are the nodes as a walk through the tree has them.
func (p plain) ordered() []*kept[int] {
	paths := slices.SortedFunc(maps.Keys(p), func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	var all []*kept[int]
	for _, path := range paths {
		all = append(all, p[path])
	}
	return all
}

func walked(t *treap[int]) (all []*kept[int]) {
	t.walk("", "\xff", func(n *kept[int]) bool {
		all = append(all, n)
		return true
	})
	return all
}

// somePath has names that are prefixes of one another, and characters below "/".
func somePath(r *rand.Rand) string {
	names := []string{"a", "a-b", "a!", "b", "ab"}
	path := "/" + names[r.IntN(len(names))]
	for range r.IntN(3) {
		path += "/" + names[r.IntN(len(names))]
	}
	return path
}

// A treap is what a map is, in order, and its older versions never change.
func TestTreap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var now *treap[int]
		want := plain{}
		var versions []*treap[int]
		var contents []plain
		for step := range 60 {
			path := somePath(r)
			if r.IntN(4) == 0 {
				now = now.remove(path)
				maps.DeleteFunc(want, func(p string, _ *kept[int]) bool { return p == path || isBelow(p, path) })
			} else {
				n := &kept[int]{Path: path, Value: step}
				now, want[path] = now.put(n), n
			}
			versions, contents = append(versions, now), append(contents, maps.Clone(want))
		}
		for i, v := range versions {
			if got := walked(v); !slices.Equal(got, contents[i].ordered()) || v.size() != len(contents[i]) {
				t.Fatalf("seed %d, version %d: %d nodes, want %d", seed, i, len(got), len(contents[i]))
			}
		}
		for range 40 {
			i, j := r.IntN(len(versions)), r.IntN(len(versions))
			if diff := differs(versions[i], versions[j], contents[i], contents[j]); diff != "" {
				t.Fatalf("seed %d, versions %d and %d: %s", seed, i, j, diff)
			}
		}
	}
}

// differs checks that difference yields exactly what two maps differ in, in order.
func differs(a, b *treap[int], before, after plain) string {
	both := maps.Clone(before)
	maps.Copy(both, after)
	var want, got []string
	for _, n := range both.ordered() {
		if before[n.Path] != after[n.Path] {
			want = append(want, fmt.Sprintf("%s %p %p", n.Path, before[n.Path], after[n.Path]))
		}
	}
	difference(a, b, func(was, is *kept[int]) bool {
		one := is
		if is == nil {
			one = was
		}
		got = append(got, fmt.Sprintf("%s %p %p", one.Path, was, is))
		return true
	})
	if !slices.Equal(got, want) {
		return fmt.Sprintf("%v, want %v", got, want)
	}
	return ""
}

// The children of a node are the nodes right below it, whatever stands between
// them.
func TestTreapChildren(t *testing.T) {
	t.Parallel()
	var tree *treap[int]
	for _, path := range []string{"/", "/a", "/a/x", "/a/x/y", "/a/z", "/a-b", "/a-b/c", "/a!"} {
		tree = tree.put(&kept[int]{Path: path})
	}
	for path, want := range map[string]string{"/": "/a /a! /a-b", "/a": "/a/x /a/z", "/a/x": "/a/x/y", "/a!": "", "/b": ""} {
		var got []string
		tree.children(path, func(n *kept[int]) bool {
			got = append(got, n.Path)
			return true
		})
		if strings.Join(got, " ") != want {
			t.Errorf("children of %s: %v, want %s", path, got, want)
		}
	}
}

// One change costs no more than the path to it.
func TestTreapShares(t *testing.T) {
	t.Parallel()
	var tree *treap[int]
	for i := range 10_000 {
		tree = tree.put(&kept[int]{Path: fmt.Sprintf("/d%d/n%d", i%100, i)})
	}
	old := map[*treap[int]]bool{}
	var fresh int
	var visit func(*treap[int], func(*treap[int]))
	visit = func(one *treap[int], f func(*treap[int])) {
		if one != nil {
			f(one)
			visit(one.left, f)
			visit(one.right, f)
		}
	}
	visit(tree, func(one *treap[int]) { old[one] = true })
	visit(tree.put(&kept[int]{Path: "/d7/n7"}), func(one *treap[int]) {
		if !old[one] {
			fresh++
		}
	})
	if fresh > 60 {
		t.Errorf("one change makes %d of 10,000 nodes anew", fresh)
	}
}
