package recipes

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// The waiters of one client that stand directly behind each other in the queue
// are served together. The first of them has listed the leases since it became the first.
// No other acquire was granted any since. So no more than the listed leases can be held.
// If there is room for the waiters behind it as well, one transaction makes the leases of
// all of them and deletes their nodes in the queue. That is what they would have done one
// after the other, without the lists in between. A waiter for which there is no room ends
// the group. None behind it is served before it.
//
// Each of them knows by a list of its own that no contender stands between it and the one
// ahead: the list was made behind its node, and numbers only grow while that node stands.
//
// A release hands its permits to such a group. The same transaction deletes the released
// leases.
//
// If one of these nodes is missing, or one request cannot carry all that, nothing is
// applied, and all of them go on alone.
//
// The waiter right behind the group becomes the first then, and what the leases are is
// known. So it goes on at once, before it has asked a server.

// lines are the lines of one client, of the semaphores for which an acquire waits.
type lines struct {
	mu  sync.Mutex // guards all; it may be locked within that of no line
	all map[lineKey]*line
}

// lineKey tells the lines of one client apart. Paths are in the namespace of c.
type lineKey struct {
	c    *client.Client
	path string
}

// keptLines is the key of what a client keeps.
type keptLines struct{}

// linesOf returns the lines of the client of c.
func linesOf(c *client.Client) *lines {
	all, _ := inner.Kept(c, keptLines{}, func() any { return &lines{all: map[lineKey]*line{}} }).(*lines) // no other package has the key
	return all
}

// line is the waiters of one client for the permits of one semaphore, of whatever values.
// They have a fixed number of permits each. It says which one is served next.
type line struct {
	waiting int // guarded by lines.mu

	mu   sync.Mutex       // guards the rest; never held across I/O
	heir *heir            // the first in the queue, if it waits for room; or nil
	next map[string]*heir // waiters for their turn, by the name of the node ahead
}

// line returns the line of the semaphore, nil if no acquire of the client waits.
func (s *InterProcessSemaphoreV2) line() *line {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	return s.lines.all[lineKey{s.c, s.path}]
}

// enter returns the line of the semaphore. It stays until exit.
func (s *InterProcessSemaphoreV2) enter() *line {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	key := lineKey{s.c, s.path}
	l := s.lines.all[key]
	if l == nil {
		l = &line{}
		s.lines.all[key] = l
	}
	l.waiting++
	return l
}

// exit ends what enter began.
func (s *InterProcessSemaphoreV2) exit(l *line) {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	if l.waiting--; l.waiting == 0 {
		delete(s.lines.all, lineKey{s.c, s.path})
	}
}

// heir is a waiter of a semaphore that has a fixed number of permits.
type heir struct {
	p permits
	m *seqqueue.Member
	l *line

	// The mutex of l guards the rest.
	first    context.CancelCauseFunc // ends the wait for its turn
	after    string                  // its key in next
	taken    []string                // the leases that may be held; nil if it is not known to be the first
	promised bool                    // a transaction serves it; never undone
	left     bool                    // its acquire has ended
	done     chan struct{}           // closed when that transaction has ended
	got      place                   // what it was given
	err      error                   // or why not
	refused  bool                    // then the transaction has changed nothing
}

// errFirst ends the wait for the turn of a waiter that is served, or is the first
// without a list.
var errFirst = errors.New("the waiter ahead has its permits")

// stand makes a waiter of m.
func (p permits) stand(m *seqqueue.Member) *heir {
	h := &heir{p: p, m: m, l: p.enter(), done: make(chan struct{})}
	told := m.Told
	m.Told = func(ahead int, behind string) {
		h.follow(behind)
		if told != nil {
			told(ahead, behind)
		}
	}
	return h
}

