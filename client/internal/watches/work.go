package watches

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

const (
	// watchesAtOnce bounds how many watches one write sets or removes. Heartbeats and the
	// requests of callers come between two of these writes, so it must not be many.
	watchesAtOnce = 64
	// watchLinger is how long a watch without readers stays on the server. Most fire
	// within it, because the node is about to be deleted. Or the reader comes back to
	// wait again.
	watchLinger = time.Second
)

// watchChange is a request that sets or removes the watches of a path. The path is busy until
// the request is answered.
type watchChange struct {
	at   spot
	flag int32 // of the request
}

// response is what the server said to a watchChange.
type response struct {
	carriedOut bool
	stays      bool  // it was answered, and nothing was changed
	refused    error // it cannot be carried out
}

// takeDue takes the persistent watches that are to be set next. It takes them from listed.
// Once that is empty, takeDue lists all that are due: a list for each batch would cost more
// than all the requests. ended is closed when the requests are answered.
func (t *table) takeDue(listed *[]string, ended <-chan struct{}) (batch []watchChange) {
	if batch = t.takeListed(listed, ended); len(batch) == 0 {
		*listed = slices.Sorted(maps.Keys(t.due))
		batch = t.takeListed(listed, ended)
	}
	return batch
}

func (t *table) takeListed(listed *[]string, ended <-chan struct{}) (batch []watchChange) {
	for len(*listed) > 0 && len(batch) < watchesAtOnce {
		path := (*listed)[0]
		*listed = (*listed)[1:]
		e := t.lasting(path)
		if e == nil || !e.due || !t.free(path) {
			continue
		}
		e.connection, e.deep = 0, e.recursive()
		t.details(path).busy = ended
		u := watchChange{at: spot{path: path}, flag: wire.WatchPersistent}
		if e.deep {
			u.flag = wire.WatchRecursive
		}
		batch = append(batch, u)
	}
	return batch
}

// stand is called with the answer to a request of takeDue. connection is the one on which it
// was taken. If the watch stands, its readers are told to read.
func (t *table) stand(u watchChange, is response, connection int, now time.Time) {
	path := u.at.path
	t.details(path).busy = nil
	defer t.settle(path)
	e := t.lasting(path)
	switch {
	case e == nil: // the client is closed
		return
	case is.refused != nil:
		t.fail(path, is.refused)
		t.dropped(path, dataSide|childSide, now)
		return
	case is.carriedOut && t.connection == connection:
		e.connection, e.astray = connection, false
		e.due = !t.suffices(e)
		if e.deep {
			// Before ZooKeeper 3.9 the server has forgotten this watch, or it relied
			// on e.
			t.dropped(path, childSide, now)
		}
		for _, r := range e.readers {
			if e.deep || !r.deep {
				r.Missed(e.why)
			}
		}
	case is.carriedOut:
		e.astray = true
	}
	t.abandon(path, now)
}

// refuse ends the readers of all persistent watches that are due: the servers know none.
func (t *table) refuse(err error, now time.Time) {
	for _, path := range slices.Sorted(maps.Keys(t.due)) {
		stood := t.stands(t.lasting(path))
		if t.fail(path, err); stood { // otherwise no one-shot watch relies on it
			t.dropped(path, dataSide|childSide, now)
		}
	}
}

// nextRemoval returns how long it takes until a watch may be removed. some is false if there
// is none.
func (t *table) nextRemoval(now time.Time) (wait time.Duration, some bool) {
	t.eachIdle(func(_ spot, since time.Time) {
		if left := since.Add(watchLinger).Sub(now); !some || left < wait {
			wait, some = left, true
		}
	})
	return wait, some
}

// eachIdle calls f for each watch without readers that may be removed, and since when it has
// none.
func (t *table) eachIdle(f func(at spot, since time.Time)) {
	for path := range t.idle {
		for _, s := range []side{0, dataSide, childSide} {
			if since := t.idleSince(spot{path, s}); !since.IsZero() {
				f(spot{path, s}, since)
			}
		}
	}
}

// idleSince is since when a watch that may be removed has no readers, zero for others. With a
// one-shot watch a persistent watch on the path might be removed.
func (t *table) idleSince(at spot) (since time.Time) {
	e := t.lasting(at.path)
	switch {
	case !t.free(at.path):
		return since
	case at.side == 0 && e != nil:
		return e.since
	case at.side == 0 || e != nil || t.hasFeed(at):
		return since
	}
	o := t.one(at)
	if o.on != nil && o.on.wanted > 0 {
		return since
	}
	return o.left.since
}

// listIdle lists what may be removed now: the persistent watches first.
func (t *table) listIdle(now time.Time) (all []spot) {
	old := now.Add(-watchLinger)
	t.eachIdle(func(at spot, since time.Time) {
		if !since.After(old) {
			all = append(all, at)
		}
	})
	slices.SortFunc(all, func(a, b spot) int {
		return cmp.Or(cmp.Compare(min(a.side, 1), min(b.side, 1)), cmp.Compare(a.path, b.path), cmp.Compare(a.side, b.side))
	})
	return all
}

// takeIdle takes the next watches of a list that may still be removed. A reader that wants to
// watch there waits until ended is closed.
func (t *table) takeIdle(listed *[]spot, ended <-chan struct{}, now time.Time) (batch []watchChange) {
	old := now.Add(-watchLinger)
	for len(*listed) > 0 && len(batch) < watchesAtOnce {
		at := (*listed)[0]
		*listed = (*listed)[1:]
		since := t.idleSince(at)
		if since.IsZero() || since.After(old) {
			continue
		}
		d := t.details(at.path)
		u := watchChange{at: at}
		switch at.side {
		case 0:
			u.flag = wire.RemoveAny // with it all others on the path are removed
			d.last.since, d.last.connection, d.last.astray = time.Time{}, 0, false
		case dataSide:
			u.flag = wire.RemoveData
		case childSide:
			u.flag = wire.RemoveChildren
		}
		if at.side != 0 {
			o := &d.one[at.side.index()]
			o.left = leftover{}
			if o.on != nil {
				o.on.stray = false
				t.fire(o.on, errStopped, now)
			}
		}
		d.busy = ended
		t.settle(at.path)
		batch = append(batch, u)
	}
	return batch
}

// removed is called with the answer to a request of takeIdle. connection is the one on which
// it was taken. If the server knows no such watch, it was dropped with its connection.
func (t *table) removed(u watchChange, is response, connection int, now time.Time) {
	path := u.at.path
	d := t.details(path)
	d.busy = nil
	stays := is.stays && t.connection == connection
	switch {
	case u.at.side == 0 && stays:
		if d.last != nil {
			d.last.connection = connection
		}
	case u.at.side == 0:
		// The watches that it covered are gone, and all others that the server kept for the
		// path.
		t.dropped(path, dataSide|childSide, now)
	case stays:
		t.leave(u.at, false, now)
	}
	t.abandon(path, now) // a reader may have come and gone meanwhile
	t.settle(path)
}

// keepAll stops removing watches: the servers cannot.
func (t *table) keepAll() {
	for _, path := range slices.Collect(maps.Keys(t.idle)) {
		d := t.details(path)
		d.one[0].left, d.one[1].left = leftover{}, leftover{}
		if d.last != nil {
			d.last.since = time.Time{}
		}
		t.settle(path)
	}
}
