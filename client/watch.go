package client

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
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
	hub  *hub
	on   *sharedWatch
	stop sync.Once
}

// Done is closed at the first of: a change of the node or its children, a
// reconnection, the end of the session. Read again in each case; a wake-up without a
// change is possible.
//
// A session can end while no server is reached. Then the next read waits for one by the
// retry policy. If the policy gives up by itself, the read fails with [ErrNotConnected],
// and the caller has no watch any more. A loop that shall go on reads by a policy that
// does not give up, see [Client.Retrying].
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
		w.stop.Do(func() { w.hub.giveUp(w.on) })
	}
}

// watched reads the nodes at paths in one write. Each read leaves a watch: a change after the
// answer fires it. The client knows the watch before the read leaves, so no event comes too
// early. An error is of the connection or the session. That of one node is in its read.
func (s *sessionState) watched(ctx context.Context, op wire.Op, paths ...string) ([]*watchedRead, error) {
	if err := ctxerr.Ended(ctx); err != nil {
		return nil, &fault{err, OutcomeNeverSent}
	}
	reads, err := s.hub.share(ctx, op, paths)
	if err != nil {
		return nil, &fault{err, OutcomeNeverSent}
	}
	xs := make([]*wire.Exchange, len(reads))
	for i, r := range reads {
		xs[i] = r.x
	}
	xs[0].OnQueued = func() { s.hub.queued(reads) }
	ended := s.exchange(ctx, xs...)
	var failed error
	for _, r := range reads {
		if ended != nil {
			r.late.Store(true) // OnAnswer may be running
		}
		if r.err = s.outcome(ctx, r.x, ended); fires(op, r.err) {
			r.err = nil // the watch stands, for the node's creation
		}
		if r.err != nil && !ofOneNode(r.err) {
			failed = r.err
		}
	}
	s.hub.readAll(reads)
	if failed != nil {
		for _, r := range reads {
			if r.err == nil {
				s.hub.giveUp(r.w)
			}
		}
		return nil, failed
	}
	return reads, nil
}

// watchedOne is watched for one node. The error is that of its read, too.
func (s *sessionState) watchedOne(ctx context.Context, op wire.Op, path string) (*wire.Exchange, *sharedWatch, error) {
	reads, err := s.watched(ctx, op, path)
	if err == nil {
		err = reads[0].err
	}
	if err != nil {
		return nil, nil, err
	}
	return reads[0].x, reads[0].w, nil
}

// ofOneNode reports whether err is about the node, and not about the connection.
func ofOneNode(err error) bool { return errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoAuth) }

// watchNodes is inside.Functions.Watch.
func watchNodes(ctx context.Context, s *Session, paths ...string) (nodes []inside.Watched, err error) {
	full := make([]string, len(paths))
	for i, path := range paths {
		if full[i], err = s.full(path); err != nil {
			return nil, s.invalid(ctx, "get", path, err)
		}
	}
	nodes = make([]inside.Watched, len(paths))
	err = s.do(ctx, "get", paths[0], reads, func(ctx context.Context, t try) error {
		reads, err := t.s.watched(ctx, wire.OpGetData, full...)
		for i, r := range reads {
			if nodes[i] = (inside.Watched{Err: r.err}); r.err == nil {
				nodes[i] = inside.Watched{Data: r.x.Reply.Data, Stat: stat(r.x), Watch: &OneShotWatch{hub: t.s.hub, on: r.w}}
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return nodes, nil
}
