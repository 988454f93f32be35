package watches

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// watchPause is how long to wait when a server throttles.
const watchPause = time.Second

var errNoAnswer = errors.New("a request to change watches was not answered in time")

// Watches are those of a client.
type Watches struct {
	await func(ctx context.Context, s *session.Session) error

	mu    sync.Mutex // guards the rest; never held across I/O
	hub   *Hub       // of the newest session that was accepted
	table table
	over  error // the client is closed
}

// New makes the watches of a client. await waits until a session has a connection. It fails when
// the session is over or ctx ends.
func New(await func(ctx context.Context, s *session.Session) error) *Watches {
	return &Watches{await: await, table: newTable()}
}

// Connection counts the connections that were accepted.
func (a *Watches) Connection() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.table.connection
}

// Len is how many one-shot watches readers know. Those of feeds on a path count as one. It is for
// tests, which look for watches that are left.
func (a *Watches) Len() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.table.places {
		if p.feeds != [2]*listeners{} {
			n++
		}
		if p.more != nil {
			for _, o := range p.more.one {
				if o.on != nil {
					n++
				}
			}
		}
	}
	return n
}

// Add makes r a reader of the persistent watch on path, and of all below if deep. It is told
// to read when the watch stands. The error says that the client is closed.
func (a *Watches) Add(path string, r Reader, deep bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil {
		return a.over
	}
	a.table.add(path, r, deep)
	a.startWork()
	return nil
}

// Remove takes a reader away from the persistent watch on path.
func (a *Watches) Remove(path string, r Reader) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.table.remove(path, r, time.Now())
	a.startWork()
}

// follow makes l hear of new connections, and unfollow ends all its watches.
func (a *Watches) follow(l *listener) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over != nil {
		return a.over
	}
	a.table.follow(l)
	l.Missed(nil)
	return nil
}

func (a *Watches) unfollow(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.table.unfollow(l, time.Now())
	a.startWork()
}

// End ends all readers of persistent watches, and all feeds: the client is closed.
func (a *Watches) End(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = err
	a.table.close(err)
}

// startWork starts the goroutines that set and that remove watches, if there is work for
// them. Each ends when it has no work left. The caller holds a.mu.
func (a *Watches) startWork() {
	h := a.hub
	if h == nil || h.over != nil {
		return
	}
	if !h.arming && len(a.table.due) > 0 && h.s.Enter() {
		h.arming = true
		go h.arm() // ends when everything is set, or with the session
	}
	if !h.sweeping && len(a.table.idle) > 0 && h.s.Enter() {
		h.sweeping = true
		go h.sweep() // ends when nothing is left over, or with the session
	}
}

// Hub does the I/O for the table of watches in one session. It does not use go-zookeeper's own
// watch channels. They cannot be given up. They lose events when a reconnection sets them
// again, and that races with traffic. The hub's events come from package wire.
type Hub struct {
	s   *session.Session
	all *Watches // of the client; its lock guards the rest

	arming   bool  // arm runs
	sweeping bool  // sweep runs
	over     error // why no more watches are possible
}

// Join makes the hub of a session. It takes the place of the one before when the session is
// accepted.
func (a *Watches) Join(s *session.Session) *Hub { return &Hub{s: s, all: a} }

// present reports whether the table is of h's session. The caller holds the lock.
func (h *Hub) present() bool { return h.all.hub == h && h.over == nil }

// enter runs f, with the lock held, when no request is about to change the watches of one of
// the paths. It waits for that until ctx ends.
func (h *Hub) enter(ctx context.Context, n int, path func(i int) string, f func()) error {
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
func (h *Hub) tryEnter(n int, path func(i int) string, f func()) (busy <-chan struct{}, err error) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	switch {
	case h.over != nil:
		return nil, h.over
	case h.all.hub != h: // another session has been accepted since
		return nil, h.s.Over()
	}
	for i := range n {
		if busy := h.all.table.busy(path(i)); busy != nil {
			return busy, nil
		}
	}
	f()
	return nil, nil
}

// change runs f, unless the session is over: then the table knows nothing of it any more.
// There may be work afterwards.
func (h *Hub) change(f func(t *table, now time.Time)) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if h.present() {
		f(&h.all.table, time.Now())
		h.all.startWork()
	}
}

// Dispatch gives the table an event. It runs on the reading goroutine. The replies that the server sent after the
// event are read after it.
func (h *Hub) Dispatch(ev wire.Event) {
	h.change(func(t *table, now time.Time) { t.heard(ev, now) })
}

// Up is called when a server has accepted the session, before any answer of the new connection
// is read: wire makes its reader wait. Other goroutines may have sent requests on it already.
// reattached says that it is not the session's first connection.
func (h *Hub) Up(reattached bool) {
	a := h.all
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.hub; before != h {
		if before != nil && before.over == nil { // a moment before its end
			before.close(before.s.Over())
		}
		a.hub = h
	}
	why := fate.ErrSessionLost
	if reattached {
		why = errReconnected
	}
	a.table.up(why, time.Now())
	a.startWork()
}

