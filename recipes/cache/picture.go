package cache

import (
	"cmp"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/inside"
)

// same reports whether the data of n is that of stat. The version alone does not tell:
// a node that was deleted and made again begins with 0.
func (n *Node[V]) same(stat *zk.Stat) bool {
	return n.Czxid == stat.Czxid && n.Mzxid == stat.Mzxid && n.Version == stat.Version &&
		n.ctime == stat.Ctime && n.mtime == stat.Mtime && !n.unread() // new servers count from 0, and a zxid may be that of another transaction
}

// unread reports whether the client could not read n.
func (n *Node[V]) unread() bool {
	refused := (*UnreadableError)(nil)
	return errors.As(n.Err, &refused)
}

func (f *follower[V]) decode(path string, old *Node[V], a inside.Answer) *Node[V] {
	n := &Node[V]{
		Path: path, Czxid: a.Stat.Czxid, Mzxid: a.Stat.Mzxid, Version: a.Stat.Version,
		ctime: a.Stat.Ctime, mtime: a.Stat.Mtime, EphemeralOwner: a.Stat.EphemeralOwner,
		size: int32(len(a.Data)), //nolint:gosec // a reply is smaller
	}
	v, err := f.try(path, a.Data)
	if err == nil {
		n.Value = v
	} else {
		n.Err = &UndecodableError{Path: path, Mzxid: n.Mzxid, Err: err}
		if old != nil && !f.drop {
			n.Value = old.Value
		}
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
