package watches

import (
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// suffices reports whether e stands, and tells its readers all that they want to hear of.
func (t *table) suffices(e *lasting) bool {
	return t.stands(e) && (e.deep || !e.recursive())
}

// add makes r a reader of the persistent watch on path. It is told to read when the watch
// stands.
func (t *table) add(path string, r Reader, deep bool) {
	d := t.details(path)
	if d.last == nil {
		d.last = &lasting{}
		t.lastings++
	}
	e := d.last
	e.readers = append(e.readers, lastingReader{r, deep})
	e.since = time.Time{}
	if t.suffices(e) || t.stands(e) && !deep {
		r.Missed(nil)
	} else {
		e.due = true
		if t.stands(e) { // it is set anew for r, and tells less meanwhile
			e.why = errDisarmed
		}
	}
	t.settle(path)
}

// remove takes a reader away from the persistent watch on path.
func (t *table) remove(path string, r Reader, now time.Time) {
	e := t.lasting(path)
	if e == nil {
		return
	}
	e.readers = slices.DeleteFunc(e.readers, func(other lastingReader) bool { return other.Reader == r })
	e.due = e.due && !t.suffices(e)
	if t.busy(path) == nil { // otherwise the end of the change does it
		t.abandon(path, now)
	}
	t.settle(path)
}

// abandon deals with a persistent watch if it has no readers.
func (t *table) abandon(path string, now time.Time) {
	d := t.details(path)
	e := d.last
	if e == nil || len(e.readers) > 0 {
		return
	}
	e.due = false
	if t.stands(e) || e.astray {
		e.since = now
	} else { // no server has it
		t.drop(d)
	}
}

// fail ends the readers of a watch that cannot be set.
func (t *table) fail(path string, err error) {
	d := t.details(path)
	if d.last != nil {
		for _, r := range d.last.readers {
			r.End(err)
		}
		t.drop(d)
	}
	t.settle(path)
}

// close ends all readers: the client is closed.
func (t *table) close(err error) {
	for path := range t.places {
		if t.lasting(path) != nil {
			t.fail(path, err)
		}
	}
	for l := range t.feeds {
		l.End(err)
	}
	clear(t.feeds)
}

// tellLasting tells the readers of persistent watches of an event. Readers of a watch that
// does not stand on this connection yet will be told to read instead.
func (t *table) tellLasting(ev wire.Event, now time.Time) {
	if t.lastings == 0 {
		return
	}
	if ev.Type == eventPersistentWatchRemoved {
		t.disarmed(ev.Path, now)
		return
	}
	switch ev.Type {
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged, zk.EventNodeChildrenChanged:
	default:
		return // a server may send anything
	}
	if !strings.HasPrefix(ev.Path, "/") {
		return
	}
	// If this watch is recursive, the server sends "children changed" for another
	// watch.
	if e := t.lasting(ev.Path); t.stands(e) && (ev.Type != zk.EventNodeChildrenChanged || !e.deep) {
		for _, r := range e.readers {
			r.Tell(ev)
		}
	}
	if ev.Type == zk.EventNodeChildrenChanged {
		return // recursive watches tell which child it was
	}
	for path := ev.Path; path != "/"; {
		path = parent(path)
		e := t.lasting(path)
		if !t.stands(e) || !e.deep {
			continue
		}
		for _, r := range e.readers {
			switch {
			case r.deep:
				r.Tell(ev)
			case ev.Type != zk.EventNodeDataChanged && path == parent(ev.Path): // as its own watch would have said it
				of := ev
				of.Type, of.Path = zk.EventNodeChildrenChanged, path
				r.Tell(of)
			}
		}
	}
}

// disarmed is called when a server says that it has removed a persistent watch.
func (t *table) disarmed(path string, now time.Time) {
	if e := t.lasting(path); e != nil && len(e.readers) > 0 && t.busy(path) == nil {
		e.connection, e.due, e.why = 0, true, errDisarmed
		t.dropped(path, dataSide|childSide, now)
	}
}

// parent is the path above an absolute path.
func parent(path string) string { return path[:max(1, strings.LastIndexByte(path, '/'))] }
