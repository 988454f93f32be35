package interop_test

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// mode is what a claim lets others do.
type mode int

const (
	exclusive mode = iota // no other
	sharing               // others that share
	permits               // as many as there are
)

// claim is what one contender holds of one lock.
type claim struct {
	lock    string
	mode    mode
	permits int
	nodes   []string // that stand for it in ZooKeeper
	token   int64    // its fencing token; 0 means its node's czxid

	// late marks a read lock that Curator took while it held the write lock.
	// Before 5.5.0 its node has a place behind writers that are queued already.
	// They get in when the write lock is released (CURATOR-621).
	late bool
}

// witness is the resource that the locks protect. It stands outside of them. It
// sees in one order, its own, each contender that comes or goes, and each session
// that is about to be killed.
//
// A claim is sound if its node was made by a session that the test has not begun
// to kill. Nothing excuses another sound claim beside it. Nothing is said of the
// others: neither Docent nor Curator can know in advance that their session is
// killed. Curator does not tell its holders even afterwards. What they do is
// counted.
type witness struct {
	mu     sync.Mutex // guards the rest
	locks  map[string]*ledger
	killed map[int64]time.Time // sessions, and when the test began to kill them
	faults []string
	tally  tally
}

// ledger is what the witness knows of one lock.
type ledger struct {
	inside map[*entry]bool
	fence  int64   // greatest token of an exclusive claim
	reads  int64   // greatest token of any claim
	last   side    // of the last exclusive claim, or of the last one with permits
	limits []limit // of permits, oldest first
}

// limit is a number of permits, in force since then.
type limit struct {
	permits int
	since   time.Time
}

// tally is what the witness has counted.
type tally struct {
	opens     map[side]int
	handovers map[[2]side]int // sound claims of one side followed by another's
	together  int             // sound claims beside sound ones of another side
	full      int             // the last permits were taken
	ghosts    map[side]int    // claims without a node, or of a session that was being killed
	robbed    map[side]int    // sound claims whose session was killed before they ended
	overtaken map[side]int    // sound claims beside one of this side that was a ghost or robbed
	slipped   int             // writers beside a downgraded reader of Curator's
	stale     int             // writes with an old token that the fence refused
	told      time.Duration   // greatest time from the end of a kill until Docent's holder knew
}

func newWitness() *witness {
	return &witness{
		locks: map[string]*ledger{}, killed: map[int64]time.Time{},
		tally: tally{opens: map[side]int{}, handovers: map[[2]side]int{}, ghosts: map[side]int{}, robbed: map[side]int{}, overtaken: map[side]int{}},
	}
}

// entry is one claim from when it comes until it goes.
type entry struct {
	claim
	party   *party
	who     string
	session int64
	node    int64 // the lowest czxid of its nodes
	sound   bool  // was when it came, and its session was not killed since
}

func (e *entry) String() string {
	return fmt.Sprintf("%s (session %#x, token %d, %v)", e.who, uint64(e.session), e.token, e.nodes)
}

// fault records what must not happen. w.mu is held.
func (w *witness) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *witness) ledger(lock string) *ledger {
	l := w.locks[lock]
	if l == nil {
		l = &ledger{inside: map[*entry]bool{}}
		w.locks[lock] = l
	}
	return l
}

// open lets a claim in. found is what its nodes are: of which session, and with
// which czxid. Session 0 says that one is not there. calm says that the party's
// session has been left alone since it began to acquire.
func (w *witness) open(e *entry, found nodes, calm bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.opens[e.party.side]++
	e.session, e.node = found.session, found.czxid
	if e.token == 0 {
		e.token = found.czxid
	}
	l := w.ledger(e.lock)
	defer func() { l.inside[e] = true }()
	_, killed := w.killed[found.session]
	switch {
	case found.session == 0 && calm:
		w.fault("%v holds without a node, and its session was not killed", e)
		return
	case found.session == 0, killed, !calm && e.party.side != docent:
		// The last case is Curator's: it goes on in its next session in the
		// middle of an acquire. One node of a semaphore is then in the old
		// session and one in the new.
		w.tally.ghosts[e.party.side]++
		return
	}
	e.sound = true
	taken := e.permits
	for o := range l.inside {
		switch {
		case o.who == e.who: // it downgrades
		case !o.sound:
			w.tally.overtaken[o.party.side]++
		default:
			if o.party.side != e.party.side {
				w.tally.together++
			}
			taken += o.permits
			w.judge(e, o)
		}
	}
	w.fenced(l, e)
	if e.mode == permits {
		w.count(l, e, taken)
	}
	if e.mode != sharing {
		w.tally.handovers[[2]side{l.last, e.party.side}]++
		l.last = e.party.side
	}
}

