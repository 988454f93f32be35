package shared

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

const adds = 3

// world is turns with all that can happen to three adds: their callers, the server, the
// lock, another client, the end of the session.
type world struct {
	t    flat
	used [adds]struct {
		arrived bool
		says    answer // what its caller was told
		lock    inLock // of its last ask
		stale   bool   // an ask that was recalled has the lock, and is about to say so
		staleN  int
		gone    bool // the session of its hold is over, and it has not heard of that
	}
	runs    bool // somebody calls take
	owner   int8 // of the batch in the turn, -1 if none
	hurried bool // the batch in the turn begins no other try
	stopped bool // nobody waits for it

	count   [adds]uint8 // the server's number: how often each add is in it
	out     request     // the write of the batch in the turn
	ghost   request     // a write that nobody waits for any more
	program bool        // the caller of add 2 holds the lock, and adds within
	over    bool        // the hold that the batch in the turn has is over
	beaten  bool        // the batch in the turn has lost a try

	conflicts, troubles                        int8 // how many may still come
	losses, refusals, expiries, leaves, larges bool // those of troubles that have
}

// request is a write at the server.
type request struct {
	sent   bool
	good   bool // no other write has come since what it was made of was read
	adds   [adds]bool
	result result
}

type (
	answer uint8
	result uint8
	inLock uint8
)

const (
	nothing answer = iota
	in             // the add was applied
	notIn          // it was not
	maybe          // that is not known
	never          // its caller waits no more, and it was not applied
)

const (
	unanswered result = iota
	applied
	conflict
)

const (
	outside inLock = iota
	inLine
	holds // and has not said so
	says  // and has said so
)

// flat is turns as a value that can be compared.
type flat struct {
	turn                      turn
	seats                     [adds]seat[int8]
	queue, batch, want, asks  [adds]int8
	queueN, batchN, wantN, aN int8
	open                      int
}

func pack(t *turns[int8], seats *[adds]*seat[int8]) (f flat) {
	f.turn, f.open = t.turn, t.open
	for i := range seats {
		f.seats[i] = *seats[i]
	}
	list := func(from []*seat[int8], to *[adds]int8, n *int8) {
		for i, s := range from {
			to[i] = s.who
		}
		*n = int8(len(from))
	}
	list(t.queue, &f.queue, &f.queueN)
	list(t.batch, &f.batch, &f.batchN)
	list(t.want, &f.want, &f.wantN)
	list(t.asks, &f.asks, &f.aN)
	return f
}

func unpack(f *flat) (t *turns[int8], seats *[adds]*seat[int8]) {
	t, seats = &turns[int8]{turn: f.turn, open: f.open}, new([adds]*seat[int8])
	for i := range seats {
		s := f.seats[i]
		seats[i] = &s
	}
	list := func(from *[adds]int8, n int8) (to []*seat[int8]) {
		for _, who := range from[:n] {
			to = append(to, seats[who])
		}
		return to
	}
	t.queue, t.batch = list(&f.queue, f.queueN), list(&f.batch, f.batchN)
	t.want, t.asks = list(&f.want, f.wantN), list(&f.asks, f.aN)
	return t, seats
}

type verb uint8

const (
	arrives verb = iota
	leaves
	takes     // the goroutine that writes takes a batch
	sends     // and sends its write, or goes on without
	applies   // the server applies the write
	conflicts // another client was faster
	answers   // the answer comes
	loses     // the answer is lost for good
	takesOut  // the write is too large, and goes on without its last add
	givesUp   // the tries are used up
	grants    // the lock goes to an ask
	reports   // which says so
	staleSays // and so does an ask that was recalled meanwhile
	refuses   // an ask does not get the lock
	expires   // the session of a hold is over
	hears     // and its ask hears of that
	releases  // the program that holds the lock releases it
	haunts    // a write that nobody waits for is applied
)

