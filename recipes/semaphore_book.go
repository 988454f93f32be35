package recipes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// mostTogether is how many permits one transaction grants to several waiters, and how many
// leases it deletes.
const mostTogether = 256

// book is what one client knows of the permits of one semaphore. It decides which of the
// client's waiters get permits, and in which transaction. This file is its state machine. It
// does no I/O. A semaphore whose number of permits is shared has no book.
//
// # What is counted
//
//	own   leases that this client has made, and whose end it will be told: by the release, by
//	      the transaction that deletes them, or by the loss of the hold
//	view  other leases that stood when a waiter listed them as the first in the queue, less
//	      those that are known to be gone
//	grant the transaction under way, with the permits that it takes
//
// There is room for n permits if own, view and grant leave it.
//
// # A waiter
//
//	inQueue   others of the queue stand before it. Its acquire waits for its turn.
//	ready     it is the first in the queue, and view is known. It waits for room.
//	promised  the transaction under way grants it.
//	served    that transaction was applied. It has its leases.
//	failed    that transaction has failed, in a way that ends the acquire.
//	departed  its acquire has ended.
//
// # Transitions
//
//	first     (its turn; view is known)             inQueue -> ready
//	next      (no transaction is under way)         ready and those behind it, while there is
//	          room, -> promised. Released leases go in the same transaction.
//	granted   (answer)                              promised -> served
//	refused   (answer: nothing was changed)         the first promised -> ready, alone; the
//	          others -> inQueue. The released leases are deleted without the transaction.
//	          One that was alone already -> failed.
//	lost      (no answer, or another lock is there) promised -> failed; view is not known
//	leave     (its acquire ends)                    any -> departed: what a transaction has
//	          granted to it, or grants later, is deleted, unless a hold has it
//
// # Invariants
//
//	B1  One transaction is under way at a time.
//	B2  At its answer, own and view are no fewer than the leases that stand and that a hold
//	    may rely on. So no more are held than there are permits.
//	B3  While there is room for a ready waiter, a transaction is under way.
//	B4  A lease leaves own when its end is acknowledged. If that is not told, it goes to view,
//	    and the first waiter watches it.
//
// # Why view stays true
//
// From the list on, one waiter of this client after the other is the first. Each stood behind
// the one before when the servers ran the transaction of that one (seqqueue.Member.Gapless).
// So the queue was never empty, and no other contender was the first. Only the first in the queue
// adds leases. An acquire that makes its leases at once keeps them only if it finds the queue
// empty behind them. Then they are older than the first waiter's node, and so in its list.
type book struct {
	own       map[string]*zk.Stat // by the names of the leases
	view      map[string]*zk.Stat // nil: not read yet
	known     bool                // view is
	ready     []*waiter           // in the order of the queue: all but the last have lost their nodes
	grant     *grants             // or nil
	pending   []*release          // released while a transaction was under way
	newest    int64               // the czxid of the newest node of a waiter that was ready
	successor int64               // the number of the waiter that stood behind the last one granted; -1 if there was none, or if view is not known
	behind    func(*waiter) *waiter
}

// standing is the state of a waiter; see book.
type standing int

const (
	inQueue standing = iota
	ready
	promised
	served
	failed
	departed
)

// waiter is an acquire that waits for permits.
type waiter struct {
	n, max  int
	session int64
	number  int64 // of its node in the queue
	czxid   int64 // of that node: numbers begin again in a directory that is made again
	state   standing
	alone   bool  // a transaction with others was refused
	of      *heir // whose acquire it is
}

// release is the leases of a hold that has ended, and that are to be deleted.
type release struct {
	names   []string
	session int64
	by      *grants // deletes them; nil if the releaser has to
	of      *handing
}

// grants is one transaction: it makes the leases of waiters, deletes their nodes in the
// queue, and deletes released leases.
type grants struct {
	waiters  []*waiter
	released []*release
	permits  int
	alone    bool
}

// first notes that w is the first in the queue.
func (b *book) first(w *waiter) {
	if w.state != inQueue {
		return
	}
	w.state, b.newest = ready, max(b.newest, w.czxid)
	b.enter(w)
	for name, stat := range b.own { // nothing tells of the end of leases of an earlier session
		if stat.EphemeralOwner != w.session {
			b.forsake(name)
		}
	}
}

// enter puts w among those that are ready.
func (b *book) enter(w *waiter) {
	i, _ := slices.BinarySearchFunc(b.ready, w.czxid, func(o *waiter, czxid int64) int { return cmp.Compare(o.czxid, czxid) })
	b.ready = slices.Insert(b.ready, i, w)
}

// exit takes w from those that are ready.
func (b *book) exit(w *waiter) {
	b.ready = slices.DeleteFunc(b.ready, func(o *waiter) bool { return o == w })
}

// see notes which leases stood when w, as the first in the queue, listed them. If a waiter
// behind w was the first meanwhile, the node of w was deleted, and its list is old. That list
// takes no lease away then.
func (b *book) see(w *waiter, names []string) {
	was := b.view
	b.view = make(map[string]*zk.Stat, len(names))
	if b.known && w.czxid < b.newest {
		b.view = was
	}
	b.known = true
	for _, name := range names {
		if b.own[name] == nil {
			b.view[name] = was[name]
		}
	}
}

// knows reports whether w, which is the first without a gap, needs no list.
func (b *book) knows(w *waiter) bool { return b.successor == w.number }

// gone notes that a lease of view has ended, or is none.
func (b *book) gone(name string) { delete(b.view, name) }

// keep notes leases that a hold of this client relies on.
func (b *book) keep(names []string, stat *zk.Stat) {
	for _, name := range names {
		delete(b.view, name)
		b.own[name] = stat
	}
}

