package book

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/explore"
)

// The parties that may have leases. The first three are waiters of the client. Then there is an
// acquire of it that stands in the queue and need not wait: the book hears of it only if somebody
// waits. There is a hold from before, and an acquire that takes its lease at once. The others are of
// other clients: a holder, an acquire at once, and one in the queue.
const (
	aside = 3 + iota
	earlier
	atOnce
	foreign
	foreignAtOnce
	foreignQueue
	parties
)

// step is a move of the model.
type step struct {
	what stepKind
	who  int8
}

type stepKind int8

const (
	joins      stepKind = iota // its node is made
	made                       // its client reads the answer
	comesFirst                 // a list shows no contender ahead
	lists                      // the servers answer its list of the leases
	reads                      // its client reads that list
	goesOn                     // it is first without a gap
	givesUp
	nodeGone    // a node of the queue is deleted for a waiter that has left
	evicted     // an operator deletes its node in the queue
	hearsGone   // it learns that
	applied     // the servers apply or refuse the transaction
	unanswered  // the answer will not come
	readsAnswer // the goroutine that reads from the connection reads the answer
	hears       // the client acts on that answer, or hears that there is none
	released
	deleted   // the servers delete leases
	told      // the client hears of that
	forced    // an operator deletes leases
	hearsLoss // their holder learns that
	taken     // leases are taken by a contender that needs no transaction of the client
	noted     // the client notes those
	tells     // the first hears that a lease of others is gone
	expires   // the first session of the client ends on the servers
	abandons  // the context of a release ends
	mixes     // the answer shows another lock on the path as well
	readsOld  // its client goes by the list of the leases that came with its node, or with a look
	looks     // the servers answer its look at the queue and the leases
)

var stepNames = [...]string{
	"joins", "reads its number", "lists the queue: it is the first", "lists the leases", "reads that list",
	"is the first without a gap", "gives up", "is gone from the queue", "is deleted from the queue by an operator", "learns that its node is gone",
	"the servers run the transaction", "the answer is lost", "the answer is read", "the client acts on the answer", "releases", "has its leases deleted", "is told so",
	"has its leases deleted by an operator", "learns of its loss", "takes a lease", "notes the lease", "is heard to be gone",
	"the session ends", "gives up its release", "the client acts on the answer, which shows another lock", "goes by the list that came with its node or look", "looks at the queue and the leases",
}

// places says what a waiter knows of its place: what the chain of package seqqueue does.
type places int8

const (
	absent places = iota
	unknownPlace
	linkedPlace
	firstPlace
	overPlace
	leftPlace
)

// set is a set of parties.
type set uint16

func (s set) has(i int8) bool { return s>>i&1 != 0 }

// with adds or removes one.
func (s set) with(i int8, in bool) set {
	if in {
		return s | 1<<i
	}
	return s &^ (1 << i)
}

// fate is what became of the transaction.
type fate int8

const (
	sent fate = iota + 1
	done
	refusedAll
	lostDone
	lostRefused
)

// bookWorld is a state of the model.
type bookWorld struct {
	// the servers
	number [parties]int8 // of nodes in the queue, 0 of one that was never made
	next   int8
	queue  set // whose nodes stand in the queue
	leases set // whose leases stand

	// the client
	place     [queuers]places
	front     [queuers]int8
	joined    [3]set // the leases when its node was made
	unread    set    // the lists that came with these nodes
	firstThen set    // it was the first by its list of the queue, or as the answer to its create was read
	gapless   set
	asked     set // their lists of leases were answered
	seen      [3]set
	state     [3]Standing
	alone     set
	own       set
	view      set
	known     bool
	newest    int8
	successor int8
	grant     set // whom the transaction under way serves
	along     set // whose leases it deletes
	single    bool
	behind    int8 // the follower when the answer was read, or else when it was sent, or -1
	fate      fate
	read      bool // the answer
	after     set  // whose nodes were made after the transaction was run: they are read about after it
	pending   set

	holds          set // who believes to hold
	struck         set // their leases or nodes were deleted by an operator
	deleting       set // their leases are being deleted
	untold         set // by somebody who tells nobody
	gone           set // and are gone, but the client does not know
	leaving        set // their nodes in the queue are being deleted
	unnoted        set
	used           set  // of once
	over           bool // the first session of the client has ended
	second         set  // the nodes of these are of the second
	earlierCreates set  // the answers to these creates come before that to the transaction of the acquire aside
	twice          bool // a transaction was sent while another was under way
	faults         int8
}