var verbs = [...]string{"arrives", "leaves", "takes", "sends", "applies", "conflicts", "answers", "loses", "takes one out", "gives up", "is granted", "reports", "reports late", "is refused", "expires", "hears", "releases", "haunts"}

type move struct {
	verb verb
	who  int8
}

// bugs are those that the test plants into the shell's part.
type bugs struct {
	oneAsks   bool // of a batch only the first asks
	keepsLock bool // a hold that is of no more use is kept
	late      bool // an ask that was recalled counts as one of now
	sentIsOut bool // what was sent counts as applied when its caller leaves
	twice     bool // after a lost answer the batch tries again
}

func explorer(troubles int8, b bugs) *explore.Machine[world, move] {
	start := world{owner: -1, program: true, conflicts: 2, troubles: troubles}
	for i := range start.t.seats {
		start.t.seats[i] = seat[int8]{who: int8(i)}
	}
	return &explore.Machine[world, move]{
		Start: start,
		Moves: worldMoves,
		Apply: func(w *world, m move) error {
			err := cmp.Or(w.apply(m, b), w.check())
			if b != (bugs{}) { // what callers notice is to find these
				return err
			}
			return cmp.Or(err, w.table())
		},
		Must: func(m move) bool {
			switch m.verb {
			case leaves, conflicts, loses, takesOut, refuses, expires, haunts, givesUp:
				return false
			default:
				return true
			}
		},
		Waits: func(w *world) string {
			for i, u := range w.used {
				if u.arrived && u.says == nothing {
					return fmt.Sprintf("add %d", i)
				}
			}
			return ""
		},
		Tell: func(w *world, m move) string {
			return fmt.Sprintf("%d %s: %+v", m.who, verbs[m.verb], *w)
		},
	}
}

func worldMoves(w *world, moves []move) []move {
	add := func(ok bool, v verb, who int8) {
		if ok {
			moves = append(moves, move{v, who})
		}
	}
	taken := w.program
	for _, u := range w.used {
		taken = taken || u.stale || (u.lock == holds || u.lock == says) && !u.gone
	}
	for i := range int8(adds) {
		u := &w.used[i]
		add(!u.arrived, arrives, i)
		add(u.arrived && u.says == nothing && w.may(w.leaves), leaves, i)
		add(u.lock == inLine && (!taken || i == 2 && w.program), grants, i)
		add(u.lock == holds, reports, i)
		add(u.stale, staleSays, i)
		add(u.lock == inLine && w.may(w.refusals), refuses, i)
		add(u.lock == says && !u.gone && w.may(w.expiries), expires, i)
		add(u.gone, hears, i)
	}
	two := &w.used[2]
	add(w.program && (!two.arrived || two.says != nothing), releases, 2)
	add(w.runs && w.t.turn == between, takes, -1)
	has := w.t.turn == bare || w.t.turn == locked
	add(has && !w.out.sent, sends, -1)
	add(has && !w.out.sent && w.beaten, givesUp, -1)
	add(w.out.sent && w.out.result == unanswered, applies, -1)
	add(w.out.sent && w.out.result == unanswered && w.conflicts > 0, conflicts, -1)
	add(w.out.sent && (w.out.result != unanswered || w.stopped), answers, -1)
	add(w.out.sent && w.may(w.losses), loses, -1)
	add(w.out.sent && w.out.result == unanswered && w.t.open > 1 && w.may(w.larges), takesOut, -1)
	add(w.ghost.sent, haunts, -1)
	return moves
}

// may reports whether a trouble that has come or not may come.
func (w *world) may(has bool) bool { return !has && w.troubles > 0 }

func (w *world) trouble(t *bool) {
	*t = true
	w.troubles--
}

// apply makes a move, with the shell's part of it.
func (w *world) apply(m move, b bugs) error {
	t, seats := unpack(&w.t)
	err := w.play(m, b, t, seats)
	w.t = pack(t, seats)
	return err
}

