package nodes

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

// The explorer walks all moves of a keeper with a server. The reference is what the server
// has: which node stands, which session owns it, whether this object made it, and its data.

// entry is a node on the server.
type entry struct {
	czxid   int8 // 0 if there is none
	owner   int8 // its session; 0 if it has none
	version int8
	data    int8 // the gen that this object has written, or a stranger's
	mine    bool // made by this object
}

const (
	strangersData    = 100
	strangersSession = 9
)

// world is a keeper, the part of its goroutine that is no I/O, and the server.
type world struct {
	k      keeper
	node   entry
	before entry // what a server shows that is behind
	late   bool  // the client's server is behind
	zxid   int8

	session int8
	over    bool // the client knows that its session is over
	alive   uint8
	past    uint8
	ghosts  [4]int8 // by their sessions, 0 if the czxid is not known
	gen     int8
	stat    entry // of the newest look
	watched bool
	fired   bool // an event of the watch is on its way
	heard   bool // and has arrived
	wake    bool
	closing bool
	left    bool // a server has refused the deletion
	faults  int8
	sets    int8

	told    State
	toldOf  int8
	written int8
	shown   bool  // the newest look has shown the node that is told
	doubt   bool  // nobody can tell a sibling's node from that of the newest create or replacement
	met     bool  // the node that the newest look has shown was met in doubt
	doubted uint8 // sessions that were lost in doubt
}

type act uint8

const (
	takes act = iota
	losesRequest
	losesAnswer
	isRefused
	givesData
	closesIt
	expires    // the server ends the session
	losesIt    // the client gives the session up, the server keeps it
	oldExpires // the server ends lost sessions
	connects   // the client has a new session
	hears      // the event arrives
	catchesUp
	strangerMakes
	siblingMakes // another object of the same client
	operatorDeletes
	operatorWrites
)

var actNames = [...]string{
	"", "the request is lost: ", "the answer is lost: ", "is refused: ", "Set", "Close", "the server ends the session", "the client gives the session up",
	"the server ends lost sessions", "a new session", "the event arrives", "the server catches up", "a stranger makes a node", "a sibling makes a node", "an operator deletes the node", "an operator writes",
}

var stepNames = [...]string{"decides", "syncs", "searches", "confirms", "creates", "looks", "reads", "stands", "sets", "replaces", "probes", "proves", "rests", "eases", "pauses", "checks", "deletes", "removed", "ended"}

// model is what is walked, and which bug is planted.
type model struct {
	mode   Mode
	set    settings
	kinds  []act // of disturbances
	faults int8
	bug    func(before keeper, k *keeper, a answer, is news) news
	always bool // a bug: every lost session is remembered
	keeps  bool // a bug: a node that stood in a lost session still stands
	blind  bool // a bug: the node is not watched while it rests
}

var (
	errGhostly  = errors.New("is told as Ours, and the newest look has not shown it")
	errMissed   = errors.New("rests as Ours, and no such node stands")
	errHidden   = errors.New("the node stands and is known, and is not told as Ours")
	errOthers   = errors.New("another's node is told as Ours")
	errTaken    = errors.New("another's node is deleted or replaced")
	errWritten  = errors.New("another's node is written")
	errLeftover = errors.New("a node is left after Close")
)

func (m *model) machine() *explore.Machine[world, act] {
	start := world{k: newKeeper(m.mode, m.set), session: 1, alive: 1 << 1, zxid: 1, gen: 1, faults: m.faults, sets: 1}
	return &explore.Machine[world, act]{
		Start: start, Moves: m.moves, Waits: m.waits,
		Must: func(a act) bool {
			return a == takes || a == oldExpires || a == connects || a == hears || a == catchesUp
		},
		Apply: m.apply,
		Tell: func(w *world, a act) string {
			return fmt.Sprintf("%s; then %s, told %v of %d, node %+v, session %d over %v alive %b, claim %d unsure %d",
				actNames[a], stepNames[w.k.at], w.told, w.toldOf, w.node, w.session, w.over, w.alive, w.k.claim, w.k.unsure)
		},
	}
}

func request(at step) bool { return at != rests && at != pauses && at != eases }

