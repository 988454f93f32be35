package client

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

var (
	// errReconnected wakes watchers after a reconnection: a change in between may
	// have been missed.
	errReconnected = errors.New("client: reconnected")
	// errDisarmed wakes watchers whose watch was removed from the server together
	// with another one on the same path.
	errDisarmed = errors.New("client: the server has dropped the watch")
	errStopped  = errors.New("client: the watch was stopped")
)

// OneShotWatch is a watch that fires once. All such watches of this client on the
// same path, of the same kind and in the same session, are one watch on the server.
// However many callers wait, they cost the server one watch.
type OneShotWatch struct {
	on   *sharedWatch
	stop sync.Once
}

// Done is closed at the first of: a change of the node or its children, a
// reconnection, the end of the session. Read again in each case; a wake-up without a
// change is possible.
func (w *OneShotWatch) Done() <-chan struct{} { return w.on.done }

// Event says what ended the watch once Done is closed. It returns the type of the
// server's event and nil. If no event ended the watch, it returns
// [zk.EventNotWatching] and the reason, which matches [ErrSessionLost] or [ErrClosed]
// when the session is over.
func (w *OneShotWatch) Event() (zk.EventType, error) {
	select {
	case <-w.on.done:
		return w.on.event, w.on.err
	default:
		return 0, nil
	}
}

// Stop says that the caller does not wait for the watch any more. It returns at once.
// If the watch has not fired a second after all callers that share it have stopped, the
// client removes it from the server in the background. A watch that its callers do not
// stop stays on the server until it fires or the session ends. Servers before ZooKeeper
// 3.5 cannot remove watches: there it stays too.
//
// A second call does nothing, and so does a call after the watch has fired or on a
// nil OneShotWatch. Done may never be closed after Stop.
func (w *OneShotWatch) Stop() {
	if w != nil {
		w.stop.Do(func() { w.on.hub.giveUp(w.on) })
	}
}

// watched reads the node at path and leaves a watch: a change after the answer fires
// it. The watch is known to the client before the read leaves, so no event comes too
// early.
func (s *sessionState) watched(ctx context.Context, op wire.Op, path string) (*wire.Exchange, *OneShotWatch, error) {
	key := watchKey{op, path}
	for {
		if err := ctxerr.Ended(ctx); err != nil { // no caller may wait for a read that is never sent
			return nil, nil, &fault{err, OutcomeNeverSent}
		}
		w, arm, err := s.hub.share(ctx, key)
		if err != nil {
			return nil, nil, &fault{err, OutcomeNeverSent}
		}
		x := asked(op, path)
		if arm {
			x.Request.Watch = true
			err := s.read(ctx, x)
			s.hub.armed(w, x, err)
			return x, &OneShotWatch{on: w}, err
		}
		// Another reader arms the watch. The watch stands once that read has
		// returned. Only a read that is sent after that cannot miss a change.
		select {
		case <-w.armed:
		case <-ctx.Done():
			s.hub.giveUp(w)
			return nil, nil, &fault{ctxerr.Ended(ctx), OutcomeNeverSent}
		}
		select {
		case <-w.done:
			continue // fired, or could not be armed
		default:
		}
		err = s.read(ctx, x)
		if err != nil {
			s.hub.giveUp(w)
		}
		return x, &OneShotWatch{on: w}, err
	}
}