// bookModel is what may happen in a model.
type bookModel struct {
	waiters int8
	n       [3]int8
	max     int8
	others  set // parties beside the waiters
	faults  int8
	kinds   []stepKind
	bug     string
}

var (
	errTooMany = errors.New("more permits are held than there are")
	errBelief  = errors.New("the client counts too few leases")
	errTwice   = errors.New("two transactions are under way")
	errIdle    = errors.New("there is room for one that is ready, and no transaction is under way")
)

func (m *bookModel) units(i int8) int {
	if i < 3 {
		return int(m.n[i])
	}
	return 1
}

func (m *bookModel) count(s set) (n int) {
	for i := range int8(parties) {
		if s.has(i) {
			n += m.units(i)
		}
	}
	return n
}

// isAhead are those that stand before i in the queue.
func (w *bookWorld) isAhead(i int8) (ahead set) {
	for j := range int8(parties) {
		ahead = ahead.with(j, w.queue.has(j) && w.number[j] < w.number[i])
	}
	return ahead
}

func (m *bookModel) machine() *explore.Machine[bookWorld, step] {
	start := bookWorld{next: 1, behind: -1, successor: -1, faults: m.faults}
	for _, i := range []int8{earlier, foreign} {
		if m.others.has(i) {
			start.leases, start.holds, start.used = start.leases.with(i, true), start.holds.with(i, true), start.used.with(i, true)
		}
	}
	return &explore.Machine[bookWorld, step]{
		Start: start, Moves: m.moves, Apply: m.apply, Waits: m.waits,
		Must: func(s step) bool {
			switch s.what {
			case joins, givesUp, evicted, unanswered, forced, released, expires, abandons, mixes, looks:
				return s.what == released && s.who >= foreign
			case taken:
				return s.who == foreignQueue
			default:
				return true
			}
		},
		Tell: func(w *bookWorld, s step) string {
			return fmt.Sprintf("%s %s (leases %v, queue %v, own %v, view %v, promised %v)", partyName(s.who), stepNames[s.what], w.leases, w.queue, w.own, w.view, w.grant)
		},
	}
}

func partyName(i int8) string {
	return [...]string{"waiter 0", "waiter 1", "waiter 2", "the acquire aside", "the earlier hold", "the acquire at once", "the foreign holder", "the foreign acquire at once", "the foreign waiter"}[i]
}

func (s set) String() string {
	var names []string
	for i := range int8(parties) {
		if s.has(i) {
			names = append(names, fmt.Sprint(i))
		}
	}
	return "{" + strings.Join(names, " ") + "}"
}

func (m *bookModel) may(w *bookWorld, k stepKind) bool {
	return w.faults > 0 && slices.Contains(m.kinds, k)
}

// queuers is how many parties of the client may stand in the queue.
const queuers = aside + 1

// heirs reports whether a waiter is known to the book.
func (m *bookModel) heirs(w *bookWorld) bool {
	for i := range m.waiters {
		if w.place[i] != absent && (w.state[i] == InQueue && w.place[i] != leftPlace || w.state[i] == Ready || w.state[i] == Promised) {
			return true
		}
	}
	return false
}

