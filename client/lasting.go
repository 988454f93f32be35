package client

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// lastingWatches are the persistent watches of a client. They outlive connections and
// sessions: the client sends all of them to each server that accepts a session. When
// that server has answered, the client tells the readers to read again.
type lastingWatches struct {
	mu         sync.Mutex // guards the rest and all hubs; never held across I/O
	hub        *hub       // of the newest session that was accepted
	connection int        // counts the connections that were accepted
	why        error      // what may have been missed before the newest
	paths      map[string]*lasting
	due        map[string]*lasting  // to be armed on the newest connection
	readerless map[string]time.Time // armed there, and without readers since
	over       error                // the client is closed
	feeds      map[*feed]struct{}
}

// lasting is the persistent watch on a path, shared by all its readers: a server may
// keep no more than one mode.
type lasting struct {
	path       string
	readers    []*Changes
	connection int  // the connection that it was armed on last
	deep       bool // as a recursive one
}

func newLastingWatches() *lastingWatches {
	return &lastingWatches{paths: map[string]*lasting{}, due: map[string]*lasting{}, readerless: map[string]time.Time{}, feeds: map[*feed]struct{}{}}
}

// recursive reports whether a reader wants to hear of nodes below the path.
func (e *lasting) recursive() bool {
	return slices.ContainsFunc(e.readers, func(c *Changes) bool { return c.recursive })
}

// stands reports whether e is armed on the newest connection.
func (a *lastingWatches) stands(e *lasting) bool {
	return e != nil && a.hub != nil && e.connection == a.connection
}

// add makes c a reader. c is told to read when its watch stands.
func (a *lastingWatches) add(c *Changes) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil {
		return a.over
	}
	e := a.paths[c.full]
	if e == nil {
		e = &lasting{path: c.full}
		a.paths[c.full] = e
	}
	e.readers = append(e.readers, c)
	delete(a.readerless, c.full)
	if a.stands(e) && (e.deep || !c.recursive) {
		c.missed(nil)
		return nil
	}
	a.due[c.full] = e
	if a.hub != nil {
		a.hub.startWorkLocked()
	}
	return nil
}

// leave takes a reader away.
func (a *lastingWatches) leave(c *Changes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.paths[c.full]
	if e == nil {
		return
	}
	e.readers = slices.DeleteFunc(e.readers, func(other *Changes) bool { return other == c })
	if len(e.readers) > 0 {
		return
	}
	if a.hub == nil || a.hub.busy[e.path] == nil { // otherwise the goroutine that is busy with the path does it
		a.readerlessLocked(e)
	}
}

// readerlessLocked deals with a watch that has no readers.
func (a *lastingWatches) readerlessLocked(e *lasting) {
	if a.paths[e.path] != e {
		return
	}
	delete(a.due, e.path)
	if !a.stands(e) {
		delete(a.paths, e.path) // no server has it
		return
	}
	a.readerless[e.path] = time.Now()
	a.hub.startWorkLocked()
}

// upLocked is called when a server has accepted the session of h: no watch of an
// earlier connection stands any more.
func (a *lastingWatches) upLocked(h *hub, reattached bool) {
	a.hub, a.why = h, ErrSessionLost
	if reattached {
		a.why = errReconnected
	}
	a.connection++
	clear(a.readerless)
	for f := range a.feeds {
		if f.hearing = map[string]side{}; f.changes == nil {
			f.missed()
		}
	}
	for path, e := range a.paths {
		if len(e.readers) > 0 {
			a.due[path] = e
		} else if h.busy[path] == nil {
			delete(a.paths, path)
		}
	}
}

// end ends all readers.
func (a *lastingWatches) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = err
	for _, e := range a.paths {
		for _, c := range e.readers {
			c.end(err)
		}
	}
	for f := range a.feeds {
		if f.changes == nil {
			f.end(err)
		}
	}
	clear(a.feeds)
	clear(a.paths)
	clear(a.due)
	clear(a.readerless)
}

// covered reports whether there is no need for a one-shot watch on key: a persistent
// watch stands that tells all that the one-shot watch would. The caller holds h.mu.
func (h *hub) covered(key watchKey) bool {
	e := h.all.paths[key.path]
	return h.all.hub == h && h.all.stands(e) && (key.op != wire.OpGetChildren || !e.deep)
}

// tellLocked tells readers of an event. Readers of a watch that does not stand on
// this connection yet will be told to read instead.
func (a *lastingWatches) tellLocked(h *hub, ev wire.Event) {
	if a.hub != h || len(a.paths) == 0 {
		return
	}
	if ev.Type == eventPersistentWatchRemoved {
		h.disarmLocked(ev.Path)
		return
	}
	kind, ok := kinds[ev.Type]
	if !ok || !strings.HasPrefix(ev.Path, "/") {
		return // a server may send anything
	}
	// If this watch is recursive, the server sends "children changed" for another
	// watch.
	if e := a.paths[ev.Path]; a.stands(e) && (kind != ChangeChildren || !e.deep) {
		for _, c := range e.readers {
			c.tell(kind, ev.Path, ev)
		}
	}
	if kind == ChangeChildren {
		return // recursive watches tell which child it was
	}
	for path := ev.Path; path != "/"; {
		path = parent(path)
		e := a.paths[path]
		if !a.stands(e) || !e.deep {
			continue
		}
		for _, c := range e.readers {
			switch {
			case c.recursive:
				c.tell(kind, ev.Path, ev)
			case kind != ChangeData && path == parent(ev.Path): // as its own watch would have said it
				c.tell(ChangeChildren, path, ev)
			}
		}
	}
}

// disarmLocked is called when a server says that it has removed the watch.
func (h *hub) disarmLocked(path string) {
	if e := h.all.paths[path]; e != nil && len(e.readers) > 0 && h.busy[path] == nil {
		e.connection, h.all.due[path] = 0, e
		h.firePathLocked(path, errDisarmed)
		h.startWorkLocked()
	}
}

var kinds = map[zk.EventType]ChangeKind{ //nolint:gochecknoglobals // a constant table
	zk.EventNodeCreated:         ChangeCreated,
	zk.EventNodeDeleted:         ChangeDeleted,
	zk.EventNodeDataChanged:     ChangeData,
	zk.EventNodeChildrenChanged: ChangeChildren,
}

// parent is the path above an absolute path.
func parent(path string) string { return path[:max(1, strings.LastIndexByte(path, '/'))] }