// turn waits until h is the first in the queue, or is served.
func (h *heir) turn(ctx context.Context) (got place, served bool, err error) {
	for {
		turn, cancel := context.WithCancelCause(ctx)
		h.begin(cancel)
		_, err := h.p.gate.turn(turn, h.m, true)
		called := ctx.Err() == nil && errors.Is(context.Cause(turn), errFirst)
		cancel(nil)
		// If it is served, its own node may be gone already.
		got, over, failed := h.settle(ctx, false)
		switch _, first := h.inherited(); {
		case failed != nil && err != nil && ctx.Err() != nil && !errors.Is(context.Cause(turn), errFirst):
			return place{}, false, waiterAhead(err) // it says behind which contender
		case failed != nil:
			return place{}, false, failed
		case over:
			h.m.Told(0, "")
			return got, true, nil
		case err == nil:
			return place{}, false, nil
		case !called || errors.Is(err, ErrNodeDeleted):
			return place{}, false, waiterAhead(err)
		case first:
			h.m.Told(0, "")
			return place{}, false, nil
		}
	}
}

// begin makes first end the wait for the turn of h, which begins.
func (h *heir) begin(first context.CancelCauseFunc) {
	l := h.l
	l.mu.Lock()
	defer l.mu.Unlock()
	h.first = first
}

// follow notes the name of the node right ahead of h.
func (h *heir) follow(behind string) {
	l := h.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(h)
	if behind != "" {
		if l.next == nil {
			l.next = map[string]*heir{}
		}
		h.after, l.next[behind] = behind, h
	}
}

// forget takes h out of the waiters for their turn. The caller holds l.mu.
func (l *line) forget(h *heir) {
	if l.next[h.after] == h {
		delete(l.next, h.after)
	}
}

// inherited returns the leases that may be held if h has become the first without a list.
func (h *heir) inherited() (taken []string, ok bool) {
	if h == nil {
		return nil, false
	}
	l := h.l
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.taken, h.taken != nil
}

// offer lets a release hand over to h, which is the first and has listed the leases. It
// returns a channel that is closed when that has happened, nil if that was refused. A
// hand-over is promised once.
func (h *heir) offer(taken []lease) <-chan struct{} {
	if h == nil {
		return nil
	}
	l := h.l
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-h.done:
		if h.refused {
			return nil
		}
		return h.done
	default:
	}
	if !h.promised {
		h.taken, l.heir = namesOf(taken), h
	}
	return h.done
}

// settle reports whether the wait for room is over. It is over if there is room and no
// release will hand over to h any more. It is also over if a release has handed over:
// then got is what h was handed. If a release is about to, settle waits for that.
func (h *heir) settle(ctx context.Context, room bool) (got place, over bool, err error) {
	if h == nil {
		return place{}, room, nil
	}
	l := h.l
	l.mu.Lock()
	promised := h.promised
	if room && l.heir == h {
		l.heir = nil
	}
	l.mu.Unlock()
	if !promised {
		return place{}, room, nil
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		return place{}, false, ctxerr.Ended(ctx)
	}
	switch {
	case h.err == nil:
		return h.got, true, nil
	case h.refused:
		return place{}, room, nil
	default:
		return place{}, false, cmp.Or(h.m.Session.Err(), takenAway(h.err))
	}
}

// leave ends the part of h in the line. What is handed over to it later is deleted,
// unless it has what it waited for.
func (h *heir) leave(served bool) {
	if h == nil {
		return
	}
	l := h.l
	defer h.p.exit(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	h.left = !served
	l.forget(h)
	if l.heir == h {
		l.heir = nil
	}
	select {
	case <-h.done:
		if h.left && h.promised && h.err == nil {
			h.got.DeleteInBackground()
		}
	default:
	}
}

// Delete deletes the nodes of a place, or hands them over to a waiter.
func (p place) Delete(ctx context.Context) error {
	if p.of != nil {
		if l := p.of.line(); l != nil {
			if done, err := l.handOver(ctx, p.Own); done {
				return err
			}
		}
	}
	return p.Own.Delete(ctx)
}