func (m *bookModel) moves(w *bookWorld, all []step) []step {
	add := func(ok bool, k stepKind, i int8) {
		if ok {
			all = append(all, step{k, i})
		}
	}
	for i := range m.waiters {
		place, state := w.place[i], w.state[i]
		live := place != absent && place != leftPlace && place != overPlace
		first := place == firstPlace && state == InQueue && !w.asked.has(i)
		goes := first && w.known && (w.gapless.has(i) && w.successor == w.number[i] || m.bug == "known over a gap")
		add(w.number[i] == 0 && (i == 0 || w.number[i-1] != 0), joins, i)
		add(w.number[i] != 0 && place == absent && !w.after.has(i), made, i)
		add(place == unknownPlace && w.isAhead(i) == 0 && w.answered(i), comesFirst, i)
		add(first && !goes || m.bug == "leases before the queue" && place == unknownPlace && !w.asked.has(i), lists, i)
		add(place == firstPlace && w.asked.has(i) && state == InQueue, reads, i)
		add(place == unknownPlace && w.isAhead(i) != 0 && w.answered(i), looks, i)
		add(first && w.unread.has(i) && (w.firstThen.has(i) || m.bug == "first by now"), readsOld, i)
		add(goes, goesOn, i)
		add(live && state != Served && state != Failed && m.may(w, givesUp), givesUp, i)
		add(w.queue.has(i) && w.leaving.has(i), nodeGone, i)
		add(live && w.queue.has(i) && !w.leaving.has(i) && m.may(w, evicted), evicted, i)
		add(live && w.struck.has(i) && !w.queue.has(i) && state != Promised && state != Served, hearsGone, i)
	}
	add(w.fate == sent, applied, 0)
	add(w.fate != 0 && w.fate < lostDone && !w.read && (m.may(w, unanswered) || w.ended(m.lastOf(w))), unanswered, 0)
	before := w.fate > sent && !w.read
	for i := range m.waiters {
		same := w.fate != 0 && w.second.has(i) == w.second.has(m.lastOf(w))
		before = before && (w.number[i] == 0 || w.place[i] != absent || w.after.has(i) || !same)
	}
	add(before && w.fate < lostDone, readsAnswer, 0)
	add(w.read || w.fate >= lostDone, hears, 0)
	add(w.read && w.fate == done && m.may(w, mixes), mixes, 0)
	add(!w.over && m.may(w, expires), expires, 0)
	for i := range int8(parties) {
		mine := i < foreign
		idle := !w.pending.has(i) && !w.along.has(i) && !w.deleting.has(i) && !w.gone.has(i)
		add(w.holds.has(i) && (!mine || idle && !w.unnoted.has(i)), released, i)
		add((w.pending.has(i) || w.along.has(i)) && m.may(w, abandons), abandons, i)
		add(mine && w.deleting.has(i), deleted, i)
		add(mine && w.gone.has(i), told, i)
		add(mine && w.leases.has(i) && m.may(w, forced), forced, i)
		add(mine && w.holds.has(i) && !w.leases.has(i) && !w.unnoted.has(i), hearsLoss, i)
		add(w.view.has(i) && w.known && !w.leases.has(i) && m.watches(w), tells, i)
	}
	room := m.count(w.leases) < int(m.max)
	if m.others.has(aside) {
		add(w.number[aside] == 0, joins, aside)
		add(w.number[aside] != 0 && w.place[aside] == absent, made, aside)
		add(w.place[aside] == unknownPlace && w.isAhead(aside) == 0 && w.answered(aside), comesFirst, aside)
		add(w.place[aside] == firstPlace && w.queue.has(aside) && room, taken, aside)
		add(w.unnoted.has(aside) && w.earlierCreates == 0, noted, aside)
	}
	add(m.others.has(atOnce) && !w.used.has(atOnce) && w.queue == 0 && room, taken, atOnce)
	add(m.others.has(foreignAtOnce) && !w.used.has(foreignAtOnce) && w.queue == 0 && room, taken, foreignAtOnce)
	add(w.unnoted.has(atOnce), noted, atOnce)
	add(m.others.has(foreignQueue) && w.number[foreignQueue] == 0, joins, foreignQueue)
	add(w.queue.has(foreignQueue) && w.isAhead(foreignQueue) == 0 && room, taken, foreignQueue)
	return all
}

// ended reports whether the session of a party of the client has ended.
func (w *bookWorld) ended(i int8) bool { return w.over && !w.second.has(i) }

// answered reports whether the answers to all creates of the session of i were read. Those to
// later requests are read later.
func (w *bookWorld) answered(i int8) bool {
	for j := range int8(queuers) {
		if w.number[j] != 0 && w.place[j] == absent && w.second.has(j) == w.second.has(i) {
			return false
		}
	}
	return true
}

// session is the session of a party of the client.
func (w *bookWorld) session(i int8) int64 {
	if w.second.has(i) {
		return 2
	}
	return 1
}

