package barrier

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

// A machine of three members of a double barrier and a server. The server's nodes are the
// reference: who stood when a round was opened is noted beside the product's rules.
const (
	three  = 3
	places = 8 // of names: those of members, those that they have given up, and these two

	readyPlace = 6
	deadPlace  = 7 // of all names that no node has any more
)

var (
	names     = [places]string{"0", "1", "2", "3", "4", "5", "ready", "dead"}
	errEarly  = errors.New("passes and belongs to no round")
	errFew    = errors.New("a round is opened with too few")
	errLeft   = errors.New("a Leave returns while a member that it has seen works")
	errBehind = errors.New("was counted and fails")
)

// set is a set of places.
type set uint8

func of(i int) set           { return 1 << i }
func (s set) has(i int) bool { return s>>i&1 != 0 }
func (s set) count() int     { return bits.OnesCount8(uint8(s)) }
func (s set) each() (all []int) {
	for i := range places {
		if s.has(i) {
			all = append(all, i)
		}
	}
	return all
}

// moved is the set with one place for another.
func (s set) moved(from, to int) set {
	if s.has(from) {
		return s&^of(from) | of(to)
	}
	return s
}

// writes is how often one ready node is written at most. Two members that clear it could
// write it in turns for ever.
const writes = 3

// found is the ready node, as the server has it or as a member has read it.
type found struct {
	opened  int64
	named   set
	curator bool // the data names nobody
	version int8
}

func (f found) round() round {
	r := round{opened: f.opened}
	if f.opened != 0 && !f.curator {
		r.named = []string{"-"} // whoever opened it, with a name that is gone
		for _, i := range f.named.each() {
			r.named = append(r.named, names[i])
		}
	}
	return r
}

// phase is which request a member sends next, or what it waits for.
type phase uint8

const (
	out phase = iota
	look_
	list
	scan
	create
	unsure // the answer to create is lost
	watchEnd
	awaitEnds
	clearSet
	clearDelete
	withdraws
	joinsLate
	watchReady
	watchOwn
	listOpen
	opens
	awaits
	passes
	inside_
	leaveList
	leaveWatch
	leaveEnd // whether the round is over
	leaveSays
	leaveRemove
	leaveAwait
	leaveBoth
	tidyRead
	tidyList
	tidyScan
	tidySet
	tidyDelete
	javaReady
	javaCreate
	javaList
	javaOpen
	javaAwait
	javaInside
	javaLeave
	javaOnly
	javaRemove
	javaAwaitLeft
	over
)

var phaseNames = [...]string{
	"out", "reads ready", "lists", "looks at a member", "makes its node", "is unsure of its node", "watches ready", "awaits the end of the round",
	"clears ready", "deletes ready", "withdraws", "joins late", "watches ready to enter", "watches its node", "lists to open", "opens", "awaits the round", "makes sure to pass",
	"inside", "lists to leave", "watches another to leave", "looks whether the round is over", "looks whether another is late", "removes its node", "awaits another to leave", "removes both", "tidies", "lists to tidy",
	"looks to tidy", "clears to tidy", "deletes to tidy", "Curator: reads ready", "Curator: makes its node", "Curator: lists", "Curator: opens", "Curator: awaits", "Curator: inside",
	"Curator: lists to leave", "Curator: removes ready", "Curator: removes its node", "Curator: awaits others", "over",
}

// party is one member.
type party struct {
	at      phase
	rule    entering
	ready   found // as read
	listed  set   // as listed, less those that were looked at
	watched set   // places, and ready
	fired   set
	begin   int64
	wait    set // others that Leave waits for
	whom    int8
	gone    bool
	lost    bool  // its session has ended, and it does not know
	old     bool  // its node is of a session that it has given up
	enters  int8  // how often it may yet enter
	round   found // that it works in
	// The reference.
	belongs bool // its node stood when a round was opened during this Enter
	joined  bool // its node stood while a round was open with another member
	counted bool // ready has named it
	later   bool // it has passed with a round that was opened after the Leave of another began
}

type world struct {
	node   [places]int64
	late   set  // nodes that say so
	forced bool // an operator has deleted ready
	ready  found
	stood  set // when ready was made
	p      [three]party
	faults int8
}

type act uint8

const (
	step act = iota
	starts
	unanswered
	givesUp
	expires
	moves
	oldExpires
	removed // in the background
	operatorReady
	operatorNode
)

