package cache

import (
	"iter"
	"strings"
	"time"
)

// Node is one node of a [Snapshot]. Its Value is shared by all readers: change nothing in it.
type Node[V any] struct {
	Path  string // in the client's namespace
	Value V      // see Err
	// Czxid and Mzxid are the transactions that made the node and that set its data
	// last. Mzxid and not Version tells whether the data is the same: a node that was
	// deleted and made again begins with version 0.
	Czxid, Mzxid int64
	// EphemeralOwner is the session of an ephemeral node, otherwise zero or negative.
	EphemeralOwner int64
	ctime, mtime   int64
	Version        int32
	// Err says why Value is not that of Mzxid: an [*UndecodableError] or an
	// [*UnreadableError]. Value is then the last good one. Without one, and with
	// [DropUndecodable], it is zero. It is nil for other nodes.
	Err error
}

// Created is when the node was made, by the clock of the servers.
func (n *Node[V]) Created() time.Time { return time.UnixMilli(n.ctime) }

// Modified is when the data was set last, by the clock of the servers.
func (n *Node[V]) Modified() time.Time { return time.UnixMilli(n.mtime) }

// Name is the last part of the path.
func (n *Node[V]) Name() string { return n.Path[strings.LastIndexByte(n.Path, '/')+1:] }

// node is n for those who read snapshots.
func (n *kept[V]) node() Node[V] {
	return Node[V]{
		Path: n.Path, Value: n.Value, Czxid: n.Czxid, Mzxid: n.Mzxid, EphemeralOwner: n.owner(),
		ctime: n.ctime, mtime: n.mtime, Version: n.Version, Err: n.err(),
	}
}

// shown is n for those who read changes, nil if there is none.
func (n *kept[V]) shown() *Node[V] {
	if n == nil {
		return nil
	}
	node := n.node()
	return &node
}

// Snapshot is a state that the tree had: exactly the nodes, and exactly the data,
// that the server had after the transaction Zxid. It never changes, and any number of
// goroutines may read it without a lock.
//
// A Snapshot has no counts of children and no ACLs: a change of either fires no watch
// of the node.
type Snapshot[V any] struct {
	root *treap[V]
	path string
	zxid int64
	asOf time.Time
}

// Zxid is the transaction after which the tree looked like this. It is 0 until the
// cache has read the tree for the first time; the snapshot is empty then.
func (s *Snapshot[V]) Zxid() int64 { return s.zxid }

// AsOf is a time, by this process's clock, at which the servers had nothing newer: when the cache
// sent the request whose answer proved the snapshot. It is zero until there is one. While the
// cache is Synced and no change comes, AsOf grows old and the snapshot does not. While it is Stale,
// the snapshot may lack any change after AsOf. A server that lags, to which the cache is connected,
// may have lacked some before.
func (s *Snapshot[V]) AsOf() time.Time { return s.asOf }

// Root returns the node at the path of the cache, and whether there is one.
func (s *Snapshot[V]) Root() (Node[V], bool) { return s.Get(s.path) }

// Get returns the node at a path, and whether there is one.
func (s *Snapshot[V]) Get(path string) (Node[V], bool) {
	if n := s.root.get(path); n != nil {
		return n.node(), true
	}
	return Node[V]{}, false
}

// Len is the number of nodes, the root included.
func (s *Snapshot[V]) Len() int { return s.root.size() }

// All yields the nodes. A node comes before the nodes below it.
func (s *Snapshot[V]) All() iter.Seq2[string, Node[V]] {
	return func(yield func(string, Node[V]) bool) {
		s.root.walk("", "\xff", func(n *kept[V]) bool { return yield(n.Path, n.node()) })
	}
}

// Children yields the names and nodes right below a path, in the order of the names.
func (s *Snapshot[V]) Children(path string) iter.Seq2[string, Node[V]] {
	return func(yield func(string, Node[V]) bool) {
		s.root.children(path, func(n *kept[V]) bool {
			one := n.node()
			return yield(one.Name(), one)
		})
	}
}

// Diff yields the nodes that differ between before, another snapshot of the same cache, and s: how
// each was, and how it is. The first is nil of a node that is new, the second of one that is
// gone. A node comes before the nodes below it. The cost is that of the differences, and of a search
// for each. Everything differs from nil.
func (s *Snapshot[V]) Diff(before *Snapshot[V]) iter.Seq2[*Node[V], *Node[V]] {
	return func(yield func(was, is *Node[V]) bool) {
		var root *treap[V]
		if before != nil {
			root = before.root
		}
		difference(root, s.root, func(was, is *kept[V]) bool { return yield(was.shown(), is.shown()) })
	}
}
