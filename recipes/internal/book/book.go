// Package book decides which of the waiters of one client get permits of one semaphore, and
// in which transaction. It does no I/O.
//
// It owns what the client knows of the leases, and the states of the waiters. Its face is
// [Book], with a method for each event; [Book.Next] returns the [Grants] to carry out. The
// shell, semaphore_group.go and semaphore_room.go of package recipes, holds a mutex around
// each call, and makes the transaction. After a failure of that, [Book.Refused] says that
// nothing was changed. [Book.Lost] says that nobody knows: the waiters of that transaction
// have failed, and the others list the leases again.
package book

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// mostTogether is how many permits one transaction grants to several waiters, and how many
// leases it deletes.
const mostTogether = 256

// Book is what one client knows of the permits of one semaphore. It decides which of the
// client's waiters get permits, and in which transaction. A semaphore whose number of permits is
// shared has no book. W is what the shell has of a waiter, and R what it has of a release.
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
//	InQueue   others of the queue stand before it. Its acquire waits for its turn.
//	Ready     it is the first in the queue, and view is known. It waits for room.
//	Promised  the transaction under way grants it.
//	Served    that transaction was applied. It has its leases.
//	Failed    that transaction has failed, in a way that ends the acquire.
//	Departed  its acquire has ended.
//
// # Transitions
//
//	First     (its turn; view is known)             InQueue -> Ready
//	Next      (no transaction is under way)         Ready and those behind it, while there is
//	          room, -> Promised. Released leases go in the same transaction.
//	Granted   (answer)                              Promised -> Served
//	Refused   (answer: nothing was changed)         the first Promised -> Ready, alone; the
//	          others -> InQueue. The released leases are deleted without the transaction.
//	          One that was alone already -> Failed.
//	Lost      (no answer, or another lock is there) Promised -> Failed; view is not known
//	Leave     (its acquire ends)                    any -> Departed: what a transaction has
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
type Book[W, R any] struct {
	own       map[string]*zk.Stat // by the names of the leases
	view      map[string]*zk.Stat // nil: not read yet
	known     bool                // view is
	ready     []*Waiter[W]        // in the order of the queue: all but the last have lost their nodes
	grant     *Grants[W, R]       // or nil
	pending   []*Release[W, R]    // released while a transaction was under way
	newest    int64               // the czxid of the newest node of a waiter that was ready
	successor int64               // the number of the waiter that stood behind the last one granted; -1 if there was none, or if view is not known
	behind    func(*Waiter[W]) *Waiter[W]
}

// Standing is the state of a waiter; see [Book].
type Standing int

// The states of a waiter.
const (
	InQueue Standing = iota
	Ready
	Promised
	Served
	Failed
	Departed
)

// Waiter is an acquire that waits for permits. W is what the shell has of it.
type Waiter[W any] struct {
	N, Max  int
	Session int64
	Number  int64 // of its node in the queue
	Czxid   int64 // of that node: numbers begin again in a directory that is made again
	Of      W
	state   Standing
	alone   bool // a transaction with others was refused
}

// State is what the book knows of the waiter.
func (w *Waiter[W]) State() Standing { return w.state }

// Release is the leases of a hold that has ended, and that are to be deleted. R is what the
// shell has of it.
type Release[W, R any] struct {
	Names   []string
	Session int64
	Of      R
	by      *Grants[W, R] // deletes them; nil if the releaser has to
}

// Granted reports whether a transaction deletes the leases. Otherwise the releaser has to.
func (r *Release[W, R]) Granted() bool { return r.by != nil }

// Grants is one transaction: it makes the leases of waiters, deletes their nodes in the
// queue, and deletes released leases.
type Grants[W, R any] struct {
	Waiters  []*Waiter[W]
	Released []*Release[W, R]
	Alone    bool // it is for one waiter and nothing else
	permits  int
}

// Lease is the node of a permit that is held.
type Lease struct {
	Name string
	Stat *zk.Stat // nil if the node may not be read
}

// New returns a book without leases. behind returns the waiter right behind another in the
// queue, nil if there is none in the process.
func New[W, R any](behind func(*Waiter[W]) *Waiter[W]) *Book[W, R] {
	return &Book[W, R]{own: map[string]*zk.Stat{}, successor: -1, behind: behind}
}

