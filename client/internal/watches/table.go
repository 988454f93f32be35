package watches

import (
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// side is one of the two tables in which a server keeps watches, or both.
type side uint8

const (
	dataSide  side = 1 << iota // getData and exists
	childSide                  // getChildren
)

// index is where a place has what belongs to one side.
func (s side) index() int { return int(s >> 1) }

// spot is what a server keeps one watch for. A persistent watch has no side.
type spot struct {
	path string
	side side
}

// Reader hears of the watches that it reads by. Its methods run with the lock of the table
// held, and must not block.
type Reader interface {
	Tell(ev wire.Event)
	Missed(why error) // changes before now may have been missed, and a one-shot watch is gone
	End(err error)    // nothing follows
}

// table is what the servers of a client keep on each path and side, and who hears of it.
// It has no I/O, clock or goroutine: its methods are what happens, and what they return is
// what to do. A server keeps one-shot and persistent watches in the same tables. Before
// ZooKeeper 3.9 a table has one mode for each path and connection, so a request replaces the
// watch of the other mode (ZOOKEEPER-4466). The table therefore keeps to two rules. Requests
// that set or remove watches of the same path do not overlap, unless all are one-shot.
// Where a persistent watch stands, the table asks for no other.
//
//	state       share, listen        answered    event          all leave      take         answered again   up
//	none        asked: ask           -           -              -              -            -                -
//	asked       asked: ask again     stands      none: tell     astray         -            -                none: tell
//	stands      stands               -           none: tell     left           -            -                none: tell
//	left        stands, or astray    -           none           -              changing     -                none
//	astray      asked: ask           astray      astray         -              changing     -                astray
//	due         due                  -           due: tell      none           changing     -                due
//	persistent  persistent: tell     -           the same: tell left           -            -                due: tell
//	changing    wait until it ends   -           the same       the same       -            none or left,    the same
//	                                                                                        persistent, due
//
// A watch is astray if the request for it was given up without an answer. It may come to
// stand at any time, also behind an event of an earlier watch: no event ends it here. A
// watch that is left or astray is removed once it has lingered. The states due and
// persistent are those of a path, and stand beside those of its sides.
type table struct {
	places   map[string]*place
	feeds    map[*listener]struct{}
	due      map[string]struct{} // an index: where a persistent watch is to be set
	idle     map[string]struct{} // an index: where a watch is to be removed
	lastings int                 // how many persistent watches there are

	shared     uint64 // how many one-shot watches there have been
	connection int    // counts the connections that were accepted
}

// place is what the table knows of a path. A cache of a large tree may have two watches on
// each node, so the rest is elsewhere.
type place struct {
	feeds  [2]*listeners // whom the one-shot watches tell that feeds have set, by side
	asking int32         // requests to set one-shot watches that have no place in the connection yet, or are of feeds
	more   *details      // nil for most
}

type details struct {
	one  [2]oneShot
	last *lasting
	busy <-chan struct{} // a request is about to change the watches; closed when it has
}

// oneShot is a one-shot watch that readers share, or that is left over.
type oneShot struct {
	on   *sharedWatch // nil if no reader knows it
	left leftover
}

// lasting is the persistent watch on a path, shared by all its readers: a server may
// keep no more than one mode. It outlives connections and sessions: the client sends it to
// each server that accepts a session. When that server has answered, the client tells the
// readers to read again.
type lasting struct {
	readers    []lastingReader
	connection int       // the connection that it was set on last
	deep       bool      // as a recursive one
	astray     bool      // a request of an earlier connection may have set it on the newest
	due        bool      // it is to be set on the newest connection
	since      time.Time // it stands there, and has had no readers since; zero otherwise
	why        error     // why its readers are told to read when it stands next
}

type lastingReader struct {
	Reader

	deep bool // it wants to hear of nodes below the path
}

// recursive reports whether a reader wants to hear of nodes below the path.
func (e *lasting) recursive() bool {
	return slices.ContainsFunc(e.readers, func(r lastingReader) bool { return r.deep })
}

// leftover is a watch that the server may have, and that has no reader. It is zero if there
// is none.
type leftover struct {
	since time.Time
	// The request that sets the watch was given up before the answer. The next event may
	// be that of an earlier watch, and come before this watch stands.
	coming bool
}

// sharedWatch is a one-shot watch. All readers of the same spot share it.
type sharedWatch struct {
	at    spot
	done  chan struct{} // closed when fired
	event zk.EventType  // set before done is closed
	err   error         // set before done is closed

	number uint64 // counts the watches of the table
	conn   uint64 // the connection that a read has set it on, 0 if none has yet; guarded by the table's lock
	wanted int    // readers that share it and have not given up; guarded as conn
	stray  bool   // a request to set it was given up unanswered; guarded as conn
	heir   bool   // the server may have had the watch before; guarded as conn
}

// fired reports whether w has fired.
func (w *sharedWatch) fired() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *sharedWatch) Tell(ev wire.Event) { w.event = ev.Type; close(w.done) }
func (w *sharedWatch) Missed(why error)   { w.event, w.err = zk.EventNotWatching, why; close(w.done) }
func (w *sharedWatch) End(err error)      { w.Missed(err) }

