package cache

import "strings"

// treap is an immutable map from paths to nodes. A new version shares all but
// O(log n) with the one before. Its shape follows from the paths alone, so two
// versions are compared in O(changes * log n).
//
// The order is that of a walk through the tree: a node comes before its children, and
// the nodes below a node stand together.
type treap[V any] struct {
	node        *kept[V]
	left, right *treap[V]
	count       int32
	priority    uint32
}

// comparePaths orders paths as bytes, with "/" below all others.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/' || a[i] > b[i]:
			return 1
		default:
			return -1
		}
	}
	return len(a) - len(b)
}

// behind is a key behind path and all nodes below it, and before all others: no path
// has the character.
func behind(path string) string {
	if path == "/" {
		return "\xff"
	}
	return path + "\x01"
}

// isBelow reports whether path is a node below top.
func isBelow(path, top string) bool {
	if top == "/" {
		return path != "/"
	}
	return len(path) > len(top) && path[len(top)] == '/' && strings.HasPrefix(path, top)
}

func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

func (t *treap[V]) size() int {
	if t == nil {
		return 0
	}
	return int(t.count)
}

// with returns t with other branches.
func (t *treap[V]) with(left, right *treap[V]) *treap[V] {
	return &treap[V]{t.node, left, right, int32(1 + left.size() + right.size()), t.priority} //nolint:gosec // less than 2^31 nodes fit into memory
}

func (t *treap[V]) get(path string) *kept[V] {
	for t != nil {
		switch c := comparePaths(path, t.node.Path); {
		case c == 0:
			return t.node
		case c < 0:
			t = t.left
		default:
			t = t.right
		}
	}
	return nil
}

// put adds n, or replaces the node at its path.
func (t *treap[V]) put(n *kept[V]) *treap[V] {
	switch t.get(n.Path) {
	case n:
		return t
	case nil:
	default:
		return t.replace(n)
	}
	return t.add(&treap[V]{node: n, count: 1, priority: hash(n.Path)})
}

func (t *treap[V]) replace(n *kept[V]) *treap[V] {
	switch c := comparePaths(n.Path, t.node.Path); {
	case c == 0:
		return &treap[V]{n, t.left, t.right, t.count, t.priority}
	case c < 0:
		return t.with(t.left.replace(n), t.right)
	default:
		return t.with(t.left, t.right.replace(n))
	}
}

func (t *treap[V]) add(one *treap[V]) *treap[V] {
	switch {
	case t == nil:
		return one
	case one.priority > t.priority || one.priority == t.priority && one.node.Path < t.node.Path:
		return one.with(t.split(one.node.Path))
	case comparePaths(one.node.Path, t.node.Path) < 0:
		return t.with(t.left.add(one), t.right)
	default:
		return t.with(t.left, t.right.add(one))
	}
}

// split returns the nodes before key, and the others.
func (t *treap[V]) split(key string) (before, rest *treap[V]) {
	switch {
	case t == nil:
		return nil, nil
	case comparePaths(t.node.Path, key) < 0:
		l, r := t.right.split(key)
		return t.with(t.left, l), r
	default:
		l, r := t.left.split(key)
		return l, t.with(r, t.right)
	}
}

// join puts together what split has taken apart.
func join[V any](a, b *treap[V]) *treap[V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority || a.priority == b.priority && a.node.Path < b.node.Path:
		return a.with(a.left, join(a.right, b))
	default:
		return b.with(join(a, b.left), b.right)
	}
}

// cut removes the nodes from the first key on and before the second.
func (t *treap[V]) cut(from, to string) *treap[V] {
	before, rest := t.split(from)
	_, after := rest.split(to)
	return join(before, after)
}

// remove removes the node at path and all below it.
func (t *treap[V]) remove(path string) *treap[V] { return t.cut(path, behind(path)) }

// walk yields the nodes from the first key on and before the second, in order. It
// reports false once yield does.
func (t *treap[V]) walk(from, to string, yield func(*kept[V]) bool) bool {
	if t == nil {
		return true
	}
	low, high := comparePaths(t.node.Path, from) >= 0, comparePaths(t.node.Path, to) < 0
	return (!low || t.left.walk(from, to, yield)) &&
		(!low || !high || yield(t.node)) &&
		(!high || t.right.walk(from, to, yield))
}

// next returns the first node that is not before key.
func (t *treap[V]) next(key string) (found *kept[V]) {
	for t != nil {
		if comparePaths(t.node.Path, key) < 0 {
			t = t.right
		} else {
			found, t = t.node, t.left
		}
	}
	return found
}

// children yields the nodes right below path, in order.
func (t *treap[V]) children(path string, yield func(*kept[V]) bool) {
	first := path + "/"
	if path == "/" {
		first = path + "\x01"
	}
	for n := t.next(first); n != nil && isBelow(n.Path, path); n = t.next(behind(n.Path)) {
		if !yield(n) {
			return
		}
	}
}

// difference yields the nodes in which a and b differ, in order. Of each it yields
// the old one, nil if there was none, and the new one, nil if there is none.
func difference[V any](a, b *treap[V], yield func(before, now *kept[V]) bool) bool {
	switch {
	case a == b:
		return true
	case b == nil:
		return a.walk("", "\xff", func(n *kept[V]) bool { return yield(n, nil) })
	case a == nil:
		return b.walk("", "\xff", func(n *kept[V]) bool { return yield(nil, n) })
	}
	left, right := a.left, a.right
	before := a.node
	if a.node.Path != b.node.Path {
		left, right = a.split(b.node.Path)
		before = nil
		if n := right.next(b.node.Path); n != nil && n.Path == b.node.Path {
			before = n
			_, right = right.split(b.node.Path + "/")
		}
	}
	return difference(left, b.left, yield) &&
		(before == b.node || yield(before, b.node)) &&
		difference(right, b.right, yield)
}
