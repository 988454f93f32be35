package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// watchPause is how long to wait when a server throttles.
const watchPause = time.Second

var errNoAnswer = errors.New("a request to change watches was not answered in time")

// watches are those of a client.
type watches struct {
	mu    sync.Mutex // guards the rest; never held across I/O
	hub   *hub       // of the newest session that was accepted
	table watchTable
	over  error // the client is closed
}

func newWatches() *watches { return &watches{table: newWatchTable()} }

// add makes r a reader of the persistent watch on path.
func (a *watches) add(path string, r reader, deep bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil {
		return a.over
	}
	a.table.add(path, r, deep)
	a.startWork()
	return nil
}

// remove takes a reader away from the persistent watch on path.
func (a *watches) remove(path string, r reader) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.table.remove(path, r, time.Now())
	a.startWork()
}

// follow makes l hear of new connections, and unfollow ends all its watches.
func (a *watches) follow(l *listener) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil {
		return a.over
	}
	a.table.follow(l)
	l.missed(nil)
	return nil
}

func (a *watches) unfollow(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.table.unfollow(l, time.Now())
	a.startWork()
}

// end ends all readers of persistent watches, and all feeds.
func (a *watches) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = err
	a.table.close(err)
}

// startWork starts the goroutines that set and that remove watches, if there is work for
// them. Each ends when it has no work left. The caller holds a.mu.
func (a *watches) startWork() {
	h := a.hub
	if h == nil || h.over != nil {
		return
	}
	if !h.arming && len(a.table.due) > 0 && h.s.begin() {
		h.arming = true
		go h.arm() // ends when everything is set, or with the session
	}
	if !h.sweeping && len(a.table.idle) > 0 && h.s.begin() {
		h.sweeping = true
		go h.sweep() // ends when nothing is left over, or with the session
	}
}

// hub does the I/O for the table of watches in one session. It does not use go-zookeeper's own
// watch channels. They cannot be given up. They lose events when a reconnection sets them
// again, and that races with traffic. The hub's events come from package wire.
type hub struct {
	s   *sessionState
	all *watches // of the client; its lock guards the rest

	arming   bool  // arm runs
	sweeping bool  // sweep runs
	over     error // why no more watches are possible
}

func newHub(s *sessionState) *hub { return &hub{s: s, all: s.core.watches} }

// present reports whether the table is of h's session. The caller holds the lock.
func (h *hub) present() bool { return h.all.hub == h && h.over == nil }

// watchedRead is a read whose reader shares a watch.
type watchedRead struct {
	w    *sharedWatch
	x    *wire.Exchange
	late atomic.Bool // w had fired when the answer came, as far as is known
	asks bool        // it keeps changes of watches waiting; guarded by the lock of the watches
	err  error       // of the read
}

// enter runs f, with the lock held, when no request is about to change the watches of one of
// the paths. It waits for that until ctx ends.
func (h *hub) enter(ctx context.Context, n int, path func(i int) string, f func()) error {
	for {
		busy, err := h.tryEnter(n, path, f)
		if busy == nil {
			return err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return ctxerr.Ended(ctx)
		}
	}
}

// tryEnter is enter without waiting. busy is closed when another try is worthwhile, and nil
// if this one has ended.
func (h *hub) tryEnter(n int, path func(i int) string, f func()) (busy <-chan struct{}, err error) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	switch {
	case h.over != nil:
		return nil, h.over
	case h.all.hub != h: // another session has been accepted since
		return nil, h.s.over()
	}
	for i := range n {
		if busy := h.all.table.busy(path(i)); busy != nil {
			return busy, nil
		}
	}
	f()
	return nil, nil
}