func (w *world) play(m move, b bugs, t *turns[int8], seats *[adds]*seat[int8]) error {
	var err error
	obey := func(o orders[int8]) {
		if bad := w.obey(o, b, seats); b == (bugs{}) {
			err = cmp.Or(err, bad)
		}
	}
	switch m.verb {
	case arrives:
		w.used[m.who].arrived = true
		obey(t.arrive(seats[m.who]))
	case leaves:
		w.trouble(&w.leaves)
		w.used[m.who].says = never
		if seats[m.who].sent {
			if !w.out.sent {
				return errNotSent
			}
			w.used[m.who].says = maybe
			if b.sentIsOut {
				w.used[m.who].says = in
			}
		}
		obey(t.leave(seats[m.who]))
	case takes:
		batch, owner, o := t.take()
		w.runs = batch != nil
		w.owner, w.hurried, w.stopped, w.over, w.beaten = -1, false, false, false, false
		if owner != nil {
			w.owner = owner.who
		}
		obey(o)
	case sends:
		if w.stopped || w.hurried || w.over {
			w.lost(t, seats)
			obey(t.lost())
			break
		}
		w.out = request{sent: true, good: true}
		for _, s := range t.batch {
			if s.waits() {
				s.sent, w.out.adds[s.who] = true, true
			}
		}
	case applies:
		w.out.result = conflict
		if w.out.good {
			w.write(&w.out)
			w.out.result, w.ghost.good = applied, false
		}
	case conflicts:
		w.conflicts--
		w.out.result, w.out.good, w.ghost.good = conflict, false, false
	case haunts:
		if w.ghost.good {
			w.write(&w.ghost)
			w.out.good = false
		}
		w.ghost = request{}
	case answers:
		switch w.out.result {
		case applied:
			w.told(t, in)
			obey(t.finish())
		case conflict:
			t.unsend()
			w.beaten = true
		case unanswered:
			w.ghost = w.out
			obey(t.finish())
		}
		w.out = request{}
	case loses:
		w.trouble(&w.losses)
		if w.out.result == unanswered {
			w.ghost = w.out
		}
		w.out = request{}
		if b.twice {
			break
		}
		w.told(t, maybe)
		obey(t.finish())
	case takesOut:
		w.trouble(&w.larges)
		w.out = request{}
		for _, s := range slices.Backward(t.batch) {
			if s.waits() {
				t.tell(s)
				w.used[s.who].says = notIn
				break
			}
		}
		t.unsend()
	case givesUp:
		if w.owner < 0 || w.over {
			w.lost(t, seats)
			obey(t.lost())
			break
		}
		w.told(t, notIn)
		obey(t.finish())
	case grants:
		w.used[m.who].lock = holds
	case reports:
		use, o := t.granted(seats[m.who], seats[m.who].asked)
		if !use {
			return errNoUse
		}
		w.used[m.who].lock = says
		obey(o)
	case staleSays:
		u := &w.used[m.who]
		n := u.staleN
		if b.late {
			n = seats[m.who].asked
		}
		u.stale, u.staleN = false, 0
		use, o := t.granted(seats[m.who], n)
		if obey(o); b.late {
			break
		}
		if use {
			return errStale
		}
		if tell, _ := t.refused(seats[m.who], n); tell { // as its goroutine says at its end
			return errStale
		}
	case expires:
		w.trouble(&w.expiries)
		w.used[m.who].gone = true
	case refuses, hears:
		if m.verb == refuses {
			w.trouble(&w.refusals)
			w.used[m.who].lock = outside
		}
		w.used[m.who].gone = false
		inUse := seats[m.who].ask == using
		w.over = w.over || inUse // the batch goes on without another try
		tell, o := t.refused(seats[m.who], seats[m.who].asked)
		if tell {
			w.used[m.who].says = notIn
		}
		if obey(o); w.used[m.who].lock == says && !inUse && !b.keepsLock {
			return errKept
		}
	case releases:
		w.program = false
	}
	return err
}