var actNames = [...]string{"", "enters: ", "the answer is lost: ", "gives up: ", "its session expires: ", "goes on in another session: ", "its old session expires: ", "its old node is removed: ", "an operator deletes ready: ", "an operator deletes its node: "}

type move struct {
	who  int8
	what act
}

// model is which members there are, what can happen, and which bug is planted.
type model struct {
	members int
	rounds  bool
	curator set
	enters  [three]int8
	faults  int8
	kinds   []act // of faults
	bug     string
}

func (m *model) machine() *explore.Machine[world, move] {
	start := world{faults: m.faults}
	for i := range start.p {
		start.p[i].enters = m.enters[i]
	}
	return &explore.Machine[world, move]{
		Start: start, Moves: m.moves, Apply: m.apply, Waits: m.waits,
		Must: func(mv move) bool { return mv.what == step || mv.what == oldExpires || mv.what == removed },
		Tell: func(w *world, mv move) string {
			text := fmt.Sprintf("%d %s%s;", mv.who, actNames[mv.what], phaseNames[w.p[mv.who].at])
			for i := range w.p {
				text += fmt.Sprintf(" [%d %s, node %d]", i, phaseNames[w.p[i].at], w.node[i])
			}
			return text + fmt.Sprintf(" ready %+v", w.ready)
		},
	}
}

func (m *model) java(i int) bool { return m.curator.has(i) }

// entersNow reports whether a member is in Enter, and leavesNow whether in Leave.
func (p *party) entersNow() bool {
	return p.at >= look_ && p.at <= passes || p.at >= javaReady && p.at <= javaAwait
}
func (p *party) leavesNow() bool { return p.at >= leaveList && p.at <= tidyDelete }

func (m *model) moves(w *world, all []move) []move {
	for i := range w.p {
		p, who := &w.p[i], int8(i)
		blocked := false
		switch p.at {
		case out, over:
			blocked = true
			if p.enters > 0 {
				all = append(all, move{who, starts})
			}
		case clearSet, tidySet:
			blocked = w.capped()
		case awaitEnds, awaits, leaveAwait, javaAwait, javaAwaitLeft:
			blocked = p.watched&p.fired == 0 && !p.lost
		}
		if !blocked {
			all = append(all, move{who, step})
		}
		if p.old && w.node[i] != 0 {
			all = append(all, move{who, oldExpires})
		}
		if w.node[i+three] != 0 {
			all = append(all, move{who, removed})
		}
		if w.faults == 0 {
			continue
		}
		for _, kind := range m.kinds {
			can := false
			switch kind {
			case unanswered:
				can = !p.lost && (p.at == create || p.at == opens || p.at == withdraws || p.at == leaveBoth || p.at == clearSet)
			case givesUp:
				can = !m.java(i) && (p.entersNow() || p.leavesNow())
			case expires:
				can = !p.lost && !p.old && (w.node[i] != 0 || p.entersNow() && !m.java(i))
			case moves:
				can = !m.java(i) && !p.lost && !p.old && p.entersNow() && w.node[i] != 0
			case operatorReady:
				can = i == 0 && w.ready.opened != 0
			case operatorNode:
				can = w.node[i] != 0 && !m.java(i)
			}
			if can {
				all = append(all, move{who, kind})
			}
		}
	}
	return all
}

// capped reports whether the ready node was written too often.
func (w *world) capped() bool { return w.ready.version >= writes }

// forget clears what the next request does not depend on.
func (p *party) forget() {
	switch p.at {
	case list, scan, watchEnd, clearSet, clearDelete, withdraws, tidyList, tidyScan, tidySet, tidyDelete, javaCreate:
	case passes:
	default:
		p.ready = found{}
	}
	switch p.at {
	case scan, opens, javaOpen, leaveWatch, leaveEnd, leaveSays, tidyScan:
	default:
		p.listed = 0
	}
	switch p.at {
	case withdraws, leaveWatch, leaveEnd, leaveSays:
	default:
		p.whom = 0
	}
	if p.at >= tidyRead && p.at <= tidyDelete {
		p.unwatch()
	}
}

// zxid is newer than all.
func (w *world) zxid() int64 {
	newest := w.newest()
	for i := range w.p {
		p := &w.p[i]
		newest = max(newest, p.rule.czxid, p.rule.first, p.ready.opened, p.round.opened, p.begin)
	}
	return newest + 1
}