// End fires all watches: the session is over, and no more watches are possible.
func (h *Hub) End(err error) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	h.close(err)
}

// close is End with the lock held.
func (h *Hub) close(err error) {
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
func (h *Hub) arm() {
	defer h.s.Leave()
	var listed []string // what is due and not tried yet
	for {
		if err := h.all.await(h.s.Context(), h.s); err != nil {
			h.rest(&h.arming)
			return
		}
		switch err := h.s.Supports(h.s.Context(), session.PersistentWatches); {
		case errors.Is(err, fate.ErrUnsupported):
			// In one step: what is added later starts arm again.
			h.change(func(t *table, now time.Time) { t.refuse(err, now); h.arming = false })
			return
		case err != nil: // the session is over, or the server wants a login and hangs up
			h.rest(&h.arming)
			return
		}
		xs := h.carryOut(wire.OpAddWatch, &h.arming, func(t *table, ended <-chan struct{}, _ time.Time) []watchChange {
			return t.takeDue(&listed, ended)
		}, func(t *table, u watchChange, x *wire.Exchange, connection int, now time.Time) {
			is := response{carriedOut: x.Answered()}
			if x.Answered() {
				// A refusal that may pass, as by a server that throttles, counts as not
				// carried out, and is tried again. Any other ends the readers.
				if err := h.refusal(session.PersistentWatches, x); fate.Passing(err) {
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
			_ = ctxerr.Sleep(h.s.Context(), pause) // await sees the end
		}
	}
}

// sweep removes watches without readers from the server. It ends when there are none,
// or with the session.
func (h *Hub) sweep() {
	defer h.s.Leave()
	var listed []spot // what is to be removed and was not tried yet
	for {
		if len(listed) == 0 { // a list for each batch would cost more than all the requests
			wait, more := h.nextRemoval()
			if !more {
				return
			}
			if ctxerr.Sleep(h.s.Context(), wait) != nil {
				h.rest(&h.sweeping)
				return
			}
			h.change(func(t *table, now time.Time) { listed = t.listIdle(now) })
		}
		if err := h.s.Supports(h.s.Context(), session.WatchRemoval); err != nil {
			h.change(func(t *table, _ time.Time) { t.keepAll() }) // the session may be over
			listed = nil
			continue
		}
		xs := h.carryOut(wire.OpRemoveWatches, nil, func(t *table, ended <-chan struct{}, now time.Time) []watchChange {
			return t.takeIdle(&listed, ended, now)
		}, func(t *table, u watchChange, x *wire.Exchange, connection int, now time.Time) {
			stays := x.Answered() && fate.Passing(h.refusal(session.WatchRemoval, x)) // throttled, say
			t.removed(u, response{stays: stays}, connection, now)
		})
		if len(xs) == 0 {
			listed = nil // the session may be over
		}
	}
}

// refusal is why the server did not do what an answered request asked for, nil if it did. A
// server that does not know the request is remembered as one without the feature.
func (h *Hub) refusal(f session.Feature, x *wire.Exchange) error {
	return h.s.Refused(f, h.s.Answer(x))
}

// nextRemoval returns how long it takes until a watch may be removed. If there is no
// such watch, the caller must end.
func (h *Hub) nextRemoval() (wait time.Duration, more bool) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if h.present() {
		wait, more = h.all.table.nextRemoval(time.Now())
	}
	h.sweeping = more
	return wait, more
}

// rest notes that a goroutine of the hub ends.
func (h *Hub) rest(running *bool) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	*running = false
}

// carryOut sends the requests that take returns, in one write, and calls answered with each
// answer. If there are none, the goroutine of the flag running, if any, must end.
func (h *Hub) carryOut(
	op wire.Op, running *bool,
	take func(t *table, ended <-chan struct{}, now time.Time) []watchChange,
	answered func(t *table, u watchChange, x *wire.Exchange, connection int, now time.Time),
) (xs []*wire.Exchange) {
	ended := make(chan struct{})
	defer close(ended)
	batch, connection := h.take(running, func(t *table) []watchChange { return take(t, ended, time.Now()) })
	if len(batch) == 0 {
		return nil
	}
	xs = make([]*wire.Exchange, len(batch))
	for i, u := range batch {
		xs[i] = session.Ask(op, u.at.path)
		xs[i].Request.Flags = u.flag
	}
	h.send(xs)
	h.change(func(t *table, now time.Time) {
		for i, u := range batch {
			answered(t, u, xs[i], connection, now)
		}
	})
	return xs
}

func (h *Hub) take(running *bool, from func(t *table) []watchChange) (batch []watchChange, connection int) {
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
func (h *Hub) send(xs []*wire.Exchange) {
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(h.s.Context(), h.s.Link().Timeout()/3, errNoAnswer)
	defer cancel()
	err := h.s.Link().Do(ctx, xs...)
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) { // not a connection made since
		h.s.Link().DropLive(begun, errNoAnswer)
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
