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
	kind wire.WatchKind
	path string
}

// hub holds the watches of one session. go-zookeeper's own watch channels are
// not used: they are never given up, they lose events when a reconnection
// re-arms them, and re-arming races with traffic. The wire sets the watch
// flag of a plain read instead, and events come in through the callback.
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
	var kinds []wire.WatchKind
	switch ev.Type {
	case zk.EventNodeCreated:
		kinds = []wire.WatchKind{wire.ExistsWatch}
	case zk.EventNodeDataChanged:
		kinds = []wire.WatchKind{wire.DataWatch, wire.ExistsWatch}
	case zk.EventNodeChildrenChanged:
		kinds = []wire.WatchKind{wire.ChildWatch}
	case zk.EventNodeDeleted:
		kinds = []wire.WatchKind{wire.DataWatch, wire.ExistsWatch, wire.ChildWatch}
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range kinds {
		key := watchKey{kind, ev.Path}
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

// watched runs read, which asks for path, with the watch of that kind in
// place: whatever changes after what read returns fires the watch.
func watched[T any](ctx context.Context, s *session, kind wire.WatchKind, path string, read func(*zk.Conn) (T, error)) (T, *Watch, error) {
	var zero T
	key := watchKey{kind, path}
	for {
		if err := ctxerr.Ended(ctx); err != nil { // nobody is to wait for a read that is never sent
			return zero, nil, &fault{err, OutcomeNeverSent}
		}
		w, arm, err := s.hub.join(key)
		if err != nil {
			return zero, nil, &fault{err, OutcomeNeverSent}
		}
		if arm {
			disarm := s.link.ArmWatch(kind, path)
			v, err := call(ctx, s, read)
			disarm()
			if err != nil {
				s.hub.drop(key, w, err)
				close(w.armed)
				return zero, nil, err
			}
			close(w.armed)
			return v, w, nil
		}
		// Somebody else's watch: it stands once their read has returned, and
		// only a read that is sent after that cannot miss a change.
		select {
		case <-w.armed:
		case <-ctx.Done():
			return zero, nil, &fault{ctxerr.Ended(ctx), OutcomeNeverSent}
		}
		select {
		case <-w.done:
			continue // fired, or could not be armed
		default:
		}
		v, err := call(ctx, s, read)
		if err != nil {
			return zero, nil, err
		}
		return v, w, nil
	}
}