func (w *world) newest() int64 { return max(slices.Max(w.node[:]), w.ready.opened) }

// tidy numbers the zxids anew, so that states are few.
func (w *world) tidy() {
	var used []int64
	each := func(f func(*int64)) {
		for i := range w.node {
			f(&w.node[i])
		}
		f(&w.ready.opened)
		for i := range w.p {
			p := &w.p[i]
			for _, z := range []*int64{&p.rule.czxid, &p.rule.first, &p.ready.opened, &p.round.opened, &p.begin} {
				f(z)
			}
		}
	}
	each(func(z *int64) { used = append(used, *z) })
	slices.Sort(used)
	used = slices.Compact(used)
	each(func(z *int64) {
		if *z != 0 {
			i, _ := slices.BinarySearch(used, *z)
			*z = int64(i)
			if used[0] != 0 {
				*z++
			}
		}
	})
}

// fire makes the events of a place.
func (w *world) fire(place int) {
	for i := range w.p {
		w.p[i].fired |= w.p[i].watched & of(place)
	}
}

func (w *world) standing() (s set) {
	for i, z := range w.node {
		if z != 0 {
			s |= of(i)
		}
	}
	return s
}

func (w *world) make(i int) { w.node[i] = w.zxid(); w.fire(i) }

func (w *world) remove(i int) {
	if w.node[i] != 0 {
		w.node[i] = 0
		w.late &^= of(i)
		w.fire(i)
	}
}

// open makes the ready node, and notes who stands.
func (w *world) open(named set, curator bool) {
	w.ready = found{opened: w.zxid(), named: named, curator: curator}
	w.stood |= w.standing()
	w.fire(readyPlace)
	for i := range w.p {
		p := &w.p[i]
		if p.entersNow() && w.stood.has(i) {
			p.belongs = true
			p.counted = p.counted || named.has(i) && !p.lost && !p.old
		}
		for j := range w.p {
			if j != i && w.p[j].leavesNow() && w.stood.has(i) && p.entersNow() {
				p.later = true
			}
		}
	}
}

func (w *world) close() { w.ready, w.stood = found{}, 0; w.fire(readyPlace) }

// rename gives a member another name: its old one is given up, or its node is gone.
func (w *world) rename(i int, gone bool) {
	move := func(s *set) {
		if gone {
			*s &^= of(i)
		} else {
			*s = (*s &^ of(i+three)).moved(i, i+three)
		}
	}
	if !gone && w.node[i] == 0 {
		return // the name that was given up before may stand yet
	}
	move(&w.stood)
	move(&w.late)
	move(&w.ready.named)
	for j := range w.p {
		p := &w.p[j]
		move(&p.ready.named)
		move(&p.round.named)
		if j != i {
			to := i + three
			if gone {
				to = deadPlace
			}
			p.wait = p.wait.moved(i, to)
			p.listed = p.listed.moved(i, to)
			if !gone {
				p.watched = p.watched.moved(i, i+three)
				p.fired = p.fired.moved(i, i+three)
				if int(p.whom) == i {
					p.whom = int8(i + three)
				}
			}
		}
	}
	if !gone {
		w.node[i+three], w.node[i] = w.node[i], 0
	}
}

func (p *party) watch(place int) { p.watched |= of(place) }

// awaits is what a Leave does once it has its watches.
func (p *party) awaits() {
	if p.at = leaveAwait; p.listed != 0 {
		p.at, p.listed = leaveRemove, 0
	}
}
func (p *party) unwatch() { p.watched, p.fired = 0, 0 }

// begin begins an Enter with a new name.
func (m *model) begin(w *world, i int) {
	p := &w.p[i]
	*p = party{enters: p.enters, rule: entering{name: names[i], rounds: m.rounds}}
	if m.java(i) {
		p.at = javaReady
		return
	}
	m.decide(w, i, nil)
}