func (w *bookWorld) stat(i int8) *zk.Stat { return &zk.Stat{EphemeralOwner: w.session(i)} }

// watches reports whether a ready waiter has no room.
func (m *bookModel) watches(w *bookWorld) bool {
	return slices.Contains(w.state[:], Ready)
}

// book makes the product's book of a state, and afterwards reads it back.
func (m *bookModel) book(w *bookWorld, act func(b *book, at func(i int8) *waiter)) {
	var all [3]*waiter
	for i := range m.waiters {
		all[i] = &waiter{N: int(m.n[i]), Max: int(m.max), Session: w.session(i), Number: int64(w.number[i]), Czxid: int64(w.number[i]), state: w.state[i], alone: w.alone.has(i)}
	}
	at := func(i int8) *waiter { return all[i] }
	index := func(c *waiter) int8 { return int8(slices.Index(all[:], c)) }
	b := &book{own: map[string]*zk.Stat{}, known: w.known, newest: int64(w.newest), successor: int64(w.successor)}
	if w.known {
		b.view = map[string]*zk.Stat{}
	}
	for i := range int8(parties) {
		for _, name := range m.names(i) {
			if w.own.has(i) {
				b.own[name] = w.stat(i)
			}
			if w.view.has(i) {
				b.view[name] = nil
			}
		}
	}
	b.behind = func(c *waiter) *waiter {
		if j := w.follower(index(c)); j >= 0 && j < aside {
			return all[j]
		}
		return nil
	}
	byNumber := slices.Clone(all[:m.waiters])
	slices.SortFunc(byNumber, func(x, y *waiter) int { return int(x.Number - y.Number) })
	for _, c := range byNumber {
		if c.state == Ready {
			b.ready = append(b.ready, c)
		}
	}
	if w.fate != 0 {
		b.grant = &grants{Alone: w.single}
		for _, c := range byNumber {
			if w.grant.has(index(c)) {
				b.grant.Waiters, b.grant.permits = append(b.grant.Waiters, c), b.grant.permits+c.N
			}
		}
	}
	of := func(r *release) int8 { return int8(r.Names[0][0] - '0') }
	for i := range int8(foreign) {
		r := &release{Names: m.names(i), Session: w.session(i)}
		if w.pending.has(i) {
			b.pending = append(b.pending, r)
		}
		if w.along.has(i) {
			r.by, b.grant.Released = b.grant, append(b.grant.Released, r)
		}
	}

	act(b, at)
	before := b.grant
	g, decided := b.Next()
	w.twice = w.twice || before != nil && g != nil
	for _, r := range decided {
		if r.by == nil {
			w.deleting = w.deleting.with(of(r), true)
		}
	}
	w.pending = 0
	for _, r := range b.pending {
		w.pending = w.pending.with(of(r), true)
	}
	if g != nil {
		w.grant, w.along, w.single, w.fate = 0, 0, g.Alone, sent
		for _, c := range g.Waiters {
			w.grant = w.grant.with(index(c), true)
		}
		for _, r := range g.Released {
			w.along = w.along.with(of(r), true)
		}
		w.behind = w.follower(index(g.Waiters[len(g.Waiters)-1]))
	} else if before == nil {
		w.grant, w.along, w.fate, w.behind = 0, 0, 0, -1
	}
	w.known, w.newest, w.successor, w.own, w.view = b.known, int8(b.newest), int8(b.successor), 0, 0
	for i := range int8(parties) {
		_, mine := b.own[m.names(i)[0]]
		_, seen := b.view[m.names(i)[0]]
		w.own, w.view = w.own.with(i, mine), w.view.with(i, seen)
	}
	for i := range m.waiters {
		w.state[i], w.alone = all[i].state, w.alone.with(i, all[i].alone)
	}
}

func (m *bookModel) names(i int8) (names []string) {
	for k := range m.units(i) {
		names = append(names, fmt.Sprintf("%d.%d", i, k))
	}
	return names
}

// follower is the one waiter that is linked to i, or -1.
func (w *bookWorld) follower(i int8) int8 {
	found := int8(-1)
	for j := range int8(queuers) {
		if w.place[j] == linkedPlace && w.front[j] == i {
			if found >= 0 {
				return -1
			}
			found = j
		}
	}
	return found
}

