// How one-shot watches are shared. A reader takes the watch on its key by share, before its
// read leaves. The read arms the watch, unless an earlier read has. An event fires the watch
// for all its readers. If the last reader gives up before, the watch is unwanted. sweep.go
// removes it from the server a moment later. A new connection, or the end of the session,
// fires all.
// Persistent watches are in lasting.go and arm.go, and the watches of feeds in audience.go.

package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// watchKey tells the one-shot watches of a session apart.
type watchKey struct {
	op   wire.Op // of the read that leaves the watch
	path string
}

// unwanted is what is known of a watch without a reader.
type unwanted struct {
	since time.Time
	// The request that sets the watch was given up before the answer. The next event may
	// be that of an earlier watch, and come before this watch stands.
	coming bool
}

// sharedWatch is a one-shot watch. All readers of the same key share it.
type sharedWatch struct {
	hub   *hub
	key   watchKey
	done  chan struct{} // closed when fired
	event zk.EventType  // set before done is closed
	err   error         // set before done is closed

	number uint64 // counts the watches of the hub
	conn   uint64 // the connection that a read has armed it on, 0 if none has yet; guarded by hub.mu
	wanted int    // readers that share it and have not given up; guarded by hub.mu
	stray  bool   // a request to arm it was given up unanswered; guarded by hub.mu
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

// watchedRead is a read whose reader shares a watch.
type watchedRead struct {
	w    *sharedWatch
	x    *wire.Exchange
	late atomic.Bool // w had fired when the answer came, as far as is known
	asks bool        // it is counted in hub.asking; guarded by hub.mu
	err  error       // of the read
}

// hub has the watches of one session. It does not use go-zookeeper's own watch channels.
// They cannot be given up. They lose events when a reconnection arms them again, and their
// re-arming races with traffic. The hub's events come from package wire.
//
// A server keeps one-shot and persistent watches in the same tables: one for data
// (getData, exists) and one for children. Before ZooKeeper 3.9 a table has one mode
// for each path and connection, so a request replaces the watch of the other mode
// (ZOOKEEPER-4466). The hub therefore keeps to two rules. Requests that arm or remove
// watches of the same path do not overlap, unless all are one-shot. Where a
// persistent watch stands, the hub asks for no other.
type hub struct {
	s   *sessionState
	all *lastingWatches // of the client
	mu  *sync.Mutex     // of all; guards the rest; never held across I/O

	watches   map[watchKey]*sharedWatch
	shared    uint64                   // how many there have been
	audiences map[string]audience      // of the one-shot watches of feeds; none is empty
	asking    map[string]int           // how many requests that are to arm one-shot watches there have no place in the connection yet, or are of feeds
	unwanted  map[watchKey]unwanted    // on the server, and without a reader
	busy      map[string]chan struct{} // paths whose watches a request is about to change; closed when it has
	arming    bool                     // arm runs
	sweeping  bool                     // sweep runs
	over      error                    // why no more watches are possible
}

func newHub(s *sessionState) *hub {
	all := s.core.lasting
	return &hub{
		s: s, all: all, mu: &all.mu,
		watches: map[watchKey]*sharedWatch{}, audiences: map[string]audience{}, asking: map[string]int{},
		unwanted: map[watchKey]unwanted{}, busy: map[string]chan struct{}{},
	}
}

// share makes the caller one of the readers of the watches on the nodes at paths. The caller
// sends the reads, and calls readAll with their results. Unless the watch of a read fires,
// the caller ends its wait with giveUp. While a request is about to change the watches of one
// of the paths, share waits, until ctx ends.
func (h *hub) share(ctx context.Context, op wire.Op, paths []string) ([]*watchedRead, error) {
	for {
		reads, busy, err := h.tryShare(op, paths)
		if busy == nil {
			return reads, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctxerr.Ended(ctx)
		}
	}
}

// tryShare is share without waiting. busy is closed when another try is worthwhile, and nil
// if this one has ended.
func (h *hub) tryShare(op wire.Op, paths []string) (reads []*watchedRead, busy chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return nil, nil, h.over
	}
	for _, path := range paths {
		if busy := h.busy[path]; busy != nil {
			return nil, busy, nil
		}
	}
	reads = make([]*watchedRead, len(paths))
	for i, path := range paths {
		reads[i] = h.shareLocked(watchKey{op, path})
	}
	return reads, nil, nil
}