// decide asks the rule for what is next in Enter.
func (m *model) decide(w *world, i int, live *bool) {
	p := &w.p[i]
	if live == nil {
		p.unwatch()
		if p.at != look_ {
			p.ready = found{}
			if p.rule.rounds || p.rule.czxid != 0 {
				p.at = look_
				return
			}
		}
	}
	next := p.rule.next(p.ready.round(), live)
	if m.bug == "take a young node for a member" {
		if next == await && p.rule.czxid != 0 && p.ready.opened != 0 || next == clearReady && p.rule.czxid != 0 {
			next = pass
		}
	}
	if next == joinLate || next == pass && p.rule.has(p.ready.round()) {
		p.round = found{opened: p.ready.opened, named: p.ready.named, curator: p.ready.curator}
	}
	p.at = map[deed]phase{
		join: create, awaitEnd: watchEnd, clearReady: clearSet, pass: passes,
		await: watchReady, withdraw: withdraws, joinLate: joinsLate, askLive: list,
	}[next]
}

// again notes the events that have come, and decides anew.
func (m *model) again(w *world, i int) {
	p := &w.p[i]
	p.at = awaits
	m.decide(w, i, nil)
}

// heard is again at the end of await.
func (m *model) heard(w *world, i int) {
	if w.p[i].fired.has(readyPlace) && m.bug != "forget the event" {
		w.p[i].rule.created()
	}
	m.again(w, i)
}

// fails ends an Enter with an error, or a membership.
func (w *world) fails(i int) {
	p := &w.p[i]
	if p.entersNow() && w.node[i] != 0 || p.leavesNow() && !p.gone {
		w.rename(i, false)
	}
	*p = party{at: over, enters: p.enters}
}

func (m *model) apply(w *world, mv move) (err error) {
	i := int(mv.who)
	p := &w.p[i]
	switch mv.what {
	case starts:
		p.enters--
		m.anew(w, i)
	case step:
		err = m.step(w, i, true)
	case unanswered:
		w.faults--
		err = m.step(w, i, false)
	case givesUp:
		w.faults--
		w.fails(i)
	case expires:
		w.faults--
		w.remove(i)
		p.counted = false // if the others leave meanwhile, it waits for another round
		if m.java(i) {
			*p = party{at: over, enters: p.enters}
		} else {
			p.lost = p.at != over && p.at != out
		}
	case moves:
		w.faults--
		m.away(w, i)
		p.old, p.counted = true, false
	case oldExpires:
		w.remove(i)
		p.old = false
	case removed:
		w.remove(i + three)
	case operatorReady:
		w.faults--
		w.close()
		w.forced = true
		for j := range w.p {
			if q := &w.p[j]; !q.rule.passed && !q.fired.has(readyPlace) {
				q.counted = false // it has not seen the round, and counts again
			}
		}
	case operatorNode:
		w.faults--
		w.remove(i)
		p.counted = false // it gets ErrNodeDeleted
	}
	for j := range w.p {
		q := &w.p[j]
		q.forget()
		if q.entersNow() && w.node[j] != 0 && w.ready.opened != 0 && w.stood&w.standing()&^of(j) != 0 {
			q.joined = true
		}
	}
	w.tidy()
	return err
}

// away is another session of an Enter.
func (m *model) away(w *world, i int) {
	p := &w.p[i]
	p.lost = false
	p.rule.away()
	p.round = found{}
	m.again(w, i)
}

// passed checks that a member is entitled to pass.
func (m *model) passed(w *world, i int) error {
	p := &w.p[i]
	if !p.belongs && (m.rounds && !m.java(i) || !p.joined) {
		return fmt.Errorf("%d %w", i, errEarly)
	}
	p.counted = false
	return nil
}

// leaves checks that nobody works on whom a Leave has seen.
func (w *world) leaves(i int) error {
	begin := w.p[i].begin
	w.p[i] = party{at: over, enters: w.p[i].enters}
	for j := range w.p {
		q := &w.p[j]
		if j != i && (q.at == inside_ || q.at == javaInside) && !q.lost && !q.later && w.node[j] != 0 && w.node[j] <= begin {
			return errLeft
		}
	}
	return nil
}