var (
	errNoUse  = errors.New("the lock was granted to an ask that stands, and is of no use")
	errStale  = errors.New("the end of an ask that was recalled ends one of now")
	errTwice  = errors.New("an add is in the number twice")
	errWrong  = errors.New("an add was acknowledged and is not in the number, or was refused and is")
	errNoLock = errors.New("a batch under the lock has no hold of it")

	errNotSent = errors.New("a caller hears that its add may be in the number, and no write has it")
	errKept    = errors.New("a hold that is over stands for an ask")
	errRunning = errors.New("somebody is to call take, and somebody does")
	errOrder   = errors.New("an order about a hold, or an ask, that is not there")
)

// lost tells the one that has had the lock, before a turn ends whose tries, or hold, are over.
func (w *world) lost(t *turns[int8], seats *[adds]*seat[int8]) {
	if w.owner >= 0 && seats[w.owner].waits() {
		t.tell(seats[w.owner])
		w.used[w.owner].says = notIn
	}
}

// told tells those of the batch who still wait.
func (w *world) told(t *turns[int8], what answer) {
	for _, s := range t.batch {
		if s.waits() {
			w.used[s.who].says = what
			if what == maybe && !s.sent {
				w.used[s.who].says = notIn
			}
		}
	}
}

func (w *world) write(q *request) {
	for i, with := range q.adds {
		if with {
			w.count[i]++
		}
	}
}

// obey does what is ordered. An error says that an order is about what is not there.
func (w *world) obey(o orders[int8], b bugs, seats *[adds]*seat[int8]) (err error) {
	if o.start && w.runs {
		err = errRunning
	}
	w.runs = w.runs || o.start
	w.hurried = w.hurried || o.hurry
	w.stopped = w.stopped || o.stop
	for _, who := range o.recall {
		switch u := &w.used[who]; u.lock {
		case holds:
			u.stale, u.staleN = true, seats[who].asked
		case inLine:
		case outside, says:
			err = errOrder
		}
		w.used[who].lock = outside
	}
	if b.keepsLock {
		o.release = nil
	}
	if b.oneAsks && len(o.ask) > 1 {
		o.ask = o.ask[:1]
	}
	for _, who := range o.release {
		if w.used[who].lock != says {
			err = errOrder
		}
		w.used[who].lock, w.used[who].gone = outside, false
	}
	for _, who := range o.ask {
		if w.used[who].lock != outside {
			err = errOrder
		}
		w.used[who].lock = inLine
	}
	return err
}

// check compares what callers were told with the server's number.
func (w *world) check() error {
	for i, n := range w.count {
		switch a := w.used[i].says; {
		case n > 1:
			return errTwice
		case a == in && n != 1, (a == notIn || a == never) && n != 0:
			return errWrong
		}
	}
	if w.t.turn == locked && w.used[w.owner].lock != says {
		return errNoLock
	}
	return nil
}

// All that can happen to three adds with one trouble, or DOCENT_TURNS_TROUBLES (4 are all
// kinds). Add 2 comes from inside a hold of the lock.
func TestTurns(t *testing.T) {
	t.Parallel()
	troubles := int8(1)
	if text := os.Getenv("DOCENT_TURNS_TROUBLES"); text != "" {
		n, err := strconv.ParseInt(text, 10, 8)
		if err != nil {
			t.Fatal(err)
		}
		troubles = int8(n)
	}
	explore.Whole(t, explorer(troubles, bugs{}), 2_000_000)
}

func TestTurnsPlanted(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]bugs{
		"nothing more will happen": {oneAsks: true},
		"waits, and nothing more":  {keepsLock: true},
		errNoLock.Error():          {late: true},
		errWrong.Error():           {sentIsOut: true},
		errTwice.Error():           {twice: true},
	} {
		explore.Finds(t, explorer(1, b), 2_000_000, want)
	}
}
