package zkserver

import (
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/watch"
	"github.com/docent-go/docent/internal/zoodefs"
)

// setWatches sets the watches of a client that has come back. The client is told at
// once of everything that changed after the zxid that it saw last.
func (r *request) setWatches(d *jute.Decoder) zoodefs.Code {
	since := d.Long()
	lists := [][]string{d.Paths(), d.Paths(), d.Paths()}
	if r.op == zoodefs.OpSetWatches2 {
		lists = append(lists, d.Paths(), d.Paths())
	}
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	if r.c.dead {
		return zoodefs.CodeOK
	}
	for i, set := range []func([]string){
		func(data []string) {
			r.restore(watch.DataTable, data, zoodefs.EventNodeDataChanged, func(st *storedStat) bool { return st.mzxid > since })
		},
		r.restoreMissing,
		func(child []string) {
			r.restore(watch.ChildTable, child, zoodefs.EventNodeChildrenChanged, func(st *storedStat) bool { return st.pzxid > since })
		},
		func(persistent []string) { r.addAll(persistent, watch.Persistent) },
		func(recursive []string) { r.addAll(recursive, watch.Recursive) },
	}[:len(lists)] {
		if lists[i] == nil {
			return zoodefs.CodeMarshallingError // a null pointer in the real server, which has set the lists before
		}
		set(lists[i])
	}
	return zoodefs.CodeOK
}

// restoreMissing sets watches on nodes that do not exist. The client is told of those
// that do.
func (r *request) restoreMissing(paths []string) {
	for _, path := range paths {
		if r.s.tree.nodes[path] != nil {
			r.c.event(zoodefs.EventNodeCreated, path, -1)
		} else {
			r.s.watches.Add(watch.DataTable, path, r.c, watch.Once)
		}
	}
}

func (r *request) addAll(paths []string, m watch.Mode) {
	for _, path := range paths {
		r.addPersistent(path, m)
	}
}

// restore sets watches on nodes that exist. Where the node has been deleted or has
// changed, the client is told instead.
func (r *request) restore(k watch.TableKind, paths []string, ev zoodefs.EventType, changed func(*storedStat) bool) {
	for _, path := range paths {
		switch n := r.s.tree.nodes[path]; {
		case n == nil:
			r.c.event(zoodefs.EventNodeDeleted, path, -1)
		case changed(&n.stat):
			r.c.event(ev, path, -1)
		default:
			r.s.watches.Add(k, path, r.c, watch.Once)
		}
	}
}

// addPersistent sets a watch in both tables. A recursive watch is not needed in the
// child table, but releases before 3.9 put one there, and a removal then finds it.
func (r *request) addPersistent(path string, m watch.Mode) {
	r.s.watches.Add(watch.DataTable, path, r.c, m)
	if m == watch.Persistent || r.s.watches.Single {
		r.s.watches.Add(watch.ChildTable, path, r.c, m)
	}
}

func (r *request) addWatch(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	path := d.Path()
	mode := d.Int()
	if d.Err != nil || mode < 0 || mode > 1 {
		return zoodefs.CodeMarshallingError
	}
	if !r.c.dead {
		r.addPersistent(path, []watch.Mode{watch.Persistent, watch.Recursive}[mode])
	}
	e.Int(0)
	return zoodefs.CodeOK
}

// Watcher types of checkWatches and removeWatches.
const (
	watcherChildren   int32 = 1
	watcherData       int32 = 2
	watcherAny        int32 = 3
	watcherPersistent int32 = 4
	watcherRecursive  int32 = 5
)

// watchRemoval answers checkWatches and removeWatches.
func (r *request) watchRemoval(d *jute.Decoder) zoodefs.Code {
	path := d.Path()
	kind := d.Int()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	const all = watch.Once | watch.Persistent | watch.Recursive
	var tables []watch.TableKind
	mode := watch.Once
	switch kind {
	case watcherChildren:
		tables = []watch.TableKind{watch.ChildTable}
	case watcherData:
		tables = []watch.TableKind{watch.DataTable}
	case watcherAny:
		tables, mode = []watch.TableKind{watch.ChildTable, watch.DataTable}, all
	case watcherPersistent:
		tables, mode = []watch.TableKind{watch.ChildTable, watch.DataTable}, watch.Persistent
	case watcherRecursive:
		tables, mode = []watch.TableKind{watch.DataTable}, watch.Recursive
	}
	if tables == nil || r.s.watches.Single && kind > watcherAny {
		return zoodefs.CodeMarshallingError
	}
	if r.s.watches.Single {
		mode = all // there is one mode per path, and it is removed
	}
	found := false
	for _, k := range tables {
		switch {
		case r.op == zoodefs.OpRemoveWatches:
			found = r.s.watches.Remove(k, path, r.c, mode) || found
		case found:
		case r.s.watches.Stumbles(k, path):
			return zoodefs.CodeMarshallingError
		default:
			found = r.s.watches.Has(k, path, r.c, mode)
		}
	}
	if !found {
		return zoodefs.CodeNoWatcher
	}
	return zoodefs.CodeOK
}
