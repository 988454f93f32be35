// What takes room in a semaphore, and the wait for it: the children of "<path>/leases" that
// are named as leases and are deleted with a session. There is room for n permits if there are
// no more than max-n such nodes. max is fixed, or is read from a shared count at each look.
//
// With a fixed number an heir waits for its turn in the queue, and then, as the first, for
// room. A transaction of the client may grant it permits at any moment of both.

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
	"github.com/docent-go/docent/recipes/internal/book"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// occupied is what the first in the queue has seen of the permits.
type occupied struct {
	others   int          // permits that other acquires may hold together with the ones asked for
	standing []string     // names of the leases that may be held, all of those that are among them
	held     []book.Lease // the leases that are held; nil if the names alone say that there is room
}

// hasRoom reports whether there is room for the permits asked for.
func (o occupied) hasRoom() bool { return len(o.held) <= o.others }

// changes are the watches on what can make room: the leases, and a shared count.
type changes [2]*client.OneShotWatch

// wait waits until one of the watches has fired.
func (c changes) wait(ctx context.Context) error {
	var done [len(c)]<-chan struct{} // nil never is
	for i, w := range c {
		if w != nil {
			done[i] = w.Done()
		}
	}
	select {
	case <-done[0]:
		return nil
	case <-done[1]:
		return nil
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	}
}

// stop gives up the watches. The client keeps a watch on the server for a moment, and the
// next call of seeLeases may get the same one.
func (c changes) stop() {
	for _, w := range c {
		w.Stop()
	}
}

// others is how many permits other acquires may hold together with these. If watch is set,
// a watch on a shared count comes with it.
func (p permits) others(ctx context.Context, watch bool) (int, *client.OneShotWatch, error) {
	most, w := p.max, (*client.OneShotWatch)(nil)
	if p.count != nil {
		now, changed, err := p.counted(ctx, watch)
		if err != nil {
			return 0, nil, err
		}
		most, w = int(now), changed
	}
	if p.n > most {
		return 0, w, fmt.Errorf("%w: asked for %d of %d", ErrTooManyPermits, p.n, most)
	}
	return most - p.n, w, nil
}

// counted is the number that the count says, with a watch if watch is set.
func (p permits) counted(ctx context.Context, watch bool) (int32, *client.OneShotWatch, error) {
	if watch {
		return p.count.ValueW(ctx)
	}
	now, err := p.count.Value(ctx)
	return now, nil, err
}

