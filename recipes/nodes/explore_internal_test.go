package nodes

import (
	"fmt"

	"github.com/docent-go/docent/internal/explore"
)

type act uint8

const (
	takes act = iota
	losesRequest
	losesAnswer
	isRefused
	givesData
	closesIt
	startsAgain // after a failed start, when nothing runs any more
	expires     // the server ends the session
	losesIt     // the client gives the session up, the server keeps it
	oldExpires  // the server ends lost sessions
	connects    // the client has a new session
	hears       // the event arrives
	catchesUp
	strangerMakes
	siblingMakes // another object of the same client
	operatorDeletes
	operatorDeletesAll // with the parent: the numbers begin again
	operatorWrites
)

var actNames = [...]string{
	"", "the request is lost: ", "the answer is lost: ", "is refused: ", "Set", "Close", "Start again", "the server ends the session", "the client gives the session up",
	"the server ends lost sessions", "a new session", "the event arrives", "the server catches up", "a stranger makes a node", "a sibling makes a node",
	"an operator deletes the node", "an operator deletes the parent", "an operator writes",
}

var stepNames = [...]string{
	"decides", "syncs", "searches", "confirms", "counts", "creates", "looks", "reads", "stands", "sets", "replaces",
	"probes", "proves", "rests", "eases", "pauses", "checks", "deletes", "removed", "ended",
}

// move is an act, and the path where a stranger or an operator acts.
type move struct {
	act
	at int8
}

// model is what is walked, and which bug is planted.
type model struct {
	mode    Mode
	set     settings
	kinds   []act // of disturbances
	faults  int8
	starts  int8 // that can follow
	bug     func(before keeper, k *keeper, a answer, is news) news
	always  bool // a bug: every lost session is remembered
	keeps   bool // a bug: a node that stood in a lost session still stands
	recalls bool // a bug: what was deleted in a life before is missed
	blind   bool // a bug: the node is not watched while it rests
}

func (m *model) machine() *explore.Machine[world, move] {
	start := world{
		k: newKeeper(m.mode, m.set), session: 1, alive: 1 << 1, zxid: 1, gen: 1, faults: m.faults, sets: 1, starts: m.starts,
		prefix: none, next: none,
	}
	if m.set.protected || m.mode.sequential() {
		start.path = none
	}
	return &explore.Machine[world, move]{
		Start: start, Moves: m.moves, Waits: m.waits, Settles: 40,
		Must: func(v move) bool {
			return v.act == takes || v.act == oldExpires || v.act == connects || v.act == hears || v.act == catchesUp
		},
		Apply: m.apply,
		Tell: func(w *world, v move) string {
			return fmt.Sprintf("%s; then %s, told %v of %d, path %d, nodes %v, session %d over %v alive %b, claim %d unsure %d",
				actNames[v.act], stepNames[w.k.at], w.told, w.toldOf, w.path, w.tree, w.session, w.over, w.alive, w.k.claim, w.k.unsure)
		},
	}
}

func request(at step) bool { return at != rests && at != pauses && at != eases }

func (m *model) moves(w *world, all []move) []move {
	at := w.k.at
	if at == ended {
		if w.alive&^(1<<w.session) != 0 {
			all = append(all, move{act: oldExpires})
		}
		if w.starts > 0 && w.told != Removed {
			all = append(all, move{act: startsAgain})
		}
		return all
	}
	for _, may := range []struct {
		act
		now bool
	}{
		{connects, w.over && !w.closing},
		{takes, (!w.over || w.closing) && (at != rests || w.heard || w.wake || w.closing)},
		{hears, w.fired && !w.heard},
		{catchesUp, w.late},
		{oldExpires, w.alive&^(1<<w.session) != 0},
		{closesIt, !w.closing},
		{givesData, w.sets > 0 && !w.closing},
	} {
		if may.now {
			all = append(all, move{act: may.act})
		}
	}
	if w.faults > 0 {
		for _, a := range m.kinds {
			all = m.disturbances(w, a, all)
		}
	}
	return all
}