// shareLocked begins one read. Several reads may arm the watch on key at the same time: on
// the server they leave one watch. So no reader waits for the read of another one. A read
// needs no watch of its own if one stands.
func (h *hub) shareLocked(key watchKey) *watchedRead {
	w, ok := h.watches[key]
	if !ok {
		h.shared++
		w = &sharedWatch{hub: h, key: key, done: make(chan struct{}), number: h.shared}
		h.watches[key] = w
	}
	w.wanted++
	w.stray = w.stray || h.unwanted[key].coming
	delete(h.unwanted, key)
	r := &watchedRead{w: w, x: asked(key.op, key.path)}
	if w.conn == 0 && !h.covered(key) {
		h.asking[key.path]++
		r.asks, r.x.Request.Watch = true, true
		r.x.OnAnswer = func() { r.late.Store(w.fired()) }
	}
	return r
}

// readAll is called with the results of reads that share began. The watch of a read may
// have fired meanwhile.
func (h *hub) readAll(reads []*watchedRead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range reads {
		h.queuedLocked(r)
		if r.err == nil {
			h.armedLocked(r)
		} else {
			h.failedLocked(r)
		}
	}
	h.startWorkLocked() // there may be a watch to remove, or a path is free
}

// queued is called when reads that share began have their places among the requests of the
// connection. Later requests that change watches come behind them. So they need not wait for
// the answers: readers that never stop would keep them out.
func (h *hub) queued(reads []*watchedRead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range reads {
		h.queuedLocked(r)
	}
	h.startWorkLocked() // the paths are free for the goroutines that arm and remove watches
}

// queuedLocked is queued for one read. A second call does nothing.
func (h *hub) queuedLocked(r *watchedRead) {
	if r.asks {
		r.asks = false
		h.askedLocked(r.w.key.path)
	}
}

// askedLocked notes that a request that is to arm a watch on path keeps no change of
// watches waiting any more.
func (h *hub) askedLocked(path string) {
	if h.asking[path]--; h.asking[path] == 0 {
		delete(h.asking, path)
	}
}

// armedLocked is called when the server has answered r.
func (h *hub) armedLocked(r *watchedRead) {
	w, x := r.w, r.x
	if !x.Request.Watch {
		return
	}
	if h.watches[w.key] == w {
		switch w.conn {
		case 0:
			w.conn = x.Connection()
			return
		case x.Connection():
			return
		default: // one of the two connections is lost, and up is about to be called
			h.fireLocked(w, zk.EventNotWatching, errReconnected)
		}
	}
	// If the event came before the answer, it was that of an earlier watch. Or the read has
	// left on a new connection. Then the server has a watch that no reader knows.
	if h.watches[w.key] == nil && (r.late.Load() || errors.Is(w.err, errReconnected)) {
		h.unwantLocked(w.key, false)
	}
}

// failedLocked is called when r has failed. Its reader does not wait for the watch. The
// other readers do: each has armed it, or knows that it stands.
func (h *hub) failedLocked(r *watchedRead) {
	w, x := r.w, r.x
	w.wanted--
	now := h.watches[w.key]
	perhaps := x.Request.Watch && x.Sent() && (!x.Answered() || x.Err() != nil || x.Reply.Code == wire.CodeReplyTooLarge)
	if now != nil && now != w || now == w && w.wanted > 0 {
		now.stray = now.stray || perhaps && !x.Answered()
		return
	}
	stands := now == w && w.conn != 0
	stray := now == w && w.stray
	w.stray = false
	if now == w && !stands {
		h.fireLocked(w, zk.EventNotWatching, r.err)
	}
	// The server may have done the read all the same, and have the watch.
	if stands || perhaps || stray {
		h.unwantLocked(w.key, stray || !x.Answered() && !stands)
	}
}

// giveUp says that one reader does not wait for w any more.
func (h *hub) giveUp(w *sharedWatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.wanted--; w.wanted == 0 && h.watches[w.key] == w {
		h.unwantLocked(w.key, w.stray)
	}
}

// unwantLocked notes that the server may have a watch of key that has no reader.
func (h *hub) unwantLocked(key watchKey, coming bool) {
	h.unwanted[key] = unwanted{time.Now(), coming}
	h.startWorkLocked()
}

// goneLocked is called when an event has ended the server's watch of key.
func (h *hub) goneLocked(key watchKey) {
	if !h.unwanted[key].coming {
		delete(h.unwanted, key)
	}
}

// fireLocked ends w for all its readers. A read by one of them arms a new watch.
func (h *hub) fireLocked(w *sharedWatch, event zk.EventType, err error) {
	delete(h.watches, w.key)
	h.goneLocked(w.key)
	w.event, w.err = event, err
	close(w.done)
	if w.stray && !errors.Is(err, errReconnected) {
		h.unwantLocked(w.key, true)
	}
}

