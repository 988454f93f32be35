package cache

import (
	"cmp"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/inside"
)

// kept is how a cache keeps a [Node]. What few nodes have takes no room in the others.
type kept[V any] struct {
	Path         string
	Value        V
	Czxid, Mzxid int64
	ctime, mtime int64
	Version      int32
	size         int32
	rare         *rare // nil if all of it is zero
}

// rare is what few nodes have.
type rare struct {
	owner int64 // if it is ephemeral, a container or has a time to live
	err   error
}

func (n *kept[V]) owner() int64 {
	if n.rare == nil {
		return 0
	}
	return n.rare.owner
}

func (n *kept[V]) err() error {
	if n.rare == nil {
		return nil
	}
	return n.rare.err
}

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

// same reports whether the data of n is that of stat. The version alone does not tell:
// a node that was deleted and made again begins with 0.
func (n *kept[V]) same(stat *zk.Stat) bool {
	return n.Czxid == stat.Czxid && n.Mzxid == stat.Mzxid && n.Version == stat.Version &&
		n.ctime == stat.Ctime && n.mtime == stat.Mtime && !n.unread() // new servers count from 0, and a zxid may be that of another transaction
}

// unread reports whether the client could not read n.
func (n *kept[V]) unread() bool {
	refused := (*UnreadableError)(nil)
	return errors.As(n.err(), &refused)
}

func (f *follower[V]) decode(path string, old *kept[V], a inside.Answer) *kept[V] {
	n := &kept[V]{
		Path: path, Czxid: a.Stat.Czxid, Mzxid: a.Stat.Mzxid, Version: a.Stat.Version,
		ctime: a.Stat.Ctime, mtime: a.Stat.Mtime,
		size: int32(len(a.Data)), //nolint:gosec // a reply is smaller
	}
	v, err := f.try(path, a.Data)
	if err == nil {
		n.Value = v
	} else {
		err = &UndecodableError{Path: path, Mzxid: n.Mzxid, Err: err}
		if old != nil && !f.drop {
			n.Value = old.Value
		}
	}
	if owner := a.Stat.EphemeralOwner; owner != 0 || err != nil {
		n.rare = &rare{owner, err}
	}
	return n
}

// exceeded is the error of a cache that has become too large. While it reads, the
// cache may have up to one tree of old nodes that it does not know to be gone.
func (k *keeper[V]) exceeded(trees int64) error {
	over := func(what string, limit, n int64) error {
		if limit < 0 || n <= limit {
			return nil
		}
		return &LimitError{What: what, Limit: limit, Path: k.newest}
	}
	return cmp.Or(
		over("nodes", int64(k.limits.Nodes), (int64(k.root.size())+trees-1)/trees),
		over("bytes", k.limits.Bytes, (k.bytes+trees-1)/trees),
	)
}
