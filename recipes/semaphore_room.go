// The wait for permits of a semaphore with a fixed number of them. An heir waits for its turn
// in the queue, and then, as the first, for room. A transaction of the client may grant it
// permits at any moment of both.

package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

// await waits for the turn of h and for its permits.
func (h *heir) await(ctx context.Context) (place, error) {
	ahead, told := false, h.m.Told
	h.m.Told = func(n int, behind string) {
		ahead = ahead || n > 0
		if told != nil {
			told(n, behind)
		}
	}
	_, err := h.p.gate.turn(ctx, h.m, true)
	h.p.crowded.Store(ahead)
	got, over, failed := h.outcome(ctx)
	switch {
	case failed != nil && err != nil && ctx.Err() != nil:
		return place{}, waiterAhead(err) // err says behind which contender
	case failed != nil:
		return place{}, failed
	case over:
		h.m.Told(0, "")
		return got, nil
	case err != nil:
		return place{}, waiterAhead(err)
	}
	return h.awaitRoom(ctx)
}

// outcome reports whether a transaction has served h. If one is to, outcome waits for its
// end.
func (h *heir) outcome(ctx context.Context) (got place, over bool, err error) {
	for {
		h.w.mu.Lock()
		state, got, err := h.state, h.got, h.err
		h.w.mu.Unlock()
		switch state { //nolint:exhaustive // the acquire has not left
		case served:
			return got, true, nil
		case failed:
			return place{}, false, cmp.Or(h.m.Session.Err(), err)
		case promised:
		default:
			return place{}, false, nil
		}
		select {
		case <-h.poke:
		case <-ctx.Done():
			return place{}, false, fmt.Errorf("there is room, but the transaction that makes the leases has no answer yet: %w", ctxerr.Ended(ctx))
		}
	}
}

// awaitRoom waits until a transaction has served h, which is the first in the queue.
func (h *heir) awaitRoom(ctx context.Context) (place, error) {
	listed, waited := h.m.OtherChildren(), false
	soon := listed != nil
	watch := leaseWatch{h: h, over: make(chan struct{})}
	defer watch.stop()
	for {
		known, err := h.know(ctx, listed)
		if err != nil {
			return place{}, err
		}
		listed = nil
		if !known {
			continue
		}
		got, over, err := h.outcome(ctx)
		if over || err != nil {
			h.p.learn(soon && !waited)
			return got, err
		}
		if again, err := watch.look(ctx); again || err != nil {
			if err != nil {
				return place{}, err
			}
			continue
		}
		waited = true
		due, stop := h.m.Due()
		select {
		case <-due:
			if err := h.m.LookAfter(ctx); err != nil {
				return h.lost(ctx, err)
			}
		case <-h.poke:
		case <-watch.changed():
			watch.dir = nil
		case <-h.m.Session.Context().Done():
			stop()
			return place{}, h.m.Session.Err()
		case <-ctx.Done():
			stop()
			return place{}, h.waitedFor(ctxerr.Ended(ctx))
		}
		stop()
	}
}

// lost is the end of a wait for room whose own node could not be read. A transaction that was
// to grant h may have deleted that node.
func (h *heir) lost(ctx context.Context, err error) (place, error) {
	if got, over, failed := h.outcome(ctx); over || failed != nil {
		return got, failed
	}
	return place{}, err
}

// goOn makes h ready, if it is the first without a gap. The caller holds the mutex of the
// waiters. It reports false if h still has to list the leases.
func (h *heir) goOn() bool {
	if !h.m.Gapless() || !h.w.book.knows(&h.waiter) {
		return false
	}
	h.w.book.first(&h.waiter)
	return true
}

