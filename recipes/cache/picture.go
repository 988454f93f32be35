package cache

import (
	"errors"

	"github.com/go-zookeeper/zk"
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
