package zkserver

import (
	"strings"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zoodefs"
)

// watchMode is a set of ways in which a connection watches a path.
type watchMode uint8

const (
	watchOnce watchMode = 1 << iota
	watchPersistent
	watchRecursive
)

// tableKind selects one of the server's two watch tables.
type tableKind int

const (
	dataTable  tableKind = iota // getData and exists
	childTable                  // getChildren
	tableCount
)

// watchTable maps paths to the connections that watch them, and back.
type watchTable struct {
	byPath map[string]map[*conn]watchMode
	byConn map[*conn]map[string]struct{}
}

// watchManager holds the watches of one server. The server's mutex guards it.
type watchManager struct {
	tables [tableCount]watchTable
	// single is set for releases that keep one mode per path and connection, that
	// of the last request (before ZOOKEEPER-4466).
	single bool
	// namesWatch makes the event of a recursive watch name the path of the watch.
	namesWatch bool
	// recursive counts the recursive watches of a table. If it is zero, trigger does
	// not look at the ancestors.
	recursive [tableCount]int
	deliver   func(c *conn, t zoodefs.EventType, path string, zxid int64, a []jute.ACL)
}

func newWatchManager(cfg *config, deliver func(*conn, zoodefs.EventType, string, int64, []jute.ACL)) *watchManager {
	w := &watchManager{
		single: !cfg.traits.manyModes, namesWatch: cfg.has(QuirkEventOfWatch), deliver: deliver,
	}
	for i := range w.tables {
		w.tables[i] = watchTable{
			byPath: map[string]map[*conn]watchMode{},
			byConn: map[*conn]map[string]struct{}{},
		}
	}
	return w
}

func (w *watchManager) add(k tableKind, path string, c *conn, m watchMode) {
	t := &w.tables[k]
	if t.byPath[path] == nil {
		t.byPath[path] = map[*conn]watchMode{}
	}
	if t.byConn[c] == nil {
		t.byConn[c] = map[string]struct{}{}
	}
	old := t.byPath[path][c]
	if !w.single {
		m |= old
	}
	t.byPath[path][c] = m
	t.byConn[c][path] = struct{}{}
	w.count(k, old, m)
}

// count keeps the number of recursive watches right when a mode changes.
func (w *watchManager) count(k tableKind, old, now watchMode) {
	if old&watchRecursive != 0 {
		w.recursive[k]--
	}
	if now&watchRecursive != 0 {
		w.recursive[k]++
	}
}

// set stores the rest of a connection's watch on a path.
func (w *watchManager) set(k tableKind, path string, c *conn, old, now watchMode) {
	w.count(k, old, now)
	t := &w.tables[k]
	if now != 0 {
		t.byPath[path][c] = now
		return
	}
	delete(t.byPath[path], c)
	if len(t.byPath[path]) == 0 {
		delete(t.byPath, path)
	}
	delete(t.byConn[c], path)
	if len(t.byConn[c]) == 0 {
		delete(t.byConn, c)
	}
}

// trigger tells every connection that watches path, or recursively one of its
// ancestors, except the connections in skip. It returns the connections that it
// told.
func (w *watchManager) trigger(
	k tableKind, ev zoodefs.EventType, path string, zxid int64, a []jute.ACL, skip map[*conn]struct{},
) map[*conn]struct{} {
	var told map[*conn]struct{}
	tell := func(c *conn, path string) {
		if _, ok := skip[c]; ok {
			return
		}
		if _, ok := told[c]; ok {
			return
		}
		if told == nil {
			told = map[*conn]struct{}{}
		}
		told[c] = struct{}{}
		w.deliver(c, ev, path, zxid, a)
	}
	for c, m := range w.tables[k].byPath[path] {
		if m&(watchOnce|watchPersistent) != 0 {
			tell(c, path)
			w.set(k, path, c, m, m&^watchOnce)
		} else if ev != zoodefs.EventNodeChildrenChanged {
			tell(c, path)
		}
	}
	if w.recursive[k] == 0 || ev == zoodefs.EventNodeChildrenChanged {
		return told
	}
	for p := path; len(p) > 1; {
		p, _ = splitPath(p)
		named := path
		if w.namesWatch {
			named = rootName(p)
		}
		for c, m := range w.tables[k].byPath[rootName(p)] {
			if m&watchRecursive != 0 {
				tell(c, named)
			}
		}
	}
	return told
}

// remove takes the given modes away from a connection's watch, and reports whether
// there was such a watch.
func (w *watchManager) remove(k tableKind, path string, c *conn, m watchMode) bool {
	old, ok := w.tables[k].byPath[path][c]
	if !ok || old&m == 0 {
		return false
	}
	w.set(k, path, c, old, old&^m)
	return true
}

// has reports whether checkWatches finds a watch. Release 3.8 looks at the path
// only, so it also finds the watch of another connection.
func (w *watchManager) has(k tableKind, path string, c *conn, m watchMode) bool {
	if w.single {
		return len(w.tables[k].byPath[path]) > 0
	}
	return w.tables[k].byPath[path][c]&m != 0
}

// stumbles reports whether release 3.8 fails when it looks for a watch on path. It
// looks for the parent of the path, and fails if there is no slash.
func (w *watchManager) stumbles(k tableKind, path string) bool {
	if !w.single || path == "" || path[0] == '/' {
		return false
	}
	return !strings.Contains(path, "/") || w.recursive[k] > 0 && len(w.tables[k].byPath[path]) == 0
}

// forget removes everything a connection watches.
func (w *watchManager) forget(c *conn) {
	for k := range w.tables {
		for path := range w.tables[k].byConn[c] {
			w.set(tableKind(k), path, c, w.tables[k].byPath[path][c], 0)
		}
	}
}

// size returns the number of (path, connection) pairs in both tables.
func (w *watchManager) size() int {
	n := 0
	for _, t := range w.tables {
		for _, paths := range t.byConn {
			n += len(paths)
		}
	}
	return n
}
