package cache

import (
	"cmp"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// data takes in what was read of a node.
func (k *keeper[V]) data(t task, a inside.Answer) error {
	old, m := k.root.get(t.path), k.doubts[t]
	delete(k.refused, t.path)
	switch {
	case errors.Is(a.Err, zk.ErrNoNode):
		since := a.Zxid                           // it is gone since then, or longer
		if m != nil && m.gone > 0 && !k.oneShot { // a one-shot watch may have missed a short life
			since = m.gone
		}
		k.floor = max(k.floor, since)
		k.remove(t.path, a.Zxid)
		if t.path == k.path && k.oneShot {
			k.doubt(task{t.path, ofBirth}, a.Zxid-1)
		}
		k.resolve(t, a.Zxid)
		return nil
	case a.Err != nil: // the client may not read it, or takes no answer of that size
		if len(k.refused) == 0 {
			k.again = time.Now().Add(refusedWait)
		}
		k.refused[t.path] = struct{}{}
		n := &Node[V]{Path: t.path, Err: &UnreadableError{Path: t.path, Err: a.Err}}
		if old != nil && !k.drop {
			*n = *old
			n.Err = &UnreadableError{Path: t.path, Err: a.Err}
		}
		if old == nil || !old.unread() {
			if old != nil {
				k.bytes += int64(n.size - old.size)
			}
			k.root = k.root.put(n)
			k.floor = max(k.floor, a.Zxid)
			if m != nil && k.lists(t.path) && errors.Is(a.Err, client.ErrReplyTooLarge) {
				k.doubt(task{t.path, ofChildren}, m.bounds[0]) // they may be read all the same
			}
		}
		k.resolve(t, a.Zxid)
		return nil
	}
	k.finish(t, a)
	k.floor = max(k.floor, a.Stat.Mzxid)
	if old != nil && old.same(&a.Stat) {
		return nil
	}
	n := k.decode(t.path, old, a)
	if old != nil {
		k.bytes -= int64(old.size)
	}
	k.bytes += int64(n.size)
	k.root = k.root.put(n)
	switch {
	case old == nil || old.Czxid != n.Czxid:
		k.begin(n, a)
	case old.unread():
		k.begin(n, a)
		k.readNext(task{n.Path, ofChildren}) // the watch may be gone without a word
	}
	k.newest = n.Path
	return k.exceeded(n.Path, 2)
}

// same reports whether the data of n is that of stat. The version alone does not tell:
// a node that was deleted and made again begins with 0.
func (n *Node[V]) same(stat *zk.Stat) bool {
	return n.Czxid == stat.Czxid && n.Mzxid == stat.Mzxid && n.Version == stat.Version && !n.unread()
}

// unread reports whether the client could not read n.
func (n *Node[V]) unread() bool {
	refused := (*UnreadableError)(nil)
	return errors.As(n.Err, &refused)
}

func (k *keeper[V]) decode(path string, old *Node[V], a inside.Answer) *Node[V] {
	n := &Node[V]{
		Path: path, Czxid: a.Stat.Czxid, Mzxid: a.Stat.Mzxid, Version: a.Stat.Version,
		ctime: a.Stat.Ctime, mtime: a.Stat.Mtime, EphemeralOwner: a.Stat.EphemeralOwner,
		size: int32(len(a.Data)), //nolint:gosec // a reply is smaller
	}
	v, err := k.codec.try(a.Data)
	if err == nil {
		n.Value = v
	} else {
		n.Err = &UndecodableError{Path: path, Mzxid: n.Mzxid, Err: err}
		if old != nil && !k.drop {
			n.Value = old.Value
		}
	}
	return n
}

// begin is called with a node that is new to the cache. Nodes that were below an
// older one at its path are gone.
func (k *keeper[V]) begin(n *Node[V], a inside.Answer) {
	var gone []*Node[V]
	k.root.walk(n.Path, behind(n.Path), func(d *Node[V]) bool {
		if d.Czxid < n.Czxid {
			gone = append(gone, d)
		}
		return true
	})
	for _, d := range gone { // one by one: newer nodes may be below them
		k.root = k.root.cut(d.Path, d.Path+"/")
		k.bytes -= int64(d.size)
		if d.unread() { // it may be newer
			k.doubt(task{d.Path, ofData}, n.Czxid-1)
		}
	}
	t := task{n.Path, ofChildren}
	switch {
	case !k.mayHaveChildren(n):
	case k.oneShot && !k.plain && a.Stat.NumChildren == 0 && k.doubts[t] == nil:
		k.leaf(t, a)
	case k.oneShot, a.Stat.NumChildren > 0:
		// A persistent watch tells of children that are made after it stands. But a server
		// that has just joined may have these already, before it runs the transactions that
		// make them. It sends no events then.
		k.doubt(t, n.Czxid-1)
	}
}

// children takes in the names of the children of a node.
func (k *keeper[V]) children(t task, a inside.Answer) error {
	since := a.Zxid - 1
	if m := k.doubts[t]; m != nil {
		since = min(since, m.bounds[0]) // what was below is not known after that
	}
	k.finish(t, a)
	if a.Err != nil { // the reading of its data says why
		if k.root.get(t.path) != nil {
			k.doubt(task{t.path, ofData}, since)
		}
		return nil
	}
	k.floor = max(k.floor, a.Stat.Pzxid)
	there := make(map[string]struct{}, len(a.Names))
	for _, name := range a.Names {
		path := t.path + "/" + name
		if t.path == "/" {
			path = t.path + name
		}
		if !k.covers(path) {
			continue
		}
		there[path] = struct{}{}
		if k.limits.Nodes > 0 && len(there) > 2*k.limits.Nodes {
			return &LimitError{What: "nodes", Limit: int64(k.limits.Nodes), Path: path}
		}
		if k.root.get(path) == nil {
			k.doubt(task{path, ofData}, a.Stat.Pzxid-1)
		}
	}
	var gone []string
	k.root.children(t.path, func(c *Node[V]) bool {
		if _, ok := there[c.Path]; !ok && c.Czxid <= a.Zxid {
			gone = append(gone, c.Path)
		}
		return true
	})
	for _, path := range gone {
		k.remove(path, a.Zxid)
	}
	return nil
}

// birth takes in whether the node at the path of the cache has been made.
func (k *keeper[V]) birth(t task, a inside.Answer) {
	since := k.valid
	if m := k.doubts[t]; m != nil {
		since = m.bounds[0] // no watch has stood since then
	}
	k.finish(t, a)
	if a.Err == nil {
		k.doubt(task{t.path, ofData}, min(since, a.Zxid-1))
	} else {
		k.floor = max(k.floor, a.Zxid) // it may have come and gone before
	}
}

// remove removes a node and all below it. They were not there at zxid, the zxid of an
// answer, which resolves doubts of events before it.
func (k *keeper[V]) remove(path string, zxid int64) {
	if k.root.get(path) == nil {
		return
	}
	k.root.walk(path, behind(path), func(n *Node[V]) bool {
		k.bytes -= int64(n.size)
		delete(k.refused, n.Path)
		k.resolve(task{n.Path, ofData}, zxid)
		k.resolve(task{n.Path, ofChildren}, zxid)
		return true
	})
	k.root = k.root.remove(path)
}

// exceeded is the error of a cache that has become too large. While it reads, the
// cache may have up to one tree of old nodes that it does not know to be gone.
func (k *keeper[V]) exceeded(path string, trees int64) error {
	over := func(what string, limit, n int64) error {
		if limit < 0 || n <= limit {
			return nil
		}
		return &LimitError{What: what, Limit: limit, Path: path}
	}
	return cmp.Or(
		over("nodes", int64(k.limits.Nodes), (int64(k.root.size())+trees-1)/trees),
		over("bytes", k.limits.Bytes, (k.bytes+trees-1)/trees),
		over("depth", int64(k.limits.Depth), int64(k.levels(path))),
	)
}