func (m *model) step(w *world, i int, answered bool) error {
	p := &w.p[i]
	if p.lost {
		switch {
		case p.entersNow():
			m.away(w, i)
		case p.leavesNow() && p.gone:
			p.lost = false
			p.unwatch()
			p.at = leaveList
		default:
			*p = party{at: over, enters: p.enters}
		}
		return nil
	}
	if p.at >= javaReady {
		return m.javaStep(w, i)
	}
	if p.at >= leaveList {
		return m.leaveStep(w, i, answered)
	}
	switch p.at {
	case look_:
		p.ready = w.ready
		m.decide(w, i, nil)
	case list:
		p.listed, p.at = w.standing()&^of(i), scan
	case scan:
		if p.listed == 0 {
			p.unwatch()
			m.decide(w, i, new(bool))
			break
		}
		j := bits.TrailingZeros8(uint8(p.listed))
		p.listed &^= of(j)
		if w.node[j] != 0 && p.ready.round().has(standing{names[j], w.node[j]}) {
			p.watch(j)
			p.whom, p.listed = int8(j), 0
			yes := true
			m.decide(w, i, &yes)
		}
	case create, unsure:
		if p.at == create || w.node[i] == 0 || p.old {
			w.remove(i + three)
			w.remove(i)
			w.make(i)
			p.old = false
		}
		if !answered {
			p.at = unsure
			break
		}
		p.rule.joined(w.node[i])
		m.again(w, i)
	case watchEnd:
		if w.ready.opened == 0 {
			m.again(w, i)
			break
		}
		p.watch(readyPlace)
		p.at = awaitEnds
	case awaitEnds:
		m.again(w, i)
	case clearSet:
		m.set(w, i, answered, clearDelete)
		if p.at == clearSet {
			m.again(w, i)
		}
	case clearDelete:
		if w.ready.opened != 0 && w.ready.version == p.ready.version {
			w.close()
		}
		m.again(w, i)
	case withdraws:
		if w.node[i] == 0 { // deleted: the answer cannot tell
			m.anew(w, i)
			break
		}
		if w.node[p.whom] == 0 {
			m.again(w, i)
			break
		}
		w.remove(i)
		m.anew(w, i)
	case joinsLate:
		if w.ready.opened != 0 && w.node[i] != 0 {
			w.late |= of(i)
			w.fire(i)
		}
		switch {
		case w.node[i] == 0:
			w.fails(i)
			return nil
		case w.late.has(i):
			p.rule.joinedLate()
		}
		m.again(w, i)
	case watchReady:
		p.watch(readyPlace)
		if w.ready.opened != 0 {
			if w.ready.opened > p.rule.czxid {
				p.rule.saw(round{opened: w.ready.opened})
			}
			m.again(w, i)
			break
		}
		p.at = watchOwn
	case watchOwn:
		if w.node[i] == 0 || w.node[i] != p.rule.czxid {
			w.fails(i)
			break
		}
		p.watch(i)
		p.at = listOpen
	case listOpen:
		p.listed, p.at = w.standing(), awaits
		if p.listed.count() >= m.members {
			p.at = opens
		}
	case opens:
		return m.opens(w, i)
	case awaits:
		m.heard(w, i)
	case passes:
		if w.node[i] == 0 || w.node[i] != p.rule.czxid {
			if p.counted {
				return fmt.Errorf("%d %w", i, errBehind)
			}
			w.fails(i)
			break
		}
		err := m.passed(w, i)
		p.at = inside_
		p.unwatch()
		p.ready, p.listed, p.whom, p.belongs, p.joined = found{}, 0, 0, false, false
		p.rule = entering{}
		return err
	case inside_:
		p.at = leaveList
	}
	return nil
}

// set is the first request of clear.
func (m *model) set(w *world, i int, answered bool, next phase) {
	p := &w.p[i]
	if w.ready.opened == 0 || w.ready.version != p.ready.version {
		return
	}
	w.ready.version++
	w.fire(readyPlace)
	if answered && w.ready.opened == p.ready.opened {
		p.ready.version, p.at = w.ready.version, next
	}
}

// anew begins Enter again, after a withdrawal.
func (m *model) anew(w *world, i int) {
	w.rename(i, true)
	m.begin(w, i)
}

// opens is the transaction that makes the ready node. Who is counted with the member are
// the first that it has listed.
func (m *model) opens(w *world, i int) error {
	p := &w.p[i]
	counted := of(i)
	for _, j := range p.listed.each() {
		if counted.count() < m.members {
			counted |= of(j)
		}
	}
	stand := counted&^w.standing() == 0 || m.bug == "open without a check"
	if w.ready.opened == 0 && stand {
		w.open(counted&^m.curator, false)
		if w.stood.count() < m.members {
			return errFew
		}
	}
	m.heard(w, i)
	return nil
}

