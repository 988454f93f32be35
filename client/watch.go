package client

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// errReconnected wakes watchers after a reconnection: what happened in
// between may have been missed.
var errReconnected = errors.New("client: reconnected")

// Watch is a one-shot watch on a node. Everybody in this process who watches
// the same path in the same way in the same session shares one, so waiting
// costs the server one watch however many wait, and giving up costs nothing.
type Watch struct {
	done  chan struct{} // closed when fired
	armed chan struct{} // closed when the read that arms it has returned
	event zk.EventType  // set before done is closed
	err   error         // set before done is closed
}

// Done is closed at the first of: a change of what was watched, a
// reconnection, the end of the session. Read again in each case; a wake-up
// without a change is possible.
func (w *Watch) Done() <-chan struct{} { return w.done }

// Event says what ended the watch once Done is closed: the type of the
// server's event and nil, or [zk.EventNotWatching] and why it ended without
// one. The error matches [ErrSessionLost] or [ErrClosed] when the session is
// over.
func (w *Watch) Event() (zk.EventType, error) {
	select {
	case <-w.done:
		return w.event, w.err
	default:
		return 0, nil
	}
}

type watchKey struct {
	op   wire.Op // of the read that leaves it
	path string
}

// hub holds the watches of one session. go-zookeeper's own watch channels are
// not used: they are never given up, they lose events when a reconnection
// re-arms them, and re-arming races with traffic. Events come in through its
// callback.
type hub struct {
	mu      sync.Mutex // guards watches; never held across I/O
	watches map[watchKey]*Watch
	over    error // why no watch can be had any more
}

func newHub() *hub { return &hub{watches: map[watchKey]*Watch{}} }

// join returns the watch on key, and whether the caller has to arm it by a
// read.
func (h *hub) join(key watchKey) (w *Watch, arm bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return nil, false, h.over
	}
	if w, ok := h.watches[key]; ok {
		return w, false, nil
	}
	w = &Watch{done: make(chan struct{}), armed: make(chan struct{})}
	h.watches[key] = w
	return w, true, nil
}

func (h *hub) fireLocked(key watchKey, w *Watch, event zk.EventType, err error) {
	delete(h.watches, key)
	w.event, w.err = event, err
	close(w.done)
}

// drop removes a watch whose arming read failed, so that the next reader arms
// it anew; it may have fired meanwhile.
func (h *hub) drop(key watchKey, w *Watch, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches[key] == w {
		h.fireLocked(key, w, zk.EventNotWatching, err)
	}
}

// dispatch runs on go-zookeeper's receiving goroutine, before any reply that
// the server sent after the event is looked at.
func (h *hub) dispatch(ev zk.Event) {
	var ops []wire.Op
	switch ev.Type {
	case zk.EventNodeCreated:
		ops = []wire.Op{wire.OpExists}
	case zk.EventNodeDataChanged:
		ops = []wire.Op{wire.OpGetData, wire.OpExists}
	case zk.EventNodeChildrenChanged:
		ops = []wire.Op{wire.OpGetChildren}
	case zk.EventNodeDeleted:
		ops = []wire.Op{wire.OpGetData, wire.OpExists, wire.OpGetChildren}
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range ops {
		key := watchKey{op, ev.Path}
		if w, ok := h.watches[key]; ok {
			h.fireLocked(key, w, ev.Type, nil)
		}
	}
}

// fireAll wakes everybody. With any error but errReconnected the session is
// over and no watch can be had any more.
func (h *hub) fireAll(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !errors.Is(err, errReconnected) && h.over == nil {
		h.over = err
	}
	for key, w := range h.watches {
		h.fireLocked(key, w, zk.EventNotWatching, err)
	}
}

// watched reads the node at path with a watch in place: whatever changes after
// the answer fires the watch. The watch is known before the read leaves, so that
// no event comes too early.
func (s *session) watched(ctx context.Context, op wire.Op, path string) (*wire.Exchange, *Watch, error) {
	key := watchKey{op, path}
	for {
		if err := ctxerr.Ended(ctx); err != nil { // nobody is to wait for a read that is never sent
			return nil, nil, &fault{err, OutcomeNeverSent}
		}
		w, arm, err := s.hub.join(key)
		if err != nil {
			return nil, nil, &fault{err, OutcomeNeverSent}
		}
		x := asked(op, path)
		if arm {
			x.Request.Watch = true
			err := s.read(ctx, x)
			if err != nil {
				s.hub.drop(key, w, err)
			}
			close(w.armed)
			return x, w, err
		}
		// Another reader's watch: it stands once that read has returned, and
		// only a read that is sent after that cannot miss a change.
		select {
		case <-w.armed:
		case <-ctx.Done():
			return nil, nil, &fault{ctxerr.Ended(ctx), OutcomeNeverSent}
		}
		select {
		case <-w.done:
			continue // fired, or could not be armed
		default:
		}
		return x, w, s.read(ctx, x)
	}
}