// know makes h, which is the first in the queue, ready, and sends what can be sent then. If
// nobody knows which leases stand, know lists them, unless listed is such a list. It reports
// false if the state of h has changed meanwhile.
func (h *heir) know(ctx context.Context, listed []string) (bool, error) {
	w := h.w
	w.mu.Lock()
	if h.state != inQueue || h.goOn() {
		w.act()
		w.mu.Unlock()
		return true, nil
	}
	w.mu.Unlock()
	if listed == nil {
		var err error
		if listed, _, err = h.p.leases.list(ctx, h.m.Session, false); err != nil {
			return false, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.state != inQueue {
		return false, nil
	}
	w.book.see(&h.waiter, leaseNames(listed))
	w.book.first(&h.waiter)
	w.act()
	return true, nil
}

// mostWatched is how many leases of others the first in the queue watches one by one.
const mostWatched = 16

// leaseWatch tells the first in the queue of the ends of leases of others. Each of a few
// leases is watched by itself: its end is room, without a list. Otherwise their directory is
// watched. If another waiter of the client stands behind, the first lists the leases all the
// same. For those that ended together may make room for both at once.
type leaseWatch struct {
	h     *heir
	over  chan struct{} // closed when h waits no more
	nodes map[string]inside.Watched
	dir   *client.OneShotWatch // or nil
	blind bool                 // a lease may not be read
}

// changed is closed when the directory has changed. If that is not watched it is nil.
func (l *leaseWatch) changed() <-chan struct{} {
	if l.dir == nil {
		return nil
	}
	return l.dir.Done()
}

// stop gives up the watches. The client keeps a watch on the server for a moment, and the
// next waiter may get the same one.
func (l *leaseWatch) stop() {
	close(l.over)
	l.dir.Stop()
	for _, n := range l.nodes {
		n.Watch.Stop()
	}
}

// look watches the leases of others that take the room. It reports true if the book may have
// changed by what it found.
func (l *leaseWatch) look(ctx context.Context) (again bool, err error) {
	h := l.h
	w := h.w
	w.mu.Lock()
	again = l.ended()
	names, first := w.book.strangers(), h.state == ready
	wanted := first && !w.book.hasRoom(&h.waiter)
	together := first && again && h.m.Next() != nil
	w.mu.Unlock()
	switch {
	case len(names) == 0:
		return again, nil
	case together:
		return l.lookAtAll(ctx)
	case again || !wanted:
		return again, nil
	case l.dir != nil || l.blind || len(names) > mostWatched:
		return l.lookAtAll(ctx)
	default:
		return l.lookAtEach(ctx, names)
	}
}

// ended takes the leases whose ends were told off the book. The caller holds the mutex of the
// waiters.
func (l *leaseWatch) ended() (some bool) {
	for name, n := range l.nodes {
		event, _ := n.Watch.Event()
		if event == 0 {
			continue
		}
		delete(l.nodes, name)
		if event == zk.EventNodeDeleted {
			l.h.w.book.gone(name)
			some = true
		}
	}
	return some
}

// lookAtEach watches those of the leases with the given names that are not watched yet.
func (l *leaseWatch) lookAtEach(ctx context.Context, names []string) (again bool, err error) {
	h := l.h
	var paths []string
	names = slices.DeleteFunc(names, func(name string) bool { _, known := l.nodes[name]; return known })
	if len(names) == 0 {
		return false, nil
	}
	for _, name := range names {
		paths = append(paths, h.p.leases.dir+"/"+name)
	}
	nodes, err := inner.Watch(ctx, h.m.Session, paths...)
	if err != nil {
		return false, cmp.Or(h.m.Session.Err(), err)
	}
	if l.nodes == nil {
		l.nodes = map[string]inside.Watched{}
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	for i, n := range nodes {
		switch {
		case errors.Is(n.Err, zk.ErrNoNode):
			h.w.book.gone(names[i])
			again = true
		case n.Err != nil:
			l.blind, again = true, true
		case sessionOf(n.Stat) == 0: // no lease
			n.Watch.Stop()
			h.w.book.gone(names[i])
			again = true
		default:
			h.w.book.look(names[i], n.Stat)
			l.nodes[names[i]] = n
			go l.tell(n.Watch)
		}
	}
	return again, nil
}

// tell wakes the first in the queue when a watch has fired. It ends with its wait.
func (l *leaseWatch) tell(w inside.OneShot) {
	select {
	case <-w.Done():
		l.h.wake()
	case <-l.over:
	}
}

// lookAtAll watches the directory of the leases, unless it does so already.
func (l *leaseWatch) lookAtAll(ctx context.Context) (again bool, err error) {
	h := l.h
	if l.dir != nil {
		return false, nil
	}
	seen, changed, err := h.p.seeLeases(ctx, h.m.Session, nil, true)
	if l.dir = changed[0]; err != nil {
		return false, err
	}
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.state == ready {
		w.book.see(&h.waiter, seen.standing)
	}
	for _, lease := range seen.held {
		w.book.look(lease.name, lease.stat)
	}
	return true, nil
}

// waitedFor says for which lease h has waited when its wait ends with err.
func (h *heir) waitedFor(err error) error {
	h.w.mu.Lock()
	held := h.w.book.held()
	h.w.mu.Unlock()
	if len(held) == 0 {
		return err
	}
	return h.p.waited(h.m.Session, occupied{others: h.p.max - h.p.n, held: held}, err)
}