func (m *model) moves(w *world, all []act) []act {
	at := w.k.at
	if at == ended {
		if w.alive&^(1<<w.session) != 0 {
			all = append(all, oldExpires)
		}
		return all
	}
	switch {
	case w.over && !w.closing:
		all = append(all, connects)
	case at == rests && !w.heard && !w.wake && !w.closing:
	default:
		all = append(all, takes)
	}
	if w.fired && !w.heard {
		all = append(all, hears)
	}
	if w.late {
		all = append(all, catchesUp)
	}
	if w.alive&^(1<<w.session) != 0 {
		all = append(all, oldExpires)
	}
	if !w.closing {
		all = append(all, closesIt)
	}
	if w.sets > 0 && !w.closing {
		all = append(all, givesData)
	}
	if w.faults == 0 {
		return all
	}
	for _, a := range m.kinds {
		can := false
		switch a {
		case losesRequest, losesAnswer, isRefused:
			can = request(at) && !w.over
		case expires, losesIt:
			can = !w.over && w.alive&(1<<w.session) != 0 && w.session < 3
		case strangerMakes:
			can = w.node.czxid == 0
		case siblingMakes:
			can = w.node.czxid == 0 && !w.over && w.alive&(1<<w.session) != 0
		case operatorDeletes:
			can = w.node.czxid != 0
		case operatorWrites: // a persistent node, once its maker is known: its data tells who that is
			can = w.node.czxid != 0 && (m.mode.ephemeral() || w.told == Ours && w.toldOf == w.node.czxid)
		}
		if can {
			all = append(all, a)
		}
	}
	return all
}

// change is what the server does when the node changes.
func (w *world) change(to entry) {
	w.node = to
	w.fired = w.fired || w.watched
}

func (w *world) made(owner, data int8, mine bool) {
	w.zxid++
	w.change(entry{czxid: w.zxid, owner: owner, data: data, mine: mine})
}

// ends ends sessions on the server.
func (w *world) ends(sessions uint8) {
	w.alive &^= sessions
	if w.node.owner != 0 && w.node.owner != strangersSession && sessions&(1<<w.node.owner) != 0 {
		w.change(entry{})
	}
}

func (m *model) apply(w *world, a act) error {
	switch a {
	case takes, losesRequest, losesAnswer, isRefused:
		if a != takes {
			w.faults--
		}
		if err := m.take(w, a); err != nil {
			return err
		}
	case givesData:
		w.gen, w.sets, w.wake = w.gen+1, w.sets-1, true
	case closesIt:
		w.closing = true
	case expires:
		w.faults--
		w.ends(1 << w.session)
	case losesIt:
		w.faults--
		w.over, w.told, w.toldOf = true, Absent, 0
	case oldExpires:
		w.ends(w.alive &^ (1 << w.session))
	case connects:
		stood := w.k.stands
		if w.doubt {
			w.doubted, w.doubt = w.doubted|1<<w.session, false
		}
		switch remember, czxid := w.k.begins(true); {
		case m.always:
			w.past |= 1 << w.session
		case remember:
			w.past, w.ghosts[w.session] = w.past|1<<w.session, int8(czxid)
		}
		w.k.stands = w.k.stands || m.keeps && stood
		w.session++
		w.alive |= 1 << w.session
		w.over, w.watched, w.fired, w.heard, w.shown = false, false, false, false, false
		w.k.next(int(w.gen))
	case hears:
		w.heard = true
	case catchesUp:
		w.late = false
		w.fired = w.fired || w.watched && w.before != w.node
	case strangerMakes:
		w.faults--
		w.made(strangersSession*b2i(m.mode.ephemeral()), strangersData, false)
	case siblingMakes:
		w.faults--
		w.made(w.session, strangersData, false)
	case operatorDeletes:
		w.faults--
		w.change(entry{})
	case operatorWrites:
		w.faults--
		to := w.node
		to.version, to.data = to.version+1, strangersData
		w.node = to
		w.fired = w.fired || w.watched
	}
	return m.holds(w)
}