func (m *model) leaveStep(w *world, i int, answered bool) error {
	p := &w.p[i]
	switch p.at {
	case leaveList, leaveAwait:
		p.unwatch()
		now := w.standing()
		if p.begin == 0 {
			p.begin, p.wait = w.newest(), now
		}
		if !p.gone && !now.has(i) {
			w.fails(i)
			break
		}
		p.wait &= now &^ of(i)
		var wait []string
		for _, j := range p.wait.each() {
			wait = append(wait, names[j])
		}
		next, whom := leaveNext(names[i], p.gone, wait)
		p.whom = 0
		if whom != "" {
			p.whom = int8(whom[0] - '0')
		}
		p.at = leaveWatch
		switch next {
		case tidy:
			p.at = tidyRead
		case removeBoth:
			p.at = leaveBoth
		case removeAndAwait:
			p.listed = of(i) // remove it
		}
	case leaveWatch:
		if z := w.node[p.whom]; z == 0 || z > p.begin {
			p.wait, p.at, p.listed = p.wait&^of(int(p.whom)), leaveList, 0
			break
		}
		p.watch(int(p.whom))
		other := standing{names[p.whom], w.node[p.whom]}
		if m.bug == "wait for all" || p.round.round().awaits(other, false, false) {
			p.awaits()
		} else {
			p.at = leaveEnd
		}
	case leaveEnd:
		if p.at = leaveSays; w.ready.opened != 0 {
			p.watch(readyPlace)
			p.awaits()
		}
	case leaveSays:
		other := standing{names[p.whom], 0}
		other.czxid = p.round.opened // it does not belong to the round, as is known
		says := m.java(int(p.whom)%three) || w.late.has(int(p.whom)) && m.bug != "do not say so"
		if w.node[p.whom] == 0 || !p.round.round().awaits(other, says, false) {
			p.wait, p.at, p.listed = p.wait&^of(int(p.whom)), leaveList, 0
			break
		}
		p.awaits()
	case leaveRemove:
		w.remove(i)
		p.gone, p.at = true, leaveAwait
	case leaveBoth:
		switch {
		case w.node[i] == 0:
			p.gone, p.at = true, tidyRead
		case w.ready.opened == 0:
			w.remove(i)
			p.gone, p.at = true, tidyRead
		default:
			if w.remove(i); w.forced { // it may be the ready node of a later round
				for j := range w.p {
					w.p[j].counted = false
				}
			}
			w.close()
			p.gone = true
			if answered {
				return w.leaves(i)
			}
			p.at = leaveList
		}
	case tidyRead:
		p.ready = w.ready
		if w.ready.opened == 0 || w.ready.opened > p.begin {
			return w.leaves(i)
		}
		p.at = tidyList
	case tidyList:
		p.listed, p.at = w.standing()&^of(i), tidyScan
	case tidyScan:
		if p.listed == 0 {
			p.at = tidySet
			break
		}
		j := bits.TrailingZeros8(uint8(p.listed))
		p.listed &^= of(j)
		if w.node[j] != 0 && p.ready.round().has(standing{names[j], w.node[j]}) {
			return w.leaves(i)
		}
	case tidySet:
		if m.set(w, i, answered, tidyDelete); p.at == tidySet {
			p.at = tidyRead
		}
	case tidyDelete:
		if w.ready.opened != 0 && w.ready.version == p.ready.version {
			w.close()
		}
		p.at = tidyRead
	}
	return nil
}

// javaStep is a member of Curator's, as its code is.
func (m *model) javaStep(w *world, i int) error {
	p := &w.p[i]
	switch p.at {
	case javaReady:
		p.watch(readyPlace)
		p.ready.curator = w.ready.opened != 0
		p.at = javaCreate
	case javaCreate:
		w.make(i)
		if p.at = javaList; p.ready.curator {
			p.at = javaInside
		}
	case javaList:
		if p.at = javaAwait; w.standing().count() >= m.members {
			p.at, p.belongs, p.listed = javaOpen, true, w.standing()
		}
	case javaOpen:
		if w.ready.opened == 0 {
			w.stood = p.listed // its members are those that stood then
			w.open(0, true)
		}
		p.at = javaInside
	case javaAwait:
		p.at = javaInside
	case javaInside:
		p.unwatch()
		p.at = javaLeave
	case javaLeave, javaAwaitLeft:
		p.unwatch()
		now := w.standing()
		others := now &^ of(i)
		switch {
		case others == 0:
			if p.at = javaOnly; !now.has(i) {
				p.at = over
			}
		case now.has(i) && i < bits.TrailingZeros8(uint8(others)):
			p.watch(bits.Len8(uint8(others)) - 1)
			p.at = javaAwaitLeft
		default:
			p.watch(bits.TrailingZeros8(uint8(others)))
			if p.at = javaAwaitLeft; now.has(i) {
				p.at = javaRemove
			}
		}
	case javaRemove:
		w.remove(i)
		p.at = javaAwaitLeft
	case javaOnly:
		w.remove(i)
		if w.ready.opened != 0 {
			w.close()
		}
		*p = party{at: over, enters: p.enters}
	}
	return nil
}