// end takes a waiter off the chain.
func (w *bookWorld) end(i int8) {
	was := w.place[i]
	if was == overPlace {
		return
	}
	w.place[i] = leftPlace
	if was == firstPlace {
		w.place[i] = overPlace
	}
	for j := range int8(queuers) {
		if w.place[j] != linkedPlace || w.front[j] != i {
			continue
		}
		switch was { //nolint:exhaustive // the others tell nothing
		case firstPlace:
			w.place[j] = firstPlace
		case linkedPlace:
			w.front[j] = w.front[i]
		default:
			w.place[j] = unknownPlace
		}
	}
}

// leave is the end of the acquire of i without permits.
func (m *bookModel) leave(w *bookWorld, i int8) {
	m.book(w, func(b *book, at func(int8) *waiter) {
		if b.Leave(at(i), false) {
			b.Lose(m.names(i))
			w.deleting = w.deleting.with(i, true)
		}
	})
	w.end(i)
	w.leaving = w.leaving.with(i, true)
}

func (m *bookModel) apply(w *bookWorld, s step) error {
	i := s.who
	if slices.Contains(m.kinds, s.what) {
		w.faults--
	}
	switch s.what {
	case joins:
		w.number[i], w.queue = w.next, w.queue.with(i, true)
		if i < aside {
			w.joined[i], w.unread = w.leases, w.unread.with(i, true)
			w.firstThen = w.firstThen.with(i, w.isAhead(i) == 0)
		}
		w.second = w.second.with(i, w.over && i < foreign)
		w.after = w.after.with(i, w.fate > sent && w.fate < lostDone && !w.read && w.second.has(i) == w.second.has(m.lastOf(w)))
		w.next++
	case made:
		w.place[i], w.earlierCreates = unknownPlace, w.earlierCreates.with(i, false)
		for j := range int8(queuers) {
			if j == i || w.number[j]+1 != w.number[i] || w.place[j] == absent || w.place[j] == leftPlace || w.second.has(j) != w.second.has(i) {
				continue
			}
			if w.place[i], w.front[i] = linkedPlace, j; w.place[j] == overPlace {
				w.place[i] = firstPlace
			}
		}
		w.firstThen = w.firstThen.with(i, w.firstThen.has(i) || w.place[i] == firstPlace)
	case comesFirst:
		w.place[i] = firstPlace
	case lists:
		w.asked, w.seen[i] = w.asked.with(i, true), w.leases
	case reads:
		w.asked = w.asked.with(i, false)
		m.book(w, func(b *book, at func(int8) *waiter) {
			if m.bug == "an old list counts" {
				b.newest = 0
			}
			b.See(at(i), m.all(w.seen[i]))
			b.First(at(i))
		})
		w.seen[i] = 0
	case looks:
		w.joined[i], w.unread, w.firstThen = w.leases, w.unread.with(i, true), w.firstThen.with(i, false)
	case readsOld:
		m.book(w, func(b *book, at func(int8) *waiter) {
			b.See(at(i), m.all(w.joined[i]))
			b.First(at(i))
		})
	case goesOn:
		m.book(w, func(b *book, at func(int8) *waiter) { b.First(at(i)) })
	case givesUp, hearsGone:
		w.asked, w.seen[i] = w.asked.with(i, false), 0
		m.leave(w, i)
	case nodeGone:
		w.queue, w.leaving = w.queue.with(i, false), w.leaving.with(i, false)
	case evicted:
		w.queue, w.struck = w.queue.with(i, false), w.struck.with(i, true)
	case applied:
		if w.fate = refusedAll; w.ended(m.lastOf(w)) {
			w.fate, w.after = lostRefused, 0
		} else if w.queue&w.grant == w.grant && w.leases&w.along == w.along {
			w.fate = done
			w.queue &^= w.grant
			w.leases = w.leases&^w.along | w.grant
		}
	case unanswered:
		w.after = 0 // it is read on the next connection
		if w.fate = lostRefused; w.queue&w.grant == 0 && w.leases&w.grant == w.grant {
			w.fate = lostDone
		}
	case readsAnswer:
		w.read, w.after = true, 0
		if j := w.follower(m.lastOf(w)); w.fate == done && j >= 0 {
			w.behind = j
		}
	case hears, mixes:
		m.answer(w, s.what == mixes)
	case released:
		m.release(w, i)
	case deleted:
		w.deleting, w.gone, w.leases = w.deleting.with(i, false), w.gone.with(i, w.own.has(i) && !w.untold.has(i)), w.leases.with(i, false)
	case told:
		w.gone = w.gone.with(i, false)
		m.book(w, func(b *book, _ func(int8) *waiter) {
			if w.ended(i) {
				b.Lose(m.names(i))
			} else {
				b.Ended(m.names(i))
			}
		})
	case expires:
		w.over = true
		for i := range int8(foreign) {
			if w.second.has(i) {
				continue
			}
			w.struck = w.struck.with(i, w.struck.has(i) || w.queue.has(i) || w.leases.has(i))
			w.queue, w.leaving, w.leases = w.queue.with(i, false), w.leaving.with(i, false), w.leases.with(i, false)
		}
	case abandons:
		m.book(w, func(b *book, _ func(int8) *waiter) { abandon(b, m.names(i), m.bug) })
		w.deleting, w.untold = w.deleting.with(i, true), w.untold.with(i, true)
	case forced:
		w.leases, w.struck = w.leases.with(i, false), w.struck.with(i, true)
	case hearsLoss:
		w.holds = w.holds.with(i, false)
		m.book(w, func(b *book, _ func(int8) *waiter) {
			if m.bug != "a loss is not told" {
				b.Lose(m.names(i))
			}
		})
	case taken:
		w.leases, w.holds, w.used = w.leases.with(i, true), w.holds.with(i, true), w.used.with(i, true)
		w.queue = w.queue.with(i, false)
		w.unnoted = w.unnoted.with(i, i == atOnce || i == aside)
		for j := range m.waiters {
			w.earlierCreates = w.earlierCreates.with(j, i == aside && w.number[j] != 0 && w.place[j] == absent && w.second.has(j) == w.second.has(aside))
		}
		if i == atOnce {
			w.second = w.second.with(i, w.over)
		}
	case noted:
		w.unnoted = w.unnoted.with(i, false)
		if m.heirs(w) {
			m.book(w, func(b *book, _ func(int8) *waiter) { b.Keep(m.names(i), w.stat(i)) })
		}
		if i == aside {
			w.end(aside)
		}
	case tells:
		m.book(w, func(b *book, _ func(int8) *waiter) {
			for _, name := range m.names(i) {
				b.Gone(name)
			}
		})
	}
	for j := range m.waiters {
		if w.state[j] != InQueue || w.place[j] == overPlace || w.place[j] == leftPlace {
			w.unread, w.joined[j] = w.unread.with(j, false), 0
		}
	}
	if !m.heirs(w) && w.fate == 0 { // the next waiter has a new book
		w.own, w.view, w.known, w.newest, w.successor = 0, 0, false, 0, -1
	}
	return m.check(w)
}