// dispatch runs on the reading goroutine. The replies that the server sent after the
// event are read after it.
func (h *hub) dispatch(ev wire.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.tellLocked(h, ev)
	h.fireAudienceLocked(ev.Path, sides(ev.Type), func(f *feed) { f.hear(ev) })
	for _, op := range firedBy(ev.Type) {
		if w, ok := h.watches[watchKey{op, ev.Path}]; ok {
			h.fireLocked(w, ev.Type, nil)
		}
	}
}

// firedBy are the reads whose watches an event ends. No server sends the two events
// of removals yet; ZooKeeper's own client makes them up when it removes watches.
func firedBy(t zk.EventType) []wire.Op {
	switch t {
	case zk.EventNodeCreated:
		return []wire.Op{wire.OpExists}
	case zk.EventNodeDataChanged, eventDataWatchRemoved:
		return []wire.Op{wire.OpGetData, wire.OpExists}
	case zk.EventNodeChildrenChanged, eventChildWatchRemoved:
		return []wire.Op{wire.OpGetChildren}
	case zk.EventNodeDeleted:
		return []wire.Op{wire.OpGetData, wire.OpExists, wire.OpGetChildren}
	default:
		return nil
	}
}

// Types of events without a name in go-zookeeper (Watcher.Event.EventType).
const (
	eventDataWatchRemoved       zk.EventType = 5
	eventChildWatchRemoved      zk.EventType = 6
	eventPersistentWatchRemoved zk.EventType = 7
)

// up is called when a server has accepted the session. reattached says that it is not the
// first server. A change may have happened while there was no connection, and the servers
// have dropped the watches. So all readers read again. The read of a quick reader may have
// left on the new connection before this call; see armed.
func (h *hub) up(reattached bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fireAllLocked(errReconnected)
	h.audiences = map[string]audience{}
	maps.DeleteFunc(h.unwanted, func(_ watchKey, u unwanted) bool { return !u.coming })
	h.all.upLocked(h, reattached)
	h.startWorkLocked()
}

// end fires all watches: the session is over, and no more watches are possible.
func (h *hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over == nil {
		h.over = err
	}
	h.audiences = map[string]audience{}
	h.fireAllLocked(err)
}

// fireAllLocked fires the one-shot watches, in the order in which readers asked for them. So
// the readers that wake do not depend on the order of a map.
func (h *hub) fireAllLocked(err error) {
	all := slices.SortedFunc(maps.Values(h.watches), func(a, b *sharedWatch) int { return cmp.Compare(a.number, b.number) })
	for _, w := range all {
		h.fireLocked(w, zk.EventNotWatching, err)
	}
}

// firePathLocked fires all one-shot watches on path.
func (h *hub) firePathLocked(path string, err error) {
	h.fireAudienceLocked(path, dataSide|childSide, (*feed).missed)
	for _, op := range []wire.Op{wire.OpGetData, wire.OpExists, wire.OpGetChildren} {
		if w, ok := h.watches[watchKey{op, path}]; ok {
			h.fireLocked(w, zk.EventNotWatching, err)
		}
	}
}

// free reports whether a request may change the watches of path. No other request may be
// about to, and no request that arms a one-shot watch on path may come behind it.
func (h *hub) free(path string) bool {
	return h.busy[path] == nil && h.asking[path] == 0
}

// occupy is called before a request that changes the watches of path, and vacate after it.
func (h *hub) occupy(path string) { h.busy[path] = make(chan struct{}) }

func (h *hub) vacate(path string) {
	close(h.busy[path])
	delete(h.busy, path)
}

// startWorkLocked starts the goroutines that arm and that remove watches, if there is work
// for them. Each ends when it has no work left.
func (h *hub) startWorkLocked() {
	if h.over != nil {
		return
	}
	if !h.arming && h.all.hub == h && len(h.all.due) > 0 && h.s.begin() {
		h.arming = true
		go h.arm() // ends when everything is armed, or with the connection
	}
	if !h.sweeping && len(h.unwanted)+len(h.all.readerless) > 0 && h.s.begin() {
		h.sweeping = true
		go h.sweep() // ends when nothing is left over, or with the session
	}
}

// change sends requests that change watches, and waits for the answers. The requests'
// paths are occupied, and readers may wait for these. So if the server does not answer, the
// connection is dropped, and all watches are lost with it.
func (h *hub) change(xs []*wire.Exchange) {
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(h.s.ctx, h.s.link.Timeout()/3, errNoAnswer)
	defer cancel()
	err := h.s.link.Do(ctx, xs...)
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		h.s.link.DropLive(begun, errNoAnswer)
	}
}

var errNoAnswer = errors.New("a request to change watches was not answered in time")
