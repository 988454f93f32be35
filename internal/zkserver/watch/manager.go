// Package watch keeps the watches of one server: two tables of who watches which path.
package watch

import (
	"strings"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Mode is a set of ways in which a connection watches a path.
type Mode uint8

// Modes.
const (
	Once Mode = 1 << iota
	Persistent
	Recursive
)

// TableKind selects one of the server's two watch tables.
type TableKind int

// The tables.
const (
	DataTable  TableKind = iota // getData and exists
	ChildTable                  // getChildren
	tableCount
)

// watchTable maps paths to the connections that watch them, and back.
type watchTable[C any] struct {
	ByPath map[string]map[*C]Mode
	ByConn map[*C]map[string]struct{}
}

// Manager holds the watches of one server, whose connections are of type C. The
// server's mutex guards it.
type Manager[C any] struct {
	Tables [tableCount]watchTable[C]
	// single is set for releases that keep one mode per path and connection, that
	// of the last request (before ZOOKEEPER-4466).
	Single bool
	// namesWatch makes the event of a recursive watch name the path of the watch.
	namesWatch bool
	// recursive counts the recursive watches of a table. If it is zero, trigger does
	// not look at the ancestors.
	recursive [tableCount]int
	deliver   func(c *C, t zoodefs.EventType, path string, zxid int64, a []jute.ACL)
}

// New returns a manager of no watches, which tells of events by deliver.
func New[C any](single, namesWatch bool, deliver func(*C, zoodefs.EventType, string, int64, []jute.ACL)) *Manager[C] {
	w := &Manager[C]{
		Single: single, namesWatch: namesWatch, deliver: deliver,
	}
	for i := range w.Tables {
		w.Tables[i] = watchTable[C]{
			ByPath: map[string]map[*C]Mode{},
			ByConn: map[*C]map[string]struct{}{},
		}
	}
	return w
}

// Add makes c watch a path.
func (w *Manager[C]) Add(k TableKind, path string, c *C, m Mode) {
	t := &w.Tables[k]
	if t.ByPath[path] == nil {
		t.ByPath[path] = map[*C]Mode{}
	}
	if t.ByConn[c] == nil {
		t.ByConn[c] = map[string]struct{}{}
	}
	old := t.ByPath[path][c]
	if !w.Single {
		m |= old
	}
	t.ByPath[path][c] = m
	t.ByConn[c][path] = struct{}{}
	w.count(k, old, m)
}

// count keeps the number of recursive watches right when a mode changes.
func (w *Manager[C]) count(k TableKind, old, now Mode) {
	if old&Recursive != 0 {
		w.recursive[k]--
	}
	if now&Recursive != 0 {
		w.recursive[k]++
	}
}

// set stores the rest of a connection's watch on a path.
func (w *Manager[C]) set(k TableKind, path string, c *C, old, now Mode) {
	w.count(k, old, now)
	t := &w.Tables[k]
	if now != 0 {
		t.ByPath[path][c] = now
		return
	}
	delete(t.ByPath[path], c)
	if len(t.ByPath[path]) == 0 {
		delete(t.ByPath, path)
	}
	delete(t.ByConn[c], path)
	if len(t.ByConn[c]) == 0 {
		delete(t.ByConn, c)
	}
}

// Trigger tells every connection that watches path, or recursively one of its
// ancestors, except the connections in skip. It returns the connections that it
// told.
func (w *Manager[C]) Trigger(
	k TableKind, ev zoodefs.EventType, path string, zxid int64, a []jute.ACL, skip map[*C]struct{},
) map[*C]struct{} {
	var told map[*C]struct{}
	tell := func(c *C, path string) {
		if _, ok := skip[c]; ok {
			return
		}
		if _, ok := told[c]; ok {
			return
		}
		if told == nil {
			told = map[*C]struct{}{}
		}
		told[c] = struct{}{}
		w.deliver(c, ev, path, zxid, a)
	}
	for c, m := range w.Tables[k].ByPath[path] {
		if m&(Once|Persistent) != 0 {
			tell(c, path)
			w.set(k, path, c, m, m&^Once)
		} else if ev != zoodefs.EventNodeChildrenChanged {
			tell(c, path)
		}
	}
	if w.recursive[k] == 0 || ev == zoodefs.EventNodeChildrenChanged {
		return told
	}
	for p := path; len(p) > 1; {
		p = p[:strings.LastIndexByte(p, '/')]
		named := path
		if w.namesWatch {
			named = RootName(p)
		}
		for c, m := range w.Tables[k].ByPath[RootName(p)] {
			if m&Recursive != 0 {
				tell(c, named)
			}
		}
	}
	return told
}

// Remove takes the given modes away from a connection's watch, and reports whether
// there was such a watch.
func (w *Manager[C]) Remove(k TableKind, path string, c *C, m Mode) bool {
	old, ok := w.Tables[k].ByPath[path][c]
	if !ok || old&m == 0 {
		return false
	}
	w.set(k, path, c, old, old&^m)
	return true
}

// Has reports whether checkWatches finds a watch. Release 3.8 looks at the path
// only, so it also finds the watch of another connection.
func (w *Manager[C]) Has(k TableKind, path string, c *C, m Mode) bool {
	if w.Single {
		return len(w.Tables[k].ByPath[path]) > 0
	}
	return w.Tables[k].ByPath[path][c]&m != 0
}

// Stumbles reports whether release 3.8 fails when it looks for a watch on path. It
// looks for the parent of the path, and fails if there is no slash.
func (w *Manager[C]) Stumbles(k TableKind, path string) bool {
	if !w.Single || path == "" || path[0] == '/' {
		return false
	}
	return !strings.Contains(path, "/") || w.recursive[k] > 0 && len(w.Tables[k].ByPath[path]) == 0
}

// Forget removes everything a connection watches.
func (w *Manager[C]) Forget(c *C) {
	for k := range w.Tables {
		for path := range w.Tables[k].ByConn[c] {
			w.set(TableKind(k), path, c, w.Tables[k].ByPath[path][c], 0)
		}
	}
}

// Size returns the number of (path, connection) pairs in both tables.
func (w *Manager[C]) Size() int {
	n := 0
	for _, t := range w.Tables {
		for _, paths := range t.ByConn {
			n += len(paths)
		}
	}
	return n
}

// RootName returns the name of a parent path in the tables of watches.
func RootName(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
