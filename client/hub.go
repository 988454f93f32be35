// How one-shot watches are shared. A reader takes the watch on its key by share: the first
// reader arms it with a read, and the others rely on that. An event fires the watch for all
// its readers. If the last reader gives up before, the watch is unwanted. sweep.go removes it
// from the server a moment later. A new connection, or the end of the session, fires all.
// Persistent watches are in lasting.go and arm.go, and the watches of feeds in audience.go.

package client

import (
	"context"
	"errors"
	"maps"
	"sync"
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
	armed chan struct{} // closed when the read that arms it has returned
	event zk.EventType  // set before done is closed
	err   error         // set before done is closed

	conn   uint64 // the connection that it was set on, 0 if not by a read of its own; guarded by hub.mu
	wanted int    // readers that share it and have not given up; guarded by hub.mu
	stands bool   // armed is closed; guarded by hub.mu
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
	audiences map[string]audience      // of the one-shot watches of feeds; none is empty
	asking    map[string]int           // how many requests are to arm watches of feeds there
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

// share makes the caller one of the readers of the watch on key. If arm is true the caller
// has to arm the watch by a read. Unless the watch fires or cannot be armed, the caller ends
// its wait with giveUp. While a request is about to change the watches of the path, share
// waits, until ctx ends.
func (h *hub) share(ctx context.Context, key watchKey) (w *sharedWatch, arm bool, err error) {
	for {
		w, arm, busy, err := h.tryShare(key)
		if busy == nil {
			return w, arm, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, false, ctxerr.Ended(ctx)
		}
	}
}

// tryShare is share without waiting. busy is closed when another try is worthwhile, and nil
// if this one has ended.
func (h *hub) tryShare(key watchKey) (w *sharedWatch, arm bool, busy chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tryShareLocked(key)
}

func (h *hub) tryShareLocked(key watchKey) (w *sharedWatch, arm bool, busy chan struct{}, err error) {
	if h.over != nil {
		return nil, false, nil, h.over
	}
	if busy := h.busy[key.path]; busy != nil {
		return nil, false, busy, nil
	}
	w, ok := h.watches[key]
	if !ok {
		w = &sharedWatch{hub: h, key: key, done: make(chan struct{}), armed: make(chan struct{})}
		h.watches[key] = w
		if arm = !h.covered(key); !arm {
			w.standLocked()
		}
	}
	w.wanted++
	delete(h.unwanted, key)
	return w, arm, nil, nil
}

func (w *sharedWatch) standLocked() {
	w.stands = true
	close(w.armed)
}

// armed is called with the result of x, the read that was to arm w. After an error
// the next reader arms the watch. The watch may have fired meanwhile.
func (h *hub) armed(w *sharedWatch, x *wire.Exchange, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.standLocked()
	if err == nil {
		w.conn = x.Connection()
	}
	switch now := h.watches[w.key]; {
	case now == w && err != nil:
		h.fireLocked(w, zk.EventNotWatching, err)
		if x.Sent() && (!x.Answered() || x.Err() != nil || x.Reply.Code == wire.CodeReplyTooLarge) {
			h.unwantLocked(w.key, !x.Answered()) // the server may have it
		}
	case now == nil && x.Sent() && errors.Is(w.err, errReconnected):
		h.unwantLocked(w.key, !x.Answered()) // the read may have left on the new connection
	}
	h.startWorkLocked() // the path is free for the goroutines that arm and remove watches
}

// giveUp says that one reader does not wait for w any more.
func (h *hub) giveUp(w *sharedWatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.wanted--; w.wanted == 0 && h.watches[w.key] == w {
		h.unwantLocked(w.key, false)
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

func (h *hub) fireAllLocked(err error) {
	for _, w := range h.watches {
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
// about to, and no read that arms a one-shot watch on path may be on its way.
func (h *hub) free(path string) bool {
	if h.busy[path] != nil || h.asking[path] > 0 {
		return false
	}
	for _, op := range []wire.Op{wire.OpGetData, wire.OpExists, wire.OpGetChildren} {
		if w := h.watches[watchKey{op, path}]; w != nil && !w.stands {
			return false
		}
	}
	return true
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