// Ready are the waiters that wait for room, in the order of the queue.
func (b *Book[W, R]) Ready() []*Waiter[W] { return b.ready }

// First notes that w is the first in the queue.
func (b *Book[W, R]) First(w *Waiter[W]) {
	if w.state != InQueue {
		return
	}
	w.state, b.newest = Ready, max(b.newest, w.Czxid)
	b.enter(w)
	for name, stat := range b.own { // nothing tells of the end of leases of an earlier session
		if stat.EphemeralOwner != w.Session {
			b.forsake(name)
		}
	}
}

// enter puts w among those that are ready.
func (b *Book[W, R]) enter(w *Waiter[W]) {
	i, _ := slices.BinarySearchFunc(b.ready, w.Czxid, func(o *Waiter[W], czxid int64) int { return cmp.Compare(o.Czxid, czxid) })
	b.ready = slices.Insert(b.ready, i, w)
}

// exit takes w from those that are ready.
func (b *Book[W, R]) exit(w *Waiter[W]) {
	b.ready = slices.DeleteFunc(b.ready, func(o *Waiter[W]) bool { return o == w })
}

// See notes which leases stood when w, as the first in the queue, listed them. If a waiter
// behind w was the first meanwhile, the node of w was deleted, and its list is old. That list
// takes no lease away then.
func (b *Book[W, R]) See(w *Waiter[W], names []string) {
	was := b.view
	b.view = make(map[string]*zk.Stat, len(names))
	if b.known && w.Czxid < b.newest {
		b.view = was
	}
	b.known = true
	for _, name := range names {
		if b.own[name] == nil {
			b.view[name] = was[name]
		}
	}
}

// Knows reports whether w, which is the first without a gap, needs no list.
func (b *Book[W, R]) Knows(w *Waiter[W]) bool { return b.successor == w.Number }

// Gone notes that a lease of view has ended, or is none.
func (b *Book[W, R]) Gone(name string) { delete(b.view, name) }

// Keep notes leases that a hold of this client relies on.
func (b *Book[W, R]) Keep(names []string, stat *zk.Stat) {
	for _, name := range names {
		delete(b.view, name)
		b.own[name] = stat
	}
}

// Ended notes that own leases are deleted.
func (b *Book[W, R]) Ended(names []string) {
	for _, name := range names {
		delete(b.own, name)
		delete(b.view, name)
	}
}

// Lose notes that the ends of own leases will not be told.
func (b *Book[W, R]) Lose(names []string) {
	for _, name := range names {
		if b.own[name] != nil {
			b.forsake(name)
		}
	}
}

// forsake moves one own lease to view.
func (b *Book[W, R]) forsake(name string) {
	if b.known {
		b.view[name] = b.own[name]
	}
	delete(b.own, name)
}

// Release notes a release of own leases. If wait is set, the next grant decides what becomes
// of it. Otherwise the releaser deletes the leases.
func (b *Book[W, R]) Release(r *Release[W, R], stat *zk.Stat) (wait bool) {
	if b.grant == nil && len(b.ready) == 0 {
		return false
	}
	b.Keep(r.Names, stat)
	b.pending = append(b.pending, r)
	return true
}

// Withdraw ends the wait of a releaser. It reports false if a transaction deletes the leases.
func (b *Book[W, R]) Withdraw(r *Release[W, R]) bool {
	if r.by != nil {
		return false
	}
	b.pending = slices.DeleteFunc(b.pending, func(o *Release[W, R]) bool { return o == r })
	return true
}

// used is how many permits may be held, or are promised.
func (b *Book[W, R]) used() int {
	n := len(b.own) + len(b.view)
	if b.grant != nil {
		n += b.grant.permits
	}
	return n
}

// HasRoom reports whether w could be granted now.
func (b *Book[W, R]) HasRoom(w *Waiter[W]) bool { return b.used()+w.N <= w.Max }

// Next returns the next transaction, nil if none can be sent now. decided are the releases
// that need wait no longer.
func (b *Book[W, R]) Next() (g *Grants[W, R], decided []*Release[W, R]) {
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
	b.exit(g.Waiters[0])
	for _, w := range g.Waiters {
		w.state = Promised
	}
	for _, r := range g.Released {
		r.by = g
	}
	b.grant = g
	return g, decided
}

