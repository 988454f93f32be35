package cache

import "github.com/docent-go/docent/internal/inside"

// try calls the codec for a node, unless the cache is closed. Then nobody sees the value.
func (f *follower[V]) try(path string, data []byte) (v V, err error) {
	f.mu.Lock()
	f.busy = !f.closed
	call := f.busy
	f.mu.Unlock()
	if !call {
		return v, ErrClosed
	}
	defer func() {
		f.mu.Lock()
		f.busy = false
		f.mu.Unlock()
	}()
	return f.codecOf(path).try(data)
}

// codecOf returns the codec for the node at path. Only a typed tree has several.
func (f *follower[V]) codecOf(path string) Codec[V] {
	if codec, ok := any(f.levels.codecOf(path)).(Codec[V]); ok && codec != nil {
		return codec
	}
	return f.codec
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