// listener is a reader of many one-shot watches, each of which it sets itself.
type listener struct {
	Reader

	alone   *listeners      // this one; constant
	hearing map[string]side // the watches that tell it, by path; guarded by the table's lock
}

// listeners are never changed: a watch that tells one has its [listener.alone].
type listeners struct{ all []*listener }

func newListener(r Reader) *listener {
	l := &listener{Reader: r, hearing: map[string]side{}}
	l.alone = &listeners{[]*listener{l}}
	return l
}

func (ls *listeners) has(l *listener) bool { return ls != nil && slices.Contains(ls.all, l) }

func newTable() table {
	return table{
		places: map[string]*place{}, feeds: map[*listener]struct{}{},
		due: map[string]struct{}{}, idle: map[string]struct{}{},
	}
}

// place returns that of path, and makes it if need be.
func (t *table) place(path string) *place {
	p := t.places[path]
	if p == nil {
		p = &place{}
		t.places[path] = p
	}
	return p
}

// details returns those of path, and makes them if need be.
func (t *table) details(path string) *details {
	p := t.place(path)
	if p.more == nil {
		p.more = &details{}
	}
	return p.more
}

// one returns what is known of a one-shot watch.
func (t *table) one(at spot) oneShot {
	if p := t.places[at.path]; p != nil && p.more != nil {
		return p.more.one[at.side.index()]
	}
	return oneShot{}
}

// lasting returns the persistent watch on path, nil if there is none.
func (t *table) lasting(path string) *lasting {
	if p := t.places[path]; p != nil && p.more != nil {
		return p.more.last
	}
	return nil
}

// stands reports whether e is set on the newest connection.
func (t *table) stands(e *lasting) bool {
	return e != nil && t.connection > 0 && e.connection == t.connection
}

// covered reports whether there is no need for a one-shot watch on a spot: a persistent
// watch stands that tells all that the one-shot watch would.
func (t *table) covered(at spot) bool {
	e := t.lasting(at.path)
	return t.stands(e) && (at.side != childSide || !e.deep)
}

func (t *table) drop(d *details) {
	d.last = nil
	t.lastings--
}

// busy returns what is closed when the watches of path have been changed, nil if no request
// is about to change them.
func (t *table) busy(path string) <-chan struct{} {
	if p := t.places[path]; p != nil && p.more != nil {
		return p.more.busy
	}
	return nil
}

// free reports whether a request may change the watches of path. No other request may be
// about to, and no request that sets a one-shot watch on path may come behind it.
func (t *table) free(path string) bool {
	p := t.places[path]
	return p == nil || p.asking == 0 && (p.more == nil || p.more.busy == nil)
}

// settle forgets what is empty of path, and notes what is to be done there.
func (t *table) settle(path string) {
	p := t.places[path]
	if p == nil {
		return
	}
	due, idle := false, false
	if d := p.more; d != nil {
		due = d.last != nil && d.last.due
		idle = d.last != nil && !d.last.since.IsZero() || d.one[0].left != leftover{} || d.one[1].left != leftover{}
		if *d == (details{}) {
			p.more = nil
		}
	}
	index(t.due, path, due)
	index(t.idle, path, idle)
	switch {
	case *p != place{}:
	case len(t.places) > 1:
		delete(t.places, path)
	default:
		t.places = map[string]*place{} // a map that was large stays large
	}
}

func index(set map[string]struct{}, path string, in bool) {
	if in {
		set[path] = struct{}{}
	} else {
		delete(set, path)
	}
}

// share makes the caller a reader of a one-shot watch. asks says that its read is to set it.
// Several reads may do so at the same time: on the server they leave one watch. So no reader
// waits for the read of another one. A read needs no watch of its own if one stands. If
// asks, the caller calls queued, and in any case answered with what became of the read.
// Unless the watch fires, a reader ends its wait with giveUp.
func (t *table) share(at spot) (w *sharedWatch, asks bool) {
	o := &t.details(at.path).one[at.side.index()]
	if o.on == nil {
		t.shared++
		o.on = &sharedWatch{at: at, done: make(chan struct{}), number: t.shared}
	}
	w = o.on
	w.wanted++
	w.stray, w.heir = w.stray || o.left.coming, w.heir || o.left != leftover{}
	o.left = leftover{}
	if asks = w.conn == 0 && !t.covered(at); asks {
		t.place(at.path).asking++
	}
	t.settle(at.path)
	return w, asks
}