// judge looks at a newcomer beside a contender that is there. w.mu is held.
func (w *witness) judge(e, o *entry) {
	switch {
	case e.mode == permits || e.mode == sharing && o.mode == sharing:
	case e.mode == exclusive && o.late && o.node > e.node:
		w.tally.slipped++
	default:
		w.fault("%v came in beside %v", e, o)
	}
}

// fenced compares tokens. w.mu is held.
func (w *witness) fenced(l *ledger, e *entry) {
	switch {
	case e.mode == permits: // taken in any order
	case e.mode == exclusive && e.token <= l.reads:
		w.fault("%v came in after token %d", e, l.reads)
	case e.mode == sharing && e.token < l.fence:
		w.fault("%v came in to read after a writer's token %d", e, l.fence)
	}
	l.reads = max(l.reads, e.token)
	if e.mode == exclusive {
		l.fence = max(l.fence, e.token)
	}
}

// settle is how long a change of the number of permits may take to reach every
// contender.
const settle = 3 * time.Second

// count compares the permits taken with the most that were allowed of late. w.mu is held.
func (w *witness) count(l *ledger, e *entry, taken int) {
	most := 0
	for i, m := range l.limits {
		if i == len(l.limits)-1 || time.Since(l.limits[i+1].since) < settle {
			most = max(most, m.permits)
		}
	}
	if taken > most {
		w.fault("%v came in with %d, which makes %d of %d permits", e, e.permits, taken, most)
	}
	if taken == most {
		w.tally.full++
	}
}

// allow sets the number of permits.
func (w *witness) allow(lock string, permits int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(lock)
	l.limits = append(l.limits, limit{permits, time.Now()})
}

// write is a write of the holder's to the resource, which refuses old tokens.
func (w *witness) write(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.ledger(e.lock).fence
	if e.mode == permits || e.token >= old {
		return
	}
	w.tally.stale++
	if e.sound && !e.late {
		w.fault("a write of %v was refused: the fence is at %d", e, old)
	}
}

// share makes a writer a reader: from here on others may read.
func (w *witness) share(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.mode = sharing
}

// close lets a claim go, and reports whether its session was killed. believes is its
// holder's opinion, of which only Docent has one.
func (w *witness) close(e *entry, believes func() error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ledger(e.lock).inside, e)
	_, killed := w.killed[e.session]
	if e.party.side == docent && !killed && e.session != 0 {
		if err := believes(); err != nil {
			w.fault("%v lost its hold, and its session was not killed: %v", e, err)
		}
	}
	return killed || e.session == 0
}

// kill tells that the test begins to kill a session.
func (w *witness) kill(session int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.killed[session]; !ok {
		w.killed[session] = time.Now()
	}
	for _, l := range w.locks {
		for e := range l.inside {
			if e.session == session && e.sound {
				e.sound = false
				w.tally.robbed[e.party.side]++
			}
		}
	}
}

// knew records that Docent's holder has heard, so long after its session was over. A
// longer time than the session's is a fault: by then the lease must have told it.
func (w *witness) knew(e *entry, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.told = max(w.tally.told, after)
	if after > matrixTimeout {
		w.fault("%v believed to hold %v after its session was killed", e, after)
	}
}

// now returns what the witness has seen.
func (w *witness) now() (tally, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.tally
	all.opens, all.handovers = maps.Clone(all.opens), maps.Clone(all.handovers) // the rest is read at the end
	return all, append([]string(nil), w.faults...)
}