// lastOf is the last waiter that the transaction serves.
func (m *bookModel) lastOf(w *bookWorld) (last int8) {
	last = -1
	for i := range m.waiters {
		if w.grant.has(i) && (last < 0 || w.number[i] > w.number[last]) {
			last = i
		}
	}
	return last
}

// all are the names of the leases of a set of parties.
func (m *bookModel) all(s set) (names []string) {
	for i := range int8(parties) {
		if s.has(i) {
			names = append(names, m.names(i)...)
		}
	}
	return names
}

// answer lets the client know what became of the transaction.
func (m *bookModel) answer(w *bookWorld, mixed bool) {
	fate, group, along, behind := w.fate, w.grant, w.along, w.behind
	w.read = false
	var inOrder []int8
	for i := range m.waiters {
		if group.has(i) {
			inOrder = append(inOrder, i)
		}
	}
	slices.SortFunc(inOrder, func(x, y int8) int { return int(w.number[x]) - int(w.number[y]) })
	if m.bug == "followers that came later" {
		behind = w.follower(inOrder[len(inOrder)-1])
	}
	var orphans set
	if fate == done { // the shell does this under its mutex, before the next transaction
		for k, i := range inOrder {
			next := behind
			if k+1 < len(inOrder) {
				next = inOrder[k+1]
			}
			handed := next >= 0 && w.place[next] == linkedPlace && w.front[next] == i && w.place[i] == firstPlace
			w.end(i)
			w.gapless = w.gapless.with(i, false)
			if handed {
				w.gapless = w.gapless.with(next, true)
			}
			if w.state[i] == Departed || mixed {
				orphans = orphans.with(i, true)
			}
		}
	}
	m.book(w, func(b *book, at func(int8) *waiter) {
		w.along = 0
		switch fate { //nolint:exhaustive // it was run
		case done:
			successor := int64(-1)
			if behind >= 0 {
				successor = int64(w.number[behind])
			}
			b.Granted(m.all(group), w.stat(inOrder[0]), successor, mixed)
			b.Lose(m.all(orphans))
		case refusedAll:
			b.Refused()
		default:
			b.Lost()
		}
	})
	w.deleting |= orphans
	for i := range m.waiters {
		switch {
		case !group.has(i):
		case fate == done && w.state[i] == Served:
			w.holds = w.holds.with(i, true)
		case w.state[i] == Failed && w.place[i] != overPlace && w.place[i] != leftPlace:
			m.leave(w, i)
		}
		if group.has(i) && fate == lostDone { // the remover finds them
			w.deleting = w.deleting.with(i, true)
		}
	}
	for i := range int8(foreign) {
		if !along.has(i) {
			continue
		}
		switch fate { //nolint:exhaustive // it was run
		case done:
		case refusedAll, lostRefused:
			w.deleting = w.deleting.with(i, true)
		default:
			w.gone = w.gone.with(i, true)
		}
	}
}