// gather returns a transaction for first, and for those behind it for which there is room. It
// returns nil if there is none for first.
func (b *Book[W, R]) gather(first *Waiter[W], released []*Release[W, R]) *Grants[W, R] {
	g, used := &Grants[W, R]{}, b.used()
	if !first.alone {
		used -= b.takeAlong(g, first.Session, released)
	}
	for w := first; w != nil && w.Session == first.Session && used+w.N <= w.Max; w = b.behind(w) {
		if w != first && (w.state != InQueue || w.alone || first.alone || g.permits+w.N > mostTogether) {
			break
		}
		used, g.permits = used+w.N, g.permits+w.N
		g.Waiters = append(g.Waiters, w)
	}
	if len(g.Waiters) == 0 {
		return nil
	}
	g.Alone = len(g.Waiters) == 1 && len(g.Released) == 0
	return g
}

// takeAlong lets a transaction delete released leases. It returns how many.
func (b *Book[W, R]) takeAlong(g *Grants[W, R], session int64, released []*Release[W, R]) (n int) {
	for _, r := range released {
		if r.Session == session && n+len(r.Names) <= mostTogether && b.hasAll(r.Names) {
			g.Released, n = append(g.Released, r), n+len(r.Names)
		}
	}
	return n
}

// hasAll reports whether all leases are own ones.
func (b *Book[W, R]) hasAll(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return b.own[name] == nil })
}

// Granted notes that the transaction under way was applied. It has made the leases with the
// given names. successor is the number of the waiter that stood behind the last one before
// that, or -1. If mixed is set, another lock is in use on the path, and nobody may hold them.
func (b *Book[W, R]) Granted(names []string, stat *zk.Stat, successor int64, mixed bool) {
	g := b.grant
	b.grant, b.successor = nil, successor
	for _, r := range g.Released {
		b.Ended(r.Names)
	}
	b.Keep(names, stat)
	for _, w := range g.Waiters {
		if w.state == Promised {
			w.state = Served
		}
		if w.state == Served && mixed {
			w.state = Failed
		}
	}
}

// Refused notes that the transaction under way has changed nothing. If it was for one waiter
// alone, that one has failed.
func (b *Book[W, R]) Refused() {
	g := b.grant
	b.grant = nil
	for i, w := range g.Waiters {
		switch {
		case w.state != Promised:
		case g.Alone:
			w.state = Failed
		case i == 0:
			w.state, w.alone = Ready, true
			b.enter(w)
		default:
			w.state = InQueue
		}
	}
}

// Lost notes that the transaction under way has failed, and that nobody knows what stands. The
// waiters that were ready must list the leases again. Lost returns these.
func (b *Book[W, R]) Lost() (again []*Waiter[W]) {
	g := b.grant
	b.grant, b.known, b.view, b.successor = nil, false, nil, -1
	again, b.ready = b.ready, nil
	for _, w := range again {
		w.state = InQueue
	}
	for _, w := range g.Waiters {
		if w.state == Promised {
			w.state = Failed
		}
	}
	return again
}

// Leave notes that the acquire of w has ended. It reports whether what was granted to w, or
// will be, has no holder.
func (b *Book[W, R]) Leave(w *Waiter[W], holds bool) (orphan bool) {
	orphan = !holds && w.state == Served
	w.state = Departed
	b.exit(w)
	return orphan
}

// Look notes what was read of a lease of view.
func (b *Book[W, R]) Look(name string, stat *zk.Stat) {
	if _, stands := b.view[name]; stands {
		b.view[name] = stat
	}
}

// Held are the leases that take room.
func (b *Book[W, R]) Held() (all []Lease) {
	for _, some := range []map[string]*zk.Stat{b.own, b.view} {
		for name, stat := range some {
			all = append(all, Lease{name, stat})
		}
	}
	slices.SortFunc(all, func(x, y Lease) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// Strangers are the leases whose ends only the servers tell.
func (b *Book[W, R]) Strangers() []string {
	names := make([]string, 0, len(b.view))
	for name := range b.view {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
