// The hand-over, a part of the semaphore's protocol. A release, or the waiter that is the first
// in the queue, serves waiters of the same client as well, in its own transaction.
//
//  1. newHeir: a waiter is entered among the waiters of its client. Its list says which node
//     is right ahead of it. No contender can come between the two: the list was made behind
//     the waiter's node, and numbers only grow while that node stands.
//  2. The first in the queue lists the leases. No other acquire was granted any since it
//     became the first. So no more than the listed leases can be held.
//  3. offer: if there is no room, the first lets a release hand over to it, and waits.
//  4. handOver, in semaphore_group.go: a release gathers a group. The group has the first,
//     and the waiters right behind each other for which there is room as well. A waiter for
//     which there is no room ends the group. No waiter behind that one is served before it.
//  5. One transaction makes the leases of the group, deletes its nodes in the queue, and
//     deletes the released leases. The first may also find room by itself. Then its own
//     acquire gathers the group, and nothing is released.
//  6. callNext: the waiter right behind the group is the first now. The leases that stand
//     are known. So it goes on at once, before it has asked a server.
//
// If one of these nodes is missing, or one request cannot carry all of them, the transaction
// changes nothing. Then each waiter of the group goes on alone, and the release deletes
// its leases itself.

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

// clientWaiters has the waiters of one client, for each semaphore that has any.
type clientWaiters struct {
	mu  sync.Mutex // guards all; never locked while the mutex of waiters is held
	all map[waitersKey]*waiters
}

// waitersKey tells the semaphores of one client apart. Paths are in the namespace of c.
type waitersKey struct {
	c    *client.Client
	path string
}

// keptWaiters is the key under which a client keeps its clientWaiters.
type keptWaiters struct{}

// clientWaitersOf returns the clientWaiters of the client of c.
func clientWaitersOf(c *client.Client) *clientWaiters {
	all, _ := inner.Kept(c, keptWaiters{}, func() any { return &clientWaiters{all: map[waitersKey]*waiters{}} }).(*clientWaiters) // no other package has the key
	return all
}

// waiters are the acquires of one client that wait for permits of one semaphore, also if the
// program has several values for its path. The semaphore has a fixed number of permits.
type waiters struct {
	waiting int // guarded by clientWaiters.mu

	mu     sync.Mutex       // guards the rest; never held across I/O
	first  *heir            // the first in the queue, if it waits for room; or nil
	behind map[string]*heir // waiters for their turn, by the name of the node right ahead
}

// waiters returns the waiters of the semaphore, nil if no acquire of the client waits.
func (s *InterProcessSemaphoreV2) waiters() *waiters {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	return s.waiting.all[waitersKey{s.c, s.path}]
}

// beginWaiting returns the waiters of the semaphore. They are kept until endWaiting.
func (s *InterProcessSemaphoreV2) beginWaiting() *waiters {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	key := waitersKey{s.c, s.path}
	w := s.waiting.all[key]
	if w == nil {
		w = &waiters{}
		s.waiting.all[key] = w
	}
	w.waiting++
	return w
}

// endWaiting ends what beginWaiting began.
func (s *InterProcessSemaphoreV2) endWaiting(w *waiters) {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		delete(s.waiting.all, waitersKey{s.c, s.path})
	}
}

// heir is a waiter of a semaphore that has a fixed number of permits.
type heir struct {
	p permits
	m *seqqueue.Member
	w *waiters

	// The mutex of w guards the rest.
	call     context.CancelCauseFunc // ends the wait for its turn
	after    string                  // its key in waiters.behind
	standing []string                // the leases that may be held; nil if it is not known to be the first
	promised bool                    // a transaction serves it; never undone
	left     bool                    // its acquire has ended without permits
	done     chan struct{}           // closed when that transaction has ended
	got      place                   // what the transaction gave it
	err      error                   // or why the transaction gave nothing
	refused  bool                    // besides err: the transaction has changed nothing
}

// errCalled ends the wait for the turn of a waiter that is served, or that is the first
// without a list.
var errCalled = errors.New("the waiter ahead has its permits")