// release ends a hold.
func (m *bookModel) release(w *bookWorld, i int8) {
	w.holds = w.holds.with(i, false)
	if i >= foreign {
		w.leases = w.leases.with(i, false)
		return
	}
	wait := false
	m.book(w, func(b *book, _ func(int8) *waiter) {
		wait = b.Release(&release{Names: m.names(i), Session: w.session(i)}, w.stat(i))
	})
	if !wait {
		w.deleting = w.deleting.with(i, true)
	}
}

// abandon is what a releaser does at the end of its context.
func abandon(b *book, names []string, bug string) {
	for _, r := range b.pending {
		if slices.Equal(r.Names, names) && !b.Withdraw(r) {
			panic("a release that is pending cannot be withdrawn")
		}
	}
	if bug != "an abandoned release is not told" {
		b.Lose(names)
	}
}

func (m *bookModel) check(w *bookWorld) error {
	if w.twice {
		return errTwice
	}
	if held := w.holds & w.leases &^ w.struck; m.count(held) > int(m.max) {
		return fmt.Errorf("%w: %v of %d", errTooMany, held, m.max)
	}
	for i := range m.waiters {
		if w.state[i] == Ready && w.fate == 0 && m.count(w.own|w.view)+m.units(i) <= int(m.max) {
			return fmt.Errorf("%w: %v", errIdle, partyName(i))
		}
	}
	if w.known && w.place != [queuers]places{} {
		counted := w.own | w.view | w.grant
		if missed := w.holds & w.leases &^ counted &^ w.struck; m.ready(w) && missed != 0 {
			return fmt.Errorf("%w: %v are not counted", errBelief, missed)
		}
	}
	return nil
}

// ready reports whether a waiter whose node stands is ready.
func (m *bookModel) ready(w *bookWorld) bool {
	for i := range m.waiters {
		if w.state[i] == Ready && w.queue.has(i) {
			return true
		}
	}
	return false
}

// waits is a waiter that is the first, has room, and is not served.
func (m *bookModel) waits(w *bookWorld) string {
	for i := range m.waiters {
		if w.queue.has(i) && !w.leaving.has(i) && w.isAhead(i) == 0 && m.count(w.leases)+m.units(i) <= int(m.max) {
			return partyName(i)
		}
	}
	if left := w.leases &^ w.holds; left != 0 {
		return "somebody for the leases " + left.String()
	}
	return ""
}

var everyFault = []stepKind{givesUp, evicted, unanswered, forced, expires, abandons, mixes}

func of(all ...int8) (s set) {
	for _, i := range all {
		s = s.with(i, true)
	}
	return s
}

