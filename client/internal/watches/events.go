package watches

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// heard is called with an event of a server.
func (t *table) heard(ev wire.Event, now time.Time) {
	t.tellLasting(ev, now)
	t.ended(ev.Path, sides(ev.Type), func(r Reader) { r.Tell(ev) }, now)
}

// sides are those on which an event ends the one-shot watches. No server sends the two
// events of removals yet; ZooKeeper's own client makes them up when it removes watches.
func sides(t zk.EventType) side {
	switch t {
	case zk.EventNodeCreated, zk.EventNodeDataChanged, eventDataWatchRemoved:
		return dataSide
	case zk.EventNodeChildrenChanged, eventChildWatchRemoved:
		return childSide
	case zk.EventNodeDeleted:
		return dataSide | childSide
	default:
		return 0
	}
}

// up is called when a server has accepted the session. A change may have happened while there
// was no connection, and the servers have dropped the watches. So all readers read again. The
// read of a quick reader may have left on the new connection before this call; see set. why
// is what the readers of persistent watches are told.
func (t *table) up(why error, now time.Time) {
	t.connection++
	t.lose(errReconnected, now)
	for path, p := range t.places {
		d := p.more
		if d == nil {
			continue
		}
		for i := range d.one {
			if !d.one[i].left.coming {
				d.one[i].left = leftover{}
			}
		}
		if e := d.last; e != nil {
			e.since, e.astray = time.Time{}, false
			e.why = why
			if e.due = len(e.readers) > 0; !e.due && d.busy == nil {
				t.drop(d)
			}
		}
		t.settle(path)
	}
	for l := range t.feeds {
		l.Missed(nil)
	}
}

// lose fires all one-shot watches, in the order in which readers asked for them. So the
// readers that wake do not depend on the order of a map.
func (t *table) lose(why error, now time.Time) {
	var all []*sharedWatch
	for _, p := range t.places {
		for i, to := range p.feeds {
			if to != nil {
				for _, l := range to.all {
					if len(l.hearing) > 0 { // a map that was large stays large
						l.hearing = map[string]side{}
					}
				}
				p.feeds[i] = nil
			}
		}
		if p.more == nil {
			continue
		}
		for _, o := range p.more.one {
			if o.on != nil {
				all = append(all, o.on)
			}
		}
	}
	slices.SortFunc(all, func(a, b *sharedWatch) int { return cmp.Compare(a.number, b.number) })
	for _, w := range all {
		t.fire(w, why, now)
	}
}

// over ends the one-shot watches of a session. What becomes of its requests concerns nobody
// any more.
func (t *table) over(why error, now time.Time) {
	t.lose(why, now)
	for path, p := range t.places {
		p.asking = 0
		if d := p.more; d != nil {
			d.one, d.busy = [2]oneShot{}, nil
			if d.last != nil && len(d.last.readers) == 0 {
				t.drop(d)
			}
		}
		t.settle(path)
	}
}