// ended notes that own leases are deleted.
func (b *book) ended(names []string) {
	for _, name := range names {
		delete(b.own, name)
		delete(b.view, name)
	}
}

// lose notes that the ends of own leases will not be told.
func (b *book) lose(names []string) {
	for _, name := range names {
		if b.own[name] != nil {
			b.forsake(name)
		}
	}
}

// forsake moves one own lease to view.
func (b *book) forsake(name string) {
	if b.known {
		b.view[name] = b.own[name]
	}
	delete(b.own, name)
}

// release notes a release of own leases. If wait is set, the next grant decides what becomes
// of it. Otherwise the releaser deletes the leases.
func (b *book) release(r *release, stat *zk.Stat) (wait bool) {
	if b.grant == nil && len(b.ready) == 0 {
		return false
	}
	b.keep(r.names, stat)
	b.pending = append(b.pending, r)
	return true
}

// withdraw ends the wait of a releaser. It reports false if a transaction deletes the leases.
func (b *book) withdraw(r *release) bool {
	if r.by != nil {
		return false
	}
	b.pending = slices.DeleteFunc(b.pending, func(o *release) bool { return o == r })
	return true
}

// used is how many permits may be held, or are promised.
func (b *book) used() int {
	n := len(b.own) + len(b.view)
	if b.grant != nil {
		n += b.grant.permits
	}
	return n
}

// hasRoom reports whether w could be granted now.
func (b *book) hasRoom(w *waiter) bool { return b.used()+w.n <= w.max }

// next returns the next transaction, nil if none can be sent now. decided are the releases
// that need wait no longer.
func (b *book) next() (g *grants, decided []*release) {
	if b.grant != nil {
		return nil, nil
	}
	decided, b.pending = b.pending, nil
	for _, first := range b.ready {
		if g = b.gather(first, decided); g != nil {
			break
		}
	}
	if g == nil {
		return nil, decided
	}
	b.exit(g.waiters[0])
	for _, w := range g.waiters {
		w.state = promised
	}
	for _, r := range g.released {
		r.by = g
	}
	b.grant = g
	return g, decided
}

// gather returns a transaction for first, and for those behind it for which there is room. It
// returns nil if there is none for first.
func (b *book) gather(first *waiter, released []*release) *grants {
	g, used := &grants{}, b.used()
	if !first.alone {
		used -= b.takeAlong(g, first.session, released)
	}
	for w := first; w != nil && w.session == first.session && used+w.n <= w.max; w = b.behind(w) {
		if w != first && (w.state != inQueue || w.alone || first.alone || g.permits+w.n > mostTogether) {
			break
		}
		used, g.permits = used+w.n, g.permits+w.n
		g.waiters = append(g.waiters, w)
	}
	if len(g.waiters) == 0 {
		return nil
	}
	g.alone = len(g.waiters) == 1 && len(g.released) == 0
	return g
}

// takeAlong lets a transaction delete released leases. It returns how many.
func (b *book) takeAlong(g *grants, session int64, released []*release) (n int) {
	for _, r := range released {
		if r.session == session && n+len(r.names) <= mostTogether && b.hasAll(r.names) {
			g.released, n = append(g.released, r), n+len(r.names)
		}
	}
	return n
}

// hasAll reports whether all leases are own ones.
func (b *book) hasAll(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return b.own[name] == nil })
}

// granted notes that the transaction under way was applied. It has made the leases with the
// given names. successor is the number of the waiter that stood behind the last one before
// that, or -1. If mixed is set, another lock is in use on the path, and nobody may hold them.
func (b *book) granted(names []string, stat *zk.Stat, successor int64, mixed bool) {
	g := b.grant
	b.grant, b.successor = nil, successor
	for _, r := range g.released {
		b.ended(r.names)
	}
	b.keep(names, stat)
	for _, w := range g.waiters {
		if w.state == promised {
			w.state = served
		}
		if w.state == served && mixed {
			w.state = failed
		}
	}
}

// refused notes that the transaction under way has changed nothing. If it was for one waiter
// alone, that one has failed.
func (b *book) refused() {
	g := b.grant
	b.grant = nil
	for i, w := range g.waiters {
		switch {
		case w.state != promised:
		case g.alone:
			w.state = failed
		case i == 0:
			w.state, w.alone = ready, true
			b.enter(w)
		default:
			w.state = inQueue
		}
	}
}

// lost notes that the transaction under way has failed, and that nobody knows what stands. The
// waiters that were ready must list the leases again. lost returns these.
func (b *book) lost() (again []*waiter) {
	g := b.grant
	b.grant, b.known, b.view, b.successor = nil, false, nil, -1
	again, b.ready = b.ready, nil
	for _, w := range again {
		w.state = inQueue
	}
	for _, w := range g.waiters {
		if w.state == promised {
			w.state = failed
		}
	}
	return again
}

// leave notes that the acquire of w has ended. It reports whether what was granted to w, or
// will be, has no holder.
func (b *book) leave(w *waiter, holds bool) (orphan bool) {
	orphan = !holds && w.state == served
	w.state = departed
	b.exit(w)
	return orphan
}

// look notes what was read of a lease of view.
func (b *book) look(name string, stat *zk.Stat) {
	if _, stands := b.view[name]; stands {
		b.view[name] = stat
	}
}

// held are the leases that take room.
func (b *book) held() (all []lease) {
	for _, some := range []map[string]*zk.Stat{b.own, b.view} {
		for name, stat := range some {
			all = append(all, lease{name, stat})
		}
	}
	slices.SortFunc(all, func(x, y lease) int { return strings.Compare(x.name, y.name) })
	return all
}

// strangers are the leases whose ends only the servers tell.
func (b *book) strangers() []string {
	names := make([]string, 0, len(b.view))
	for name := range b.view {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