// All sequences of moves of up to three waiters of one client, with what other clients and
// operators do. DOCENT_EXPLORE_LONG=1 adds a fault, and more others.
func TestExploreBook(t *testing.T) {
	t.Parallel()
	one, mixed := [3]int8{1, 1, 1}, [3]int8{1, 2, 1}
	models := []*bookModel{
		{waiters: 3, n: one, max: 1, others: of(earlier)},
		{waiters: 3, n: one, max: 2, others: of(earlier, foreign)},
		{waiters: 3, n: mixed, max: 2, others: of(earlier, foreign)},
		{waiters: 2, n: one, max: 1, others: of(earlier, foreignAtOnce, foreignQueue)},
		{waiters: 2, n: one, max: 2, others: of(earlier, foreignAtOnce, atOnce)},
		{waiters: 3, n: one, max: 1, others: of(earlier, foreignAtOnce), faults: 1, kinds: everyFault},
		{waiters: 2, n: mixed, max: 2, others: of(earlier, foreign, foreignAtOnce), faults: 1, kinds: everyFault},
		{waiters: 2, n: one, max: 1, others: of(earlier, foreignQueue, atOnce), faults: 1, kinds: everyFault},
		{waiters: 3, n: mixed, max: 2, others: of(earlier), faults: 1, kinds: everyFault},
		{waiters: 2, n: mixed, max: 2, others: of(aside, earlier, foreignAtOnce)},
		{waiters: 2, n: one, max: 1, others: of(aside, atOnce), faults: 1, kinds: everyFault},
	}
	if os.Getenv("DOCENT_EXPLORE_LONG") == "1" {
		models = append(models,
			&bookModel{waiters: 2, n: mixed, max: 2, others: of(aside, earlier, foreignAtOnce), faults: 1, kinds: everyFault},
			&bookModel{waiters: 3, n: one, max: 1, others: of(earlier, foreignAtOnce, foreignQueue), faults: 2, kinds: everyFault},
			&bookModel{waiters: 3, n: mixed, max: 2, others: of(earlier, foreign, foreignAtOnce), faults: 2, kinds: everyFault},
			&bookModel{waiters: 3, n: one, max: 2, others: of(earlier, foreign, foreignQueue, atOnce), faults: 2, kinds: everyFault})
	}
	if underRace { // the machine has no goroutines
		models = models[:1]
	}
	for _, m := range models {
		t.Run(fmt.Sprintf("%+v", *m), func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, m.machine(), 40_000_000)
		})
	}
}

// Bugs around the book, and what shows them.
func TestExploreBookFindsBugs(t *testing.T) {
	t.Parallel()
	if underRace {
		return // the machine has no goroutines
	}
	one := [3]int8{1, 1, 1}
	for _, c := range []struct {
		bookModel
		want string
	}{
		{bookModel{waiters: 3, n: one, max: 1, others: of(earlier, foreignAtOnce), faults: 1, kinds: []stepKind{givesUp}, bug: "known over a gap"}, errBelief.Error()},
		{bookModel{waiters: 2, n: one, max: 1, others: of(foreignQueue, foreignAtOnce), bug: "leases before the queue"}, errBelief.Error()},
		{bookModel{waiters: 2, n: one, max: 2, others: of(foreignAtOnce), bug: "followers that came later"}, errTooMany.Error()},
		{bookModel{waiters: 2, n: one, max: 1, faults: 1, kinds: []stepKind{forced}, bug: "a loss is not told"}, "waits"},
		{bookModel{waiters: 1, n: one, max: 1, others: of(aside), bug: "first by now"}, errTooMany.Error()},
		{bookModel{waiters: 2, n: one, max: 1, others: of(earlier), faults: 1, kinds: []stepKind{abandons}, bug: "an abandoned release is not told"}, "waits"},
		{bookModel{waiters: 3, n: one, max: 1, others: of(earlier, foreignAtOnce), faults: 1, kinds: []stepKind{evicted}, bug: "an old list counts"}, errBelief.Error()},
	} {
		t.Run(c.bug, func(t *testing.T) {
			t.Parallel()
			explore.Finds(t, c.machine(), 1_000_000, c.want)
		})
	}
}