// share makes the caller one of the readers of the watches on the nodes at paths. The caller
// sends the reads, and calls readAll with their results. Unless the watch of a read fires,
// the caller ends its wait with giveUp.
func (h *hub) share(ctx context.Context, op wire.Op, paths []string) (reads []*watchedRead, err error) {
	err = h.enter(ctx, len(paths), func(i int) string { return paths[i] }, func() {
		reads = make([]*watchedRead, len(paths))
		for i, path := range paths {
			w, asks := h.all.table.share(spot{path, sideOf(op)})
			r := &watchedRead{w: w, x: asked(op, path), asks: asks}
			if asks {
				r.x.Request.Watch = true
				r.x.OnAnswer = func() { r.late.Store(w.fired()) }
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
func (h *hub) queued(reads []*watchedRead) {
	h.change(func(t *watchTable, _ time.Time) { queue(t, reads) })
}

// queue is queued with the lock held. A second call does nothing.
func queue(t *watchTable, reads []*watchedRead) {
	for _, r := range reads {
		if r.asks {
			r.asks = false
			t.queued(r.w.at.path)
		}
	}
}

// readAll is called with the results of reads that share began. The watch of a read may
// have fired meanwhile.
func (h *hub) readAll(reads []*watchedRead) {
	h.change(func(t *watchTable, now time.Time) {
		queue(t, reads)
		for _, r := range reads {
			f := fateOfWatch(r.x, r.err)
			f.late = r.late.Load()
			t.answered(r.w, f, now)
		}
	})
}

// fateOfWatch is what became of a read that ended with err.
func fateOfWatch(x *wire.Exchange, err error) fate {
	f := fate{asked: x.Request.Watch, sent: x.Sent(), answered: x.Answered(), conn: x.Connection(), err: err}
	f.unread = f.answered && (x.Err() != nil || x.Reply.Code == wire.CodeReplyTooLarge)
	return f
}

// giveUp says that one reader does not wait for w any more.
func (h *hub) giveUp(w *sharedWatch) {
	h.change(func(t *watchTable, now time.Time) { t.giveUp(w, now) })
}

// change runs f, unless the session is over: then the table knows nothing of it any more.
// There may be work afterwards.
func (h *hub) change(f func(t *watchTable, now time.Time)) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if h.present() {
		f(&h.all.table, time.Now())
		h.all.startWork()
	}
}

// dispatch runs on the reading goroutine. The replies that the server sent after the
// event are read after it.
func (h *hub) dispatch(ev wire.Event) {
	h.change(func(t *watchTable, now time.Time) { t.heard(ev, now) })
}

// up is called when a server has accepted the session. reattached says that it is not the
// first server.
func (h *hub) up(reattached bool) {
	a := h.all
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.hub; before != h {
		if before != nil && before.over == nil { // a moment before its end
			before.close(before.s.over())
		}
		a.hub = h
	}
	why := ErrSessionLost
	if reattached {
		why = errReconnected
	}
	a.table.up(why, time.Now())
	a.startWork()
}

// end fires all watches: the session is over, and no more watches are possible.
func (h *hub) end(err error) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	h.close(err)
}

// close is end with the lock held.
func (h *hub) close(err error) {
	if h.over != nil {
		return
	}
	h.over = err
	if h.all.hub == h {
		h.all.table.over(err, time.Now())
	}
}

// arm sets the persistent watches that are due, on the present connection and on later ones.
// It ends with the session, or when no watch is due that could be set.
func (h *hub) arm() {
	defer h.s.running.Done()
	var listed []string // what is due and not tried yet
	for {
		if _, err := h.s.core.await(h.s.ctx, h.s, nil); err != nil {
			h.rest(&h.arming)
			return
		}
		switch err := h.s.supports(h.s.ctx, persistentWatches); {
		case errors.Is(err, ErrUnsupported):
			h.change(func(t *watchTable, now time.Time) { t.refuse(err, now) })
		case err != nil: // the session is over
			h.rest(&h.arming)
			return
		}
		xs := h.carryOut(wire.OpAddWatch, &h.arming, func(t *watchTable, ended <-chan struct{}, _ time.Time) []watchChange {
			return t.takeDue(&listed, ended)
		}, func(t *watchTable, u watchChange, x *wire.Exchange, connection int, now time.Time) {
			is := done{carriedOut: x.Answered()}
			if x.Answered() {
				if err := h.s.refused(persistentWatches, h.s.answer(x)); err != nil && passing(err) {
					is.carriedOut = false
				} else {
					is.refused = err
				}
			}
			t.stand(u, is, connection, now)
		})
		if len(xs) == 0 {
			return
		}
		if pause := pauseAfter(xs); pause > 0 {
			_ = ctxerr.Sleep(h.s.ctx, pause) // await sees the end
		}
	}
}

// sweep removes watches without readers from the server. It ends when there are none,
// or with the session.
func (h *hub) sweep() {
	defer h.s.running.Done()
	var listed []spot // what is to be removed and was not tried yet
	for {
		if len(listed) == 0 { // a list for each batch would cost more than all the requests
			wait, more := h.nextRemoval()
			if !more {
				return
			}
			if ctxerr.Sleep(h.s.ctx, wait) != nil {
				h.rest(&h.sweeping)
				return
			}
			h.change(func(t *watchTable, now time.Time) { listed = t.listIdle(now) })
		}
		if err := h.s.supports(h.s.ctx, watchRemoval); err != nil {
			h.change(func(t *watchTable, _ time.Time) { t.keepAll() }) // the session may be over
			listed = nil
			continue
		}
		xs := h.carryOut(wire.OpRemoveWatches, nil, func(t *watchTable, ended <-chan struct{}, now time.Time) []watchChange {
			return t.takeIdle(&listed, ended, now)
		}, func(t *watchTable, u watchChange, x *wire.Exchange, connection int, now time.Time) {
			stays := x.Answered() && passing(h.s.refused(watchRemoval, h.s.answer(x)))
			t.removed(u, done{stays: stays}, connection, now)
		})
		if len(xs) == 0 {
			listed = nil // the session may be over
		}
	}
}

// nextRemoval returns how long it takes until a watch may be removed. If there is no
// such watch, the caller must end.
func (h *hub) nextRemoval() (wait time.Duration, more bool) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if h.present() {
		wait, more = h.all.table.nextRemoval(time.Now())
	}
	h.sweeping = more
	return wait, more
}

// rest notes that a goroutine of the hub ends.
func (h *hub) rest(running *bool) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	*running = false
}

// carryOut sends the requests that take returns, in one write, and calls answered with each
// answer. If there are none, the goroutine of the flag running, if any, must end.
func (h *hub) carryOut(
	op wire.Op, running *bool,
	take func(t *watchTable, ended <-chan struct{}, now time.Time) []watchChange,
	answered func(t *watchTable, u watchChange, x *wire.Exchange, connection int, now time.Time),
) (xs []*wire.Exchange) {
	ended := make(chan struct{})
	defer close(ended)
	batch, connection := h.take(running, func(t *watchTable) []watchChange { return take(t, ended, time.Now()) })
	if len(batch) == 0 {
		return nil
	}
	xs = make([]*wire.Exchange, len(batch))
	for i, u := range batch {
		xs[i] = asked(op, u.at.path)
		xs[i].Request.Flags = u.flag
	}
	h.send(xs)
	h.change(func(t *watchTable, now time.Time) {
		for i, u := range batch {
			answered(t, u, xs[i], connection, now)
		}
	})
	return xs
}

func (h *hub) take(running *bool, from func(t *watchTable) []watchChange) (batch []watchChange, connection int) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if h.present() {
		batch = from(&h.all.table)
	}
	if running != nil {
		*running = len(batch) > 0
	}
	return batch, h.all.table.connection
}

// send sends requests that change watches, and waits for the answers. The requests'
// paths are busy, and readers may wait for these. So if the server does not answer, the
// connection is dropped, and all watches are lost with it.
func (h *hub) send(xs []*wire.Exchange) {
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(h.s.ctx, h.s.link.Timeout()/3, errNoAnswer)
	defer cancel()
	err := h.s.link.Do(ctx, xs...)
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		h.s.link.DropLive(begun, errNoAnswer)
	}
}

// pauseAfter is how long to wait before a request that was not carried out is sent
// again. After the loss of a connection that is a moment; if the server throttles it
// is more.
func pauseAfter(xs []*wire.Exchange) (pause time.Duration) {
	for _, x := range xs {
		switch {
		case !x.Answered():
			pause = max(pause, watchPause/100)
		case x.Reply.Code != 0:
			pause = watchPause
		}
	}
	return pause
}

// fires reports whether op leaves a watch although the read has ended with err.
func fires(op wire.Op, err error) bool { return op == wire.OpExists && errors.Is(err, zk.ErrNoNode) }