// waits names who waits wrongly in a state in which nothing need happen.
func (m *model) waits(w *world) string {
	for i := range w.p {
		p := &w.p[i]
		switch {
		case w.capped():
			return ""
		case p.entersNow() && p.counted:
			return fmt.Sprintf("%d was counted and", i)
		case p.entersNow() && !m.java(i) && w.ready.opened != 0:
			return fmt.Sprintf("%d, beside a ready node that nobody removes,", i)
		case p.entersNow() && w.standing().count() >= m.members:
			return fmt.Sprintf("%d of enough that stand", i)
		case p.leavesNow() && !w.forced: // else it may wait for one that has not seen the round
			return fmt.Sprintf("the Leave of %d", i)
		}
	}
	return ""
}

var anyFault = []act{unanswered, givesUp, expires, moves, operatorNode, operatorReady}

// All sequences of moves of three members, or of two of which one comes again.
// DOCENT_EXPLORE_LONG=1 adds more faults and every fault where a third member comes late.
func TestExploreMachine(t *testing.T) {
	t.Parallel()
	once, again := [three]int8{1, 1, 1}, [three]int8{2, 1, 0}
	models := []*model{
		{members: 2, enters: once},
		{members: 2, enters: once, rounds: true},
		{members: 2, enters: once, curator: of(0)},
		{members: 2, enters: again, faults: 1, kinds: anyFault},
		{members: 2, enters: again, faults: 1, kinds: anyFault, rounds: true},
		{members: 3, enters: once, faults: 1, kinds: anyFault[:2]},
	}
	if os.Getenv("DOCENT_EXPLORE_LONG") == "1" {
		models = append(models,
			&model{members: 2, enters: once, curator: of(2), rounds: true},
			&model{members: 2, enters: [three]int8{2, 1, 1}},
			&model{members: 2, enters: [three]int8{2, 1, 1}, rounds: true},
			&model{members: 2, enters: again, faults: 2, kinds: anyFault[:5]},
			&model{members: 2, enters: again, faults: 2, kinds: anyFault[:5], rounds: true},
			&model{members: 3, enters: once, faults: 1, kinds: anyFault},
			&model{members: 3, enters: once, faults: 1, kinds: anyFault, rounds: true},
			&model{members: 3, enters: once, faults: 1, kinds: anyFault, curator: of(1)},
			&model{members: 2, enters: once, faults: 1, kinds: anyFault, curator: of(2)},
			&model{members: 2, enters: once, faults: 1, kinds: anyFault},
			&model{members: 2, enters: once, faults: 1, kinds: anyFault, rounds: true})
	}
	for _, m := range models {
		t.Run(fmt.Sprintf("%+v", *m), func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, m.machine(), 8_000_000)
		})
	}
}

// Bugs in the rules, and what shows them.
func TestExploreMachineFindsBugs(t *testing.T) {
	t.Parallel()
	once := [three]int8{1, 1, 1}
	for _, c := range []struct {
		model
		want string
	}{
		{model{members: 2, enters: once, rounds: true, bug: "take a young node for a member"}, errEarly.Error()},
		{model{members: 3, enters: once, faults: 1, kinds: []act{givesUp}, bug: "open without a check"}, errFew.Error()},
		{model{members: 2, enters: [three]int8{1, 1, 0}, faults: 1, kinds: []act{operatorReady}, bug: "forget the event"}, "counted"},
		{model{members: 2, enters: once, bug: "wait for all"}, "the Leave of"},
		{model{members: 2, enters: once, bug: "do not say so"}, errLeft.Error()},
	} {
		t.Run(c.bug, func(t *testing.T) {
			t.Parallel()
			explore.Finds(t, c.machine(), 8_000_000, c.want)
		})
	}
}