func b2i(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// view is what the client's server shows.
func (w *world) view() entry {
	if w.late {
		return w.before
	}
	return w.node
}

// take takes the step of the keeper, as PersistentNode.take does.
func (m *model) take(w *world, fault act) error {
	at := w.k.at
	a := answer{gen: int(w.gen)}
	var wrong error
	was := w.node
	expired := request(at) && w.alive&(1<<w.session) == 0
	switch {
	case w.over || expired:
		a.outcome, w.over = failed, true
	case fault == losesRequest:
		a.outcome = unknown
	case fault == isRefused:
		a.outcome = denied
		w.left = w.left || w.closing
	default:
		wrong = m.serve(w, at, &a)
	}
	switch {
	case fault == losesAnswer && !w.over:
		a = answer{outcome: unknown, gen: a.gen}
		w.late, w.before = true, was
		w.fired = w.fired || w.watched && was != w.stat // the client sets its watches again
	case (at == looks || at == checks) && a.outcome == done:
		w.met = w.met && w.stat.czxid == w.view().czxid || w.doubt && w.view().owner == w.session
		w.stat, w.doubt = w.view(), false
		w.watched, w.fired, w.heard = at == looks && !m.blind, false, false
		w.shown = w.stat.czxid != 0 && w.stat.owner == w.session*b2i(m.mode.ephemeral())
	}
	if at == rests {
		w.wake = false
	}
	if wrong != nil {
		return wrong
	}
	if at != reads && at != sets && at != probes && at != rests && at != looks {
		w.watched = false // the goroutine gives the watch up
	}
	w.doubt = w.doubt || at == creates && a.outcome == unknown || at == replaces && (a.outcome == unknown || a.outcome == done)
	before := w.k
	is := w.k.answered(a)
	if m.bug != nil {
		is = m.bug(before, &w.k, a, is)
	}
	return m.publish(w, is)
}

// serve is the server's part of a step.
func (m *model) serve(w *world, at step, a *answer) error {
	mayHit := func() bool { // the node is ours, or took its place since the look
		return w.node.mine || w.node.czxid != w.stat.czxid || m.set.takeOver || w.met ||
			w.node.owner != strangersSession && w.doubted&(1<<w.node.owner) != 0
	}
	owner := w.session * b2i(m.mode.ephemeral())
	switch at {
	case syncs:
		w.late = false
	case confirms:
		a.there = w.view().czxid != 0
	case creates:
		w.late = false
		if w.node.czxid != 0 {
			a.outcome = nodeExists
			return nil
		}
		w.made(owner, w.gen, true)
		a.czxid = int64(w.node.czxid)
	case looks, checks:
		now := w.view()
		a.there, a.czxid, a.first, a.owner = now.czxid != 0, int64(now.czxid), now.version == 0, others
		switch {
		case now.owner == 0:
			a.owner = noSession
		case now.owner == w.session:
			a.owner = present
		case now.owner != strangersSession && w.past&(1<<now.owner) != 0 && (w.ghosts[now.owner] == 0 || w.ghosts[now.owner] == now.czxid):
			a.owner = lost
		}
	case reads:
		now := w.view()
		if now.czxid == 0 {
			a.outcome = noNode
			return nil
		}
		a.czxid, a.equal = int64(w.stat.czxid), now.czxid == w.stat.czxid && int(now.data) == w.k.sent
	case sets, deletes, replaces:
		w.late = false
		switch {
		case w.node.czxid == 0:
			a.outcome = noNode
			return nil
		case w.node.version != w.stat.version:
			a.outcome = badVersion
			return nil
		}
		if at == sets {
			if !mayHit() && m.mode.ephemeral() {
				return errWritten
			}
			to := w.node
			to.version, to.data = to.version+1, w.gen
			w.change(to)
			a.czxid = int64(to.czxid)
			return nil
		}
		if !mayHit() {
			return errTaken
		}
		w.change(entry{})
		if at == replaces {
			w.made(owner, w.gen, true)
		}
	}
	return nil
}

// publish follows PersistentNode.inSession and remove.
func (m *model) publish(w *world, is news) error {
	tell := func(s State) {
		w.told, w.toldOf = s, 0
		if s == Ours {
			w.toldOf, w.written = int8(w.k.czxid), int8(w.k.wrote)
		}
	}
	switch {
	case w.k.closed:
		if w.over {
			if m.mode.ephemeral() {
				w.k.at = ended
			} else {
				w.session++
				w.alive |= 1 << w.session
				w.over, w.watched = false, false
				w.k.begins(true)
			}
		}
	case w.closing:
		tell(Absent)
		w.k.closes()
	case w.k.at == removed:
		tell(Removed)
		w.closing = true
		w.k.closes()
	case w.over:
		tell(Absent)
	case is == isErr:
		tell(w.k.state(Absent))
	case is == isDenied:
		tell(w.k.state(Refused))
	case is == isForeign:
		tell(Foreign)
	case is != nothing:
		tell(Absent)
	}
	if !w.over {
		w.k.next(int(w.gen))
	}
	if w.k.at == rests && w.k.stands || w.k.at == sets && w.told != Ours {
		tell(Ours)
	}
	return nil
}

// holds checks the state against the server.
func (m *model) holds(w *world) error {
	session := w.alive&(1<<w.session) != 0
	stands := w.node.czxid != 0 && w.node.czxid == w.toldOf
	switch {
	case w.told == Ours && !w.shown:
		return errGhostly
	case w.told == Ours && m.mode.ephemeral() && w.stat.czxid == w.toldOf && !w.stat.mine && !w.met:
		return errOthers
	case w.told == Ours && !stands && w.k.at == rests && session && !w.fired && !w.late:
		return errMissed
	case w.told != Ours && w.shown && w.stat.mine && w.node.czxid == w.stat.czxid && !w.closing && !w.over && session && w.k.claim != doubtful:
		return errHidden
	case w.k.at == ended && w.node.mine && !w.left && (w.node.owner == 0 || w.node.owner == w.session && session && !w.over):
		return errLeftover
	}
	return nil
}

// waits says who waits where nothing more will happen.
func (m *model) waits(w *world) string {
	foreign := w.node.czxid != 0 && w.told == Foreign && !w.node.mine
	switch {
	case w.k.at == ended:
		return ""
	case w.closing:
		return "Close"
	case foreign:
		return ""
	case w.told != Ours || w.node.czxid == 0:
		return "Wait"
	case w.written < w.gen || w.node.data != w.gen && w.node.data != strangersData:
		return "Set"
	}
	return ""
}

var (
	lostAnswers = []act{losesRequest, losesAnswer, isRefused}
	lostNodes   = []act{expires, losesIt, operatorDeletes, operatorWrites, strangerMakes}
	allKinds    = append(append([]act{}, lostAnswers...), lostNodes...)
)

// models are those of the modes and options that differ.
func models() map[string]*model {
	faults := int8(exploredFaults)
	if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		faults++ // minutes, and a GiB
	}
	return map[string]*model{
		"ephemeral":         {mode: Ephemeral, kinds: allKinds, faults: faults},
		"sibling":           {mode: Ephemeral, kinds: append([]act{siblingMakes, isRefused}, lostNodes...), faults: faults},
		"take over":         {mode: Ephemeral, set: settings{takeOver: true}, kinds: allKinds, faults: faults},
		"stop when removed": {mode: Ephemeral, set: settings{stopWhenRemoved: true}, kinds: allKinds, faults: faults},
		"persistent":        {mode: Persistent, kinds: allKinds, faults: faults},
	}
}

