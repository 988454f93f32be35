package watches

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// Wait is one caller's wait for a one-shot watch, which many may share. It is an inside.Guard.
type Wait struct {
	hub *Hub
	on  *sharedWatch
}

// Done is closed when the watch fires.
func (w Wait) Done() <-chan struct{} { return w.on.done }

// Event says what fired the watch once Done is closed: an event, or an error.
func (w Wait) Event() (zk.EventType, error) {
	if !w.on.fired() {
		return 0, nil
	}
	return w.on.event, w.on.err
}

// Stands reports whether the watch has not fired.
func (w Wait) Stands() bool { return !w.on.fired() }

// Holds reports whether the watch stands on that connection. It compares the numbers of
// connections, and each session counts its own from 1. The session is over before the next one
// begins, and its hub ends a moment later.
func (w Wait) Holds(connection uint64) bool {
	h := w.hub
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.s.Context().Err() == nil && w.on.conn == connection && connection != 0 && h.all.table.one(w.on.at).on == w.on
}

// Stop says that the caller does not wait any more. It is called once.
func (w Wait) Stop() { w.hub.change(func(t *table, now time.Time) { t.giveUp(w.on, now) }) }

// Resume takes a Stop back. It reports false if the watch does not stand any more.
func (w Wait) Resume() (stands bool) {
	w.hub.change(func(t *table, _ time.Time) { stands = t.resume(w.on) })
	return stands
}

// Read reads the nodes at paths in one write. Each read leaves a watch: a change after the
// answer fires it. The table knows the watch before the read leaves, so no event comes too
// early. An error is of the connection or the session. That of one node is in its read. The
// caller stops each wait whose read has no error.
func (h *Hub) Read(ctx context.Context, op wire.Op, paths ...string) ([]*Read, error) {
	if err := ctxerr.Ended(ctx); err != nil {
		return nil, fate.Unsent(err)
	}
	reads, err := h.share(ctx, op, paths)
	if err != nil {
		return nil, fate.Unsent(err)
	}
	xs := make([]*wire.Exchange, len(reads))
	for i, r := range reads {
		xs[i] = r.X
	}
	xs[0].OnQueued = func() { h.queued(reads) }
	ended := h.s.Do(ctx, xs...)
	var failed error
	for _, r := range reads {
		if ended != nil {
			r.late.Store(true) // OnAnswer may be running
		}
		if r.Err = h.s.Outcome(ctx, r.X, ended); fires(op, r.Err) {
			r.Err = nil // the watch stands, for the node's creation
		}
		if r.Err != nil && !ofOneNode(r.Err) {
			failed = r.Err
		}
	}
	h.readAll(reads)
	if failed != nil {
		for _, r := range reads {
			if r.Err == nil {
				r.Wait.Stop()
			}
		}
		return nil, failed
	}
	return reads, nil
}

// ReadOne is Read for one node. The error is that of its read, too.
func (h *Hub) ReadOne(ctx context.Context, op wire.Op, path string) (x *wire.Exchange, w Wait, err error) {
	reads, err := h.Read(ctx, op, path)
	if err == nil {
		err = reads[0].Err
	}
	if err != nil {
		return nil, Wait{}, err
	}
	return reads[0].X, reads[0].Wait, nil
}

// ofOneNode reports whether err is about the node, and not about the connection.
func ofOneNode(err error) bool { return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) }

// fires reports whether op leaves a watch although the read has ended with err.
func fires(op wire.Op, err error) bool { return op == wire.OpExists && errors.Is(err, zk.ErrNoNode) }

// Read is the read of one node, whose caller shares a watch.
type Read struct {
	X    *wire.Exchange
	Wait Wait  // of the caller, if there is no Err
	Err  error // of the node alone

	w    *sharedWatch
	late atomic.Bool // w had fired when the answer came, as far as is known
	asks bool        // it keeps changes of watches waiting; guarded by the lock of the watches
}

// share makes the caller one of the readers of the watches on the nodes at paths. The caller
// sends the reads, and calls readAll with their results. Unless the watch of a read fires,
// the caller ends its wait with [Wait.Stop].
func (h *Hub) share(ctx context.Context, op wire.Op, paths []string) (reads []*Read, err error) {
	err = h.enter(ctx, len(paths), func(i int) string { return paths[i] }, func() {
		reads = make([]*Read, len(paths))
		for i, path := range paths {
			w, asks := h.all.table.share(spot{path, sideOf(op)})
			r := &Read{X: session.Ask(op, path), Wait: Wait{h, w}, w: w, asks: asks}
			if asks {
				r.X.Request.Watch = true
				r.X.OnAnswer = func() { r.late.Store(w.fired()) }
			}
			reads[i] = r
		}
	})
	return reads, err
}

func sideOf(op wire.Op) side {
	if op == wire.OpGetChildren {
		return childSide
	}
	return dataSide
}

// queued is called when reads that share began have their places among the requests of the
// connection. Later requests that change watches come behind them. So they need not wait for
// the answers: readers that never stop would keep them out.
func (h *Hub) queued(reads []*Read) {
	h.change(func(t *table, _ time.Time) { queue(t, reads) })
}

// queue is queued with the lock held. A second call does nothing.
func queue(t *table, reads []*Read) {
	for _, r := range reads {
		if r.asks {
			r.asks = false
			t.queued(r.w.at.path)
		}
	}
}

// readAll is called with the results of reads that share began. The watch of a read may
// have fired meanwhile.
func (h *Hub) readAll(reads []*Read) {
	h.change(func(t *table, now time.Time) {
		queue(t, reads)
		for _, r := range reads {
			f := outcomeOf(r.X, r.Err)
			f.late = r.late.Load()
			t.answered(r.w, f, now)
		}
	})
}

// outcomeOf is what became of a read that ended with err.
func outcomeOf(x *wire.Exchange, err error) outcome {
	f := outcome{asked: x.Request.Watch, sent: x.Sent(), answered: x.Answered(), conn: x.Connection(), err: err}
	f.unread = f.answered && (x.Err() != nil || x.Reply.Code == wire.CodeReplyTooLarge)
	return f
}
