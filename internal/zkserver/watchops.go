package zkserver

import (
	"github.com/docent-go/docent/internal/zkserver/jute"
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
			r.restore(dataTable, data, zoodefs.EventNodeDataChanged, func(st *storedStat) bool { return st.mzxid > since })
		},
		r.restoreMissing,
		func(child []string) {
			r.restore(childTable, child, zoodefs.EventNodeChildrenChanged, func(st *storedStat) bool { return st.pzxid > since })
		},
		func(persistent []string) { r.addAll(persistent, watchPersistent) },
		func(recursive []string) { r.addAll(recursive, watchRecursive) },
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
			r.s.watches.add(dataTable, path, r.c, watchOnce)
		}
	}
}

func (r *request) addAll(paths []string, m watchMode) {
	for _, path := range paths {
		r.addPersistent(path, m)
	}
}

// restore sets watches on nodes that exist. Where the node has been deleted or has
// changed, the client is told instead.
func (r *request) restore(k tableKind, paths []string, ev zoodefs.EventType, changed func(*storedStat) bool) {
	for _, path := range paths {
		switch n := r.s.tree.nodes[path]; {
		case n == nil:
			r.c.event(zoodefs.EventNodeDeleted, path, -1)
		case changed(&n.stat):
			r.c.event(ev, path, -1)
		default:
			r.s.watches.add(k, path, r.c, watchOnce)
		}
	}
}

// addPersistent sets a watch in both tables. A recursive watch is not needed in the
// child table, but releases before 3.9 put one there, and a removal then finds it.
func (r *request) addPersistent(path string, m watchMode) {
	r.s.watches.add(dataTable, path, r.c, m)
	if m == watchPersistent || r.s.watches.single {
		r.s.watches.add(childTable, path, r.c, m)
	}
}

func (r *request) addWatch(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	path := d.Path()
	mode := d.Int()
	if d.Err != nil || mode < 0 || mode > 1 {
		return zoodefs.CodeMarshallingError
	}
	if !r.c.dead {
		r.addPersistent(path, []watchMode{watchPersistent, watchRecursive}[mode])
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
	const all = watchOnce | watchPersistent | watchRecursive
	var tables []tableKind
	mode := watchOnce
	switch kind {
	case watcherChildren:
		tables = []tableKind{childTable}
	case watcherData:
		tables = []tableKind{dataTable}
	case watcherAny:
		tables, mode = []tableKind{childTable, dataTable}, all
	case watcherPersistent:
		tables, mode = []tableKind{childTable, dataTable}, watchPersistent
	case watcherRecursive:
		tables, mode = []tableKind{dataTable}, watchRecursive
	}
	if tables == nil || r.s.watches.single && kind > watcherAny {
		return zoodefs.CodeMarshallingError
	}
	if r.s.watches.single {
		mode = all // there is one mode per path, and it is removed
	}
	found := false
	for _, k := range tables {
		switch {
		case r.op == zoodefs.OpRemoveWatches:
			found = r.s.watches.remove(k, path, r.c, mode) || found
		case found:
		case r.s.watches.stumbles(k, path):
			return zoodefs.CodeMarshallingError
		default:
			found = r.s.watches.has(k, path, r.c, mode)
		}
	}
	if !found {
		return zoodefs.CodeNoWatcher
	}
	return zoodefs.CodeOK
}