// othersDuring is others, but ends with session: the count may be of another client,
// whose servers may be out of reach for longer.
func (p permits) othersDuring(ctx context.Context, session *client.Session, watch bool) (int, *client.OneShotWatch, error) {
	if p.count == nil {
		return p.others(ctx, watch)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := session.Context()
	defer context.AfterFunc(over, func() { end(context.Cause(over)) })()
	n, w, err := p.others(ctx, watch)
	if err != nil {
		err = cmp.Or(session.Err(), err)
	}
	return n, w, err
}

// awaitRoom waits until there is room for the permits. Unless wait is set it does not wait,
// and returns a BusyError with a holder if there is no room. Room stays for the first in
// the queue: no other acquire makes leases, and only a lower number of permits takes the
// room away. So a list of the leases that was made since the acquire became the first is as
// good as a new one. listed is that list, or nil.
func (p permits) awaitRoom(ctx context.Context, session *client.Session, listed []string, wait bool) (waited bool, err error) {
	for watch := false; ; watch = wait {
		seen, changed, err := p.seeLeases(ctx, session, listed, watch)
		there := seen.hasRoom()
		if err == nil && !there {
			switch {
			case watch:
				waited = true
				if err = changed.wait(ctx); err != nil {
					err = p.waited(session, seen, err)
				}
			case !wait:
				err = p.busy(ctx, session)
			}
		}
		changed.stop()
		if err != nil || there {
			return waited, err
		}
		listed = nil
	}
}

// busy returns a BusyError with a holder, nil if all holders have released meanwhile. A
// caller knows its own leases, so a holder of another session is named if there is one.
func (p permits) busy(ctx context.Context, session *client.Session) error {
	holders, err := p.leases.contenders(ctx)
	if err != nil || len(holders) == 0 {
		return err
	}
	other := slices.IndexFunc(holders, func(c Contender) bool { return c.Session != session.ID() })
	return &BusyError{Holder: holders[max(0, other)]}
}

// seeLeases says whether there is room, and which leases take it. If watch is set, changed
// tells when to look again.
func (p permits) seeLeases(ctx context.Context, session *client.Session, listed []string, watch bool) (seen occupied, changed changes, err error) {
	if seen.others, changed[1], err = p.othersDuring(ctx, session, watch); err != nil {
		return seen, changed, err
	}
	if listed == nil {
		if listed, changed[0], err = p.leases.list(ctx, session, watch); err != nil {
			return seen, changed, err
		}
	}
	seen.standing = leaseNames(listed)
	if len(seen.standing) > seen.others {
		if seen.held, err = p.leases.owned(ctx, session, seen.standing); err == nil {
			seen.standing = namesOf(seen.held)
		}
	}
	return seen, changed, err
}

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
		state, got, err := h.State(), h.got, h.err
		h.w.mu.Unlock()
		switch state { //nolint:exhaustive // the acquire has not left
		case book.Served:
			return got, true, nil
		case book.Failed:
			return place{}, false, cmp.Or(h.m.Session.Err(), err)
		case book.Promised:
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

// know makes h, which is the first in the queue, ready, and sends what can be sent then. If
// nobody knows which leases stand, know lists them, unless listed is such a list. It reports
// false if the state of h has changed meanwhile.
func (h *heir) know(ctx context.Context, listed []string) (bool, error) {
	w := h.w
	w.mu.Lock()
	if h.State() != book.InQueue || h.goOn() {
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
	if h.State() != book.InQueue {
		return false, nil
	}
	w.book.See(&h.Waiter, leaseNames(listed))
	w.book.First(&h.Waiter)
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
	names, first := w.book.Strangers(), h.State() == book.Ready
	wanted := first && !w.book.HasRoom(&h.Waiter)
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
			l.h.w.book.Gone(name)
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
			h.w.book.Gone(names[i])
			again = true
		case n.Err != nil:
			l.blind, again = true, true
		case sessionOf(n.Stat) == 0: // no lease
			n.Watch.Stop()
			h.w.book.Gone(names[i])
			again = true
		default:
			h.w.book.Look(names[i], n.Stat)
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
	if h.State() == book.Ready {
		w.book.See(&h.Waiter, seen.standing)
	}
	for _, lease := range seen.held {
		w.book.Look(lease.Name, lease.Stat)
	}
	return true, nil
}

// waitedFor says for which lease h has waited when its wait ends with err.
func (h *heir) waitedFor(err error) error {
	h.w.mu.Lock()
	held := h.w.book.Held()
	h.w.mu.Unlock()
	if len(held) == 0 {
		return err
	}
	return h.p.waited(h.m.Session, occupied{others: h.p.max - h.p.n, held: held}, err)
}

// waited makes the end of a wait for permits say how many were free, and name one
// lease. It goes by what the waiter has read before. The lease is one of the
// waiter's own session if there is one, otherwise the oldest.
func (p permits) waited(session *client.Session, seen occupied, err error) error {
	own := func(l book.Lease) bool { return l.Stat != nil && l.Stat.EphemeralOwner == session.ID() }
	ahead := slices.MinFunc(seen.held, func(a, b book.Lease) int {
		switch mine := own(a); {
		case mine && !own(b):
			return -1
		case !mine && own(b):
			return 1
		}
		x, _ := leaseNumber(a.Name)
		y, _ := leaseNumber(b.Name)
		return cmp.Compare(x, y)
	})
	all := seen.others + p.n
	free := fmt.Sprintf("%d of %d", max(0, all-len(seen.held)), all)
	if len(seen.held) > all {
		free += fmt.Sprintf(" (%d are held: their number was lowered, or another client goes by a greater one)", len(seen.held))
	}
	number, _ := leaseNumber(ahead.Name)
	n := seqqueue.Node{Name: ahead.Name, Key: number, Tag: leaseTag}
	w := &WaitError{
		Ahead: *contenderAt(p.c, p.leases.queue.Path(n), n), SameClient: own(ahead), ended: true, hint: true,
		Err: fmt.Errorf("permits free: %s, asked for: %d: %w", free, p.n, err),
	}
	w.Ahead.Holder, w.Ahead.Unreadable = true, ahead.Stat == nil
	if ahead.Stat != nil {
		fill(&w.Ahead, nil, ahead.Stat)
		asLease(&w.Ahead)
	}
	return w
}