// disturbances are those of one kind that a state allows.
func (m *model) disturbances(w *world, a act, all []move) []move {
	own, can := w.own(), false
	served := !w.over && w.alive&(1<<w.session) != 0
	switch a {
	case losesRequest, losesAnswer, isRefused:
		can = request(w.k.at) && !w.over
	case expires, losesIt:
		can = served && w.session < 3
	case siblingMakes:
		can = own.czxid == 0 && served
	case operatorDeletesAll:
		can = w.tree != tree{}
	case operatorWrites: // a persistent node, once its maker is known: its data tells who that is
		can = own.czxid != 0 && (m.mode.ephemeral() || w.told == Ours && w.toldOf == own.czxid)
	case strangerMakes, operatorDeletes:
		for at, e := range w.tree.at {
			one := int8(at) == max(w.path, 0)
			if m.mode.sequential() {
				one = at < 3
			}
			if one && (e.czxid == 0) == (a == strangerMakes) {
				all = append(all, move{a, int8(at)})
			}
		}
	}
	if can {
		all = append(all, move{act: a})
	}
	return all
}

func (m *model) apply(w *world, v move) error {
	switch v.act {
	case losesRequest, losesAnswer, isRefused, expires, losesIt, strangerMakes, siblingMakes, operatorDeletes, operatorDeletesAll, operatorWrites:
		w.faults--
	}
	switch v.act {
	case takes, losesRequest, losesAnswer, isRefused:
		if err := m.take(w, v.act); err != nil {
			return err
		}
	case givesData:
		w.gen, w.sets, w.wake = w.gen+1, w.sets-1, true
	case closesIt:
		w.closing = true
	case startsAgain:
		w.starts, w.closing, w.left, w.robbed = w.starts-1, false, false, false
		w.shown, w.watched, w.fired, w.heard = false, false, false, false
		czxid := w.k.czxid
		if w.k.opens(); m.recalls {
			w.k.czxid = czxid
		}
		if w.k.next(int(w.gen)); w.over {
			m.connect(w)
		}
	case expires:
		w.ends(1 << w.session)
	case losesIt:
		w.over, w.told, w.toldOf = true, Absent, 0
	case oldExpires:
		w.ends(w.alive &^ (1 << w.session))
	case connects:
		m.connect(w)
	case hears:
		w.heard = true
	case catchesUp:
		w.catchesUp()
	case strangerMakes:
		w.makes(v.at, strangersSession*b2i(m.mode.ephemeral()), strangersData, false)
	case siblingMakes:
		w.makes(w.path, w.session, strangersData, false)
	case operatorDeletes:
		w.robbed = true
		w.change(v.at, entry{})
	case operatorDeletesAll:
		w.robbed = true
		for at := range w.tree.at {
			w.change(int8(at), entry{})
		}
		w.tree.next = 0
	case operatorWrites:
		to := w.own()
		to.version, to.data = to.version+1, strangersData
		w.change(w.path, to)
	}
	return m.holds(w)
}

// connect is the beginning of a session.
func (m *model) connect(w *world) {
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
}

// take takes the step of the keeper, as PersistentNode.take does.
func (m *model) take(w *world, fault act) error {
	at := w.k.at
	a := answer{gen: int(w.gen)}
	var wrong error
	was, path, numbered := w.tree, w.path, w.numbered
	if at == creates || at == replaces {
		if target, whole := m.target(w); whole {
			w.next = target
		}
	}
	expired := request(at) && w.alive&(1<<w.session) == 0
	switch {
	case w.over || expired:
		a.outcome, w.over = failed, true
	case fault == losesRequest:
		a.outcome = unknown
	case fault == isRefused && at == probes:
		a.outcome = noAuth
	case fault == isRefused:
		a.outcome = denied
		w.left = w.left || w.closing
	default:
		wrong = m.serve(w, at, &a)
	}
	switch {
	case wrong != nil:
		return wrong
	case fault == losesAnswer && !w.over:
		w.path, w.numbered = path, numbered
		a = answer{outcome: unknown, gen: a.gen}
		w.late, w.before = true, was
		w.fired = w.fired || w.watched && was.at[w.statAt] != w.stat // the client sets its watches again
	case (at == looks || at == checks) && a.outcome == done:
		now := w.view().at[w.path]
		w.met = w.met && w.stat.czxid == now.czxid || w.doubt && now.owner == w.session
		w.stat, w.statAt, w.doubt = now, w.path, false
		w.watched, w.fired, w.heard = at == looks && !m.blind, false, false
		w.shown = w.stat.czxid != 0 && w.stat.owner == m.owner(w)
	}
	if at == rests {
		w.wake = false
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
	if w.k.claim == made {
		w.prefix = none
	}
	if w.k.aim == nowhere {
		w.path, w.numbered = none, false
	}
	m.publish(w, is)
	return nil
}