// queued is called when a request that was to set a one-shot watch on path keeps no change
// of watches waiting any more.
func (t *table) queued(path string) {
	t.place(path).asking--
	t.settle(path)
}

// outcome is what became of a request that was to set a watch.
type outcome struct {
	asked    bool   // it was to set a watch
	sent     bool   // it may have reached a server
	answered bool   // the answer has come
	unread   bool   // the answer could not be read
	conn     uint64 // the connection that it was sent on
	late     bool   // the watch had fired when the answer came, as far as is known
	err      error  // nil if the watch was set
}

// answered notes what became of the read of a reader that shares w. If it has failed, its
// reader does not wait for w any more. The other readers do: each has set it, or knows that
// it stands.
func (t *table) answered(w *sharedWatch, f outcome, now time.Time) {
	if f.err != nil {
		t.failed(w, f, now)
	} else if f.asked {
		t.set(w, f, now)
	}
	t.settle(w.at.path)
}

func (t *table) set(w *sharedWatch, f outcome, now time.Time) {
	if t.one(w.at).on == w {
		switch w.conn {
		case 0:
			w.conn = f.conn
			return
		case f.conn:
			return
		default: // one of the two connections is lost, and up is about to be called
			t.fire(w, errReconnected, now)
		}
	}
	// If the event came before the answer, it was that of an earlier watch. Or the read has
	// left on a new connection. Then the server has a watch that no reader knows.
	if !f.late && !errors.Is(w.err, errReconnected) {
		return
	}
	switch on := t.one(w.at).on; {
	case on == nil:
		t.leave(w.at, false, now)
	case on.conn == 0: // its readers may yet give up before they set it
		on.heir = true
	}
}

func (t *table) failed(w *sharedWatch, f outcome, now time.Time) {
	w.wanted--
	on := t.one(w.at).on
	// The server may have done the read all the same, and have the watch.
	perhaps := f.asked && f.sent && (!f.answered || f.unread)
	if on != nil && on != w || on == w && w.wanted > 0 {
		on.stray = on.stray || perhaps && !f.answered
		return
	}
	stands := on == w && w.conn != 0
	stray := on == w && w.stray
	heir := on == w && w.heir
	if left := t.one(w.at).left; on == w && left != (leftover{}) { // of a feed
		stray, heir = stray || left.coming, true
	}
	w.stray = false
	if on == w && !stands {
		t.fire(w, f.err, now)
	}
	if stands || perhaps || stray || heir {
		t.leave(w.at, stray || perhaps && !f.answered, now)
	}
}

// giveUp says that one reader does not wait for w any more.
func (t *table) giveUp(w *sharedWatch, now time.Time) {
	if w.wanted--; w.wanted == 0 && t.one(w.at).on == w {
		t.leave(w.at, w.stray, now)
		t.settle(w.at.path)
	}
}

// resume makes one who gave up w a reader again, and reports whether w has not fired.
func (t *table) resume(w *sharedWatch) bool {
	if t.one(w.at).on != w {
		return false
	}
	w.wanted++
	t.details(w.at.path).one[w.at.side.index()].left = leftover{}
	t.settle(w.at.path)
	return true
}

// leave notes that the server may have a one-shot watch that has no reader.
func (t *table) leave(at spot, coming bool, now time.Time) {
	left := &t.details(at.path).one[at.side.index()].left
	*left = leftover{now, coming || left.coming}
}

// fire ends w for all its readers without an event. A read by one of them sets a new watch.
func (t *table) fire(w *sharedWatch, why error, now time.Time) {
	t.gone(w.at, func(r Reader) { r.Missed(why) }, now)
}

// gone is called when the server has no one-shot watch on a spot any more, except for one
// that is coming, perhaps on a new connection.
func (t *table) gone(at spot, tell func(Reader), now time.Time) {
	p := t.places[at.path]
	if p == nil || p.more == nil {
		return
	}
	o := &p.more.one[at.side.index()]
	if !o.left.coming {
		o.left = leftover{}
	}
	w := o.on
	if w == nil {
		return
	}
	o.on = nil
	if tell(w); w.stray {
		o.left = leftover{now, true}
	}
}

// ended is called when the server has no one-shot watches on path and some sides any more. It
// calls tell for each reader.
func (t *table) ended(path string, s side, tell func(Reader), now time.Time) {
	p := t.places[path]
	if p == nil {
		return
	}
	var told []*listener
	for _, one := range []side{dataSide, childSide} {
		if s&one == 0 {
			continue
		}
		if to := p.feeds[one.index()]; to != nil {
			for _, l := range to.all {
				l.deaf(path, one)
				if !slices.Contains(told, l) {
					told = append(told, l)
				}
			}
			p.feeds[one.index()] = nil
		}
	}
	for _, l := range told {
		tell(l)
	}
	for _, one := range []side{dataSide, childSide} {
		if s&one != 0 {
			t.gone(spot{path, one}, tell, now)
		}
	}
	t.settle(path)
}