// newHeir makes an heir of m, whose acquire has to wait.
func (p permits) newHeir(m *seqqueue.Member) *heir {
	h := &heir{p: p, m: m, w: p.beginWaiting(), done: make(chan struct{})}
	told := m.Told
	m.Told = func(ahead int, behind string) {
		h.follow(ahead, behind)
		if told != nil {
			told(ahead, behind)
		}
	}
	return h
}

// turn waits until h is the first in the queue, or until a transaction has served h. Then
// served is true, and got is the place.
func (h *heir) turn(ctx context.Context) (got place, served bool, err error) {
	for {
		turn, cancel := context.WithCancelCause(ctx)
		h.begin(cancel)
		_, err := h.p.gate.turn(turn, h.m, true)
		called := ctx.Err() == nil && errors.Is(context.Cause(turn), errCalled)
		if errors.Is(err, errCalled) && ctx.Err() != nil { // both at once: the caller knows its own context alone
			err = ctxerr.Ended(ctx)
		}
		cancel(nil)
		// If h is served, its own node may be gone already.
		got, over, failed := h.ended(ctx, false)
		switch _, first := h.calledFirst(); {
		case failed != nil && err != nil && ctx.Err() != nil && !errors.Is(context.Cause(turn), errCalled):
			return place{}, false, waiterAhead(err) // err says behind which contender
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

// begin begins the wait for the turn of h. call ends it.
func (h *heir) begin(call context.CancelCauseFunc) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	h.call = call
}

// follow notes the name of the node right ahead of h, "" if none is. ahead is how many nodes
// are ahead in all. If there are more than the waiters from the first to h, a node with a low
// number was made by hand. No release hands over to h then, and h lists when its turn may have
// come.
func (h *heir) follow(ahead int, behind string) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(h)
	if n, known := w.upTo(behind); behind == "" || known && ahead > n {
		return
	}
	if w.behind == nil {
		w.behind = map[string]*heir{}
	}
	h.after, w.behind[behind] = behind, h
}

// upTo is how many waiters there are from the first one to the one whose node has that name.
// known is false if the first is not known, or not all between. The caller holds w.mu.
func (w *waiters) upTo(name string) (n int, known bool) {
	h := w.first
	for n = 1; h != nil; n++ {
		if h.m.Node.Name == name {
			return n, true
		}
		h = w.behind[h.m.Node.Name]
	}
	return 0, false
}

// forget takes h out of the waiters for their turn. The caller holds w.mu.
func (w *waiters) forget(h *heir) {
	if w.behind[h.after] == h {
		delete(w.behind, h.after)
	}
}

// calledFirst says whether h is the first, and which leases may be held then. h may have
// learned both without a list, by callNext.
func (h *heir) calledFirst() (standing []string, ok bool) {
	if h == nil {
		return nil, false
	}
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return h.standing, h.standing != nil
}

// offer lets a release hand over to h, which is the first and has listed the held leases.
// The channel is closed when a release has done so. It is nil if the servers have refused
// that. No second hand-over is promised then.
func (h *heir) offer(held []lease) <-chan struct{} {
	if h == nil {
		return nil
	}
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-h.done:
		if h.refused {
			return nil
		}
		return h.done
	default:
	}
	if !h.promised {
		h.standing, w.first = namesOf(held), h
	}
	return h.done
}

// ended reports whether the wait for room is over. room says whether there is any. If a
// transaction is to serve h, ended waits for its end, and got is the place that it gave. If
// none is, the wait is over if there is room, and no release hands over to h any more.
func (h *heir) ended(ctx context.Context, room bool) (got place, over bool, err error) {
	if h == nil {
		return place{}, room, nil
	}
	w := h.w
	w.mu.Lock()
	promised := h.promised
	if room && w.first == h {
		w.first = nil
	}
	w.mu.Unlock()
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

// leave takes h out of the waiters. Unless the acquire has its permits, as granted says, a
// place that a transaction gives h is deleted in the background.
func (h *heir) leave(granted bool) {
	if h == nil {
		return
	}
	w := h.w
	defer h.p.endWaiting(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	h.left = !granted
	w.forget(h)
	if w.first == h {
		w.first = nil
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
		if w := p.of.waiters(); w != nil {
			if done, err := w.handOver(ctx, p.Own); done {
				return err
			}
		}
	}
	return p.Own.Delete(ctx)
}