// TestExploreKeeper walks all moves of the machine of a node with a server, with so many
// disturbances and one Set.
func TestExploreKeeper(t *testing.T) {
	t.Parallel()
	for name, m := range models() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, m.machine(), 10_000_000)
		})
	}
}

// Each planted bug is found.
func TestExploreKeeperFindsBugs(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]struct {
		of   string
		want string
		bug  func(before keeper, k *keeper, a answer, is news) news
	}{
		"a failed round takes the node away": {"ephemeral", errHidden.Error(), func(_ keeper, _ *keeper, _ answer, is news) news {
			if is == isErr || is == isDenied {
				return isDeleted
			}
			return is
		}},
		"a create in doubt is forgotten": {"ephemeral", errLeftover.Error(), func(before keeper, k *keeper, a answer, is news) news {
			if before.at == creates && a.outcome == unknown {
				k.claim, k.unsure = unclaimed, behind
			}
			return is
		}},
		"a set in doubt counts as done": {"ephemeral", "Set waits", func(before keeper, k *keeper, a answer, is news) news {
			if before.at == sets && a.outcome == unknown {
				k.wrote = a.gen
			}
			return is
		}},
		"a node that was replaced is told": {"take over", errGhostly.Error(), func(_ keeper, _ *keeper, _ answer, is news) news {
			if is == isReplaced {
				return nothing
			}
			return is
		}},
		"each ephemeral node of the session is ours": {"sibling", errOthers.Error(), func(before keeper, k *keeper, a answer, is news) news {
			if before.at == looks && is == isForeign && a.owner == present {
				k.claims(a)
				return nothing
			}
			return is
		}},
		"a deletion in doubt ends Close": {"persistent", errLeftover.Error(), func(before keeper, k *keeper, a answer, is news) news {
			if before.at == deletes && a.outcome == unknown {
				k.at = ended
			}
			return is
		}},
		"a server that is behind is asked": {"persistent", errLeftover.Error(), func(_ keeper, k *keeper, _ answer, is news) news {
			if k.at == decides && k.unsure == named {
				k.at = confirms
			}
			return is
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := models()[p.of]
			m.bug = p.bug
			explore.Finds(t, m.machine(), 1_000_000, p.want)
		})
	}
	for name, p := range map[string]struct {
		of, want string
		plant    func(*model)
	}{
		"every lost session left a ghost":     {"sibling", errTaken.Error(), func(m *model) { m.always = true }},
		"a node is shown by a session before": {"persistent", errGhostly.Error(), func(m *model) { m.keeps = true }},
		"a node that rests is not watched":    {"ephemeral", errMissed.Error(), func(m *model) { m.blind = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := models()[p.of]
			p.plant(m)
			explore.Finds(t, m.machine(), 1_000_000, p.want)
		})
	}
}