// dropped ends all one-shot watches on path: the server has dropped them with another.
func (t *table) dropped(path string, s side, now time.Time) {
	t.ended(path, s, func(r Reader) { r.Missed(errDisarmed) }, now)
}

// Errors that fire watches.
var (
	errReconnected = errors.New("client: reconnected")                      // a change in between may have been missed
	errDisarmed    = errors.New("client: the server has dropped the watch") // together with another one on the same path
	errStopped     = errors.New("client: the watch was stopped")
)

// Types of events without a name in go-zookeeper (Watcher.Event.EventType).
const (
	eventDataWatchRemoved       zk.EventType = 5
	eventChildWatchRemoved      zk.EventType = 6
	eventPersistentWatchRemoved zk.EventType = 7
)

// hears reports whether the watch on a spot tells l.
func (t *table) hears(l *listener, at spot) bool { return l.hearing[at.path]&at.side != 0 }

// hasFeed reports whether the watch on a spot tells a feed.
func (t *table) hasFeed(at spot) bool {
	p := t.places[at.path]
	return p != nil && p.feeds[at.side.index()] != nil
}

// listen makes the watch on a spot tell l. It comes before the request that sets the watch,
// so no event comes too early. Reads set watches that stand too: of a node that the client
// could not read for a while, a server may have kept the event to itself. asks is false if
// a persistent watch stands. If asks, the caller calls listened with what became of the
// request.
func (t *table) listen(l *listener, at spot) (asks bool) {
	p := t.place(at.path)
	if asks = !t.covered(at); asks {
		p.asking++
	}
	switch to := &p.feeds[at.side.index()]; {
	case *to == nil:
		*to = l.alone
	case !(*to).has(l):
		*to = &listeners{append(slices.Clone((*to).all), l)}
	}
	l.hearing[at.path] |= at.side
	if p.more != nil {
		p.more.one[at.side.index()].left = leftover{}
		t.settle(at.path)
	}
	return asks
}

// listened notes what became of a request that was to set the watch on a spot for l. A watch
// that does not stand tells l no more: its reader knows that the request has failed. earlier
// says that the connection is the one of listen. givenUp says that the reader has not waited
// for the answer.
func (t *table) listened(l *listener, at spot, f outcome, earlier, givenUp bool, now time.Time) {
	t.place(at.path).asking--
	told := !t.hears(l, at)
	if f.err != nil {
		t.deafen(l, at)
	}
	left := false // a watch, by the request or by an earlier one, and unknown to all
	switch {
	case !f.sent:
		left = !told && earlier // an earlier one may stand
	case !f.answered: // otherwise the connection has ended, and its watches with it
		left = givenUp
	case f.unread:
		left = true
	case f.err == nil && told:
		// The request may have left on a new connection. Or the event was that of an
		// earlier watch, and came before this one. The feed may never read here again.
		left = true
	}
	// A request without an answer may set a watch after an event has ended the watch of
	// another reader. Or its own event comes, which ends no watch.
	coming := f.sent && !f.answered
	switch w := t.one(at).on; {
	case !left:
	case w != nil && w.wanted > 0:
		w.stray, w.heir = w.stray || coming, true
	case w != nil:
		t.leave(at, coming || w.stray, now)
	case coming || !t.hasFeed(at):
		t.leave(at, coming, now)
	}
	t.settle(at.path)
}

// deafen makes the watch on a spot tell l no more.
func (t *table) deafen(l *listener, at spot) {
	if !t.hears(l, at) {
		return
	}
	l.deaf(at.path, at.side)
	to := &t.places[at.path].feeds[at.side.index()]
	if rest := slices.DeleteFunc(slices.Clone((*to).all), func(other *listener) bool { return other == l }); len(rest) > 0 {
		*to = &listeners{rest}
	} else {
		*to = nil
	}
}

func (l *listener) deaf(path string, s side) {
	if l.hearing[path] &^= s; l.hearing[path] == 0 {
		delete(l.hearing, path)
	}
}

// follow makes l hear of new connections, and unfollow ends all its watches.
func (t *table) follow(l *listener) { t.feeds[l] = struct{}{} }

func (t *table) unfollow(l *listener, now time.Time) {
	delete(t.feeds, l)
	for path := range l.hearing {
		for _, one := range []side{dataSide, childSide} {
			at := spot{path, one}
			if !t.hears(l, at) {
				continue
			}
			if t.deafen(l, at); !t.hasFeed(at) && !t.one(at).left.coming {
				t.leave(at, false, now)
			}
		}
		t.settle(path)
	}
}
