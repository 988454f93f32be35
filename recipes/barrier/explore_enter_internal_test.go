package barrier

import "fmt"

// phase is which request a member sends next, or what it waits for.
type phase uint8

const (
	out phase = iota
	readsReady
	lists
	scans
	creates
	unsure // the answer to create is lost
	watchesEnd
	awaitsEnd
	clearsSet
	clearsDelete
	withdraws
	registers
	watchesReady
	watchesOwn
	listsToOpen
	opens
	awaits
	passes
	isInside
	leaveReads
	leaveLists
	leaveWatches
	leaveWatchesReady
	leaveReadsOther
	leaveRemoves
	leaveAwaits
	leaveBoth
	leaveOwn
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
	"out", "reads ready", "lists", "looks at a member", "makes its node", "is unsure of its node", "watches ready for the end", "awaits the end of the round",
	"clears ready", "deletes ready", "withdraws", "registers", "watches ready to enter", "watches its node", "lists to open", "opens", "awaits the round", "makes sure to pass",
	"inside", "reads ready to leave", "lists to leave", "watches another to leave", "watches ready to leave", "reads another to leave", "removes its node at the watch", "awaits another to leave", "removes both", "removes its node",
	"clears to tidy", "deletes to tidy", "Curator: reads ready", "Curator: makes its node", "Curator: lists", "Curator: opens", "Curator: awaits", "Curator: inside",
	"Curator: lists to leave", "Curator: removes ready", "Curator: removes its node", "Curator: awaits others", "over",
}

// begin begins an Enter with a new name.
func (m *model) begin(w *world, i int) {
	p := &w.p[i]
	*p = party{enters: p.enters, rule: entering{name: names[i], rounds: m.rounds}}
	if m.java(i) {
		p.at = javaReady
		return
	}
	m.again(w, i)
}

// anew begins Enter again, after a withdrawal or with another call.
func (m *model) anew(w *world, i int) {
	w.rename(i, true)
	m.begin(w, i)
}

// away is another session of an Enter.
func (m *model) away(w *world, i int) {
	p := &w.p[i]
	p.lost = false
	p.rule.away()
	p.renewed = m.bug == "pass with any round of this Enter"
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

// again reads ready, if the rule wants that, and decides.
func (m *model) again(w *world, i int) {
	p := &w.p[i]
	p.unwatch()
	p.ready = found{}
	if p.rule.rounds || p.rule.czxid != 0 {
		p.at = readsReady
		return
	}
	m.decide(w, i, nil)
}

// decide asks the rule for what is next in Enter.
func (m *model) decide(w *world, i int, live *bool) {
	p := &w.p[i]
	r := p.ready.round()
	if p.renewed {
		r.names = append(r.names, names[i])
	}
	next := p.rule.next(r, live)
	switch {
	case m.bug == "take a stale round for open" && next == removeStale && p.rule.czxid != 0:
		next = pass
	case m.bug == "join without a write" && next == register:
		next, p.rule.passes = pass, true
	}
	if next == pass {
		p.round = p.ready.opened
		p.early = (p.belongs == 0 || p.round != 0 && p.round != p.belongs) && (m.rounds || !p.joined)
	}
	p.at = map[deed]phase{
		join: creates, awaitEnd: watchesEnd, removeStale: clearsSet, pass: passes,
		await: watchesReady, withdraw: withdraws, register: registers, askLive: lists,
	}[next]
}

// heard is again at the end of await.
func (m *model) heard(w *world, i int) {
	if w.p[i].fired.has(readyPlace) && m.bug != "forget the event" {
		w.p[i].rule.passes = true
	}
	m.again(w, i)
}

// step is the next request of a member.
func (m *model) step(w *world, i int, answered bool) error {
	p := &w.p[i]
	switch {
	case p.lost && p.entersNow():
		m.away(w, i)
		return nil
	case p.lost && p.leavesNow() && p.gone:
		p.lost = false
		p.unwatch()
		p.at = leaveReads
		return nil
	case p.lost:
		*p = party{at: over, enters: p.enters}
		return nil
	case p.at >= javaReady:
		return m.javaStep(w, i)
	case p.at >= leaveReads:
		return m.leaveStep(w, i, answered)
	}
	return m.enterStep(w, i, answered)
}

func (m *model) enterStep(w *world, i int, answered bool) error {
	p := &w.p[i]
	switch p.at {
	case readsReady:
		p.ready = w.ready
		m.decide(w, i, nil)
	case lists:
		p.listed, p.at = w.standing()&^of(i), scans
	case scans:
		m.scan(w, i)
	case creates, unsure:
		if p.at == creates || w.node[i] == 0 || p.old {
			w.remove(i + three)
			w.remove(i)
			w.make(i)
			p.old = false
		}
		if p.at = unsure; answered {
			p.rule.czxid = w.node[i]
			m.again(w, i)
		}
	case watchesEnd:
		if p.at = awaitsEnd; w.ready.opened == 0 {
			m.again(w, i)
			break
		}
		p.watch(readyPlace)
	case awaitsEnd:
		m.again(w, i)
	case clearsSet:
		if m.set(w, i, answered) {
			p.at = clearsDelete
			break
		}
		m.again(w, i)
	case clearsDelete:
		w.closeAt(p.ready.version)
		m.again(w, i)
	case withdraws:
		switch {
		case w.node[i] == 0: // deleted: the answer cannot tell
			m.anew(w, i)
		case w.node[p.whom] == 0:
			m.again(w, i)
		default:
			w.remove(i)
			m.anew(w, i)
		}
	case registers:
		if w.ready.opened != 0 && w.ready.version == p.ready.version {
			if w.node[i] == 0 {
				w.fails(i)
				break
			}
			w.late |= of(i)
			w.fire(i)
		}
		p.ready.named |= of(i)
		p.rule.passes = m.set(w, i, answered)
		m.again(w, i)
	case watchesReady:
		p.watch(readyPlace)
		if p.at = watchesOwn; w.ready.opened != 0 {
			p.rule.saw(w.ready.opened)
			m.again(w, i)
		}
	case watchesOwn:
		if w.node[i] == 0 || w.node[i] != p.rule.czxid {
			w.fails(i)
			break
		}
		p.watch(i)
		p.at = listsToOpen
	case listsToOpen:
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
		early := p.early
		*p = party{at: isInside, round: p.round, enters: p.enters}
		if early {
			return fmt.Errorf("%d %w", i, errEarly)
		}
	case isInside:
		p.at = leaveReads
	}
	return nil
}

// scan looks at the next listed member, to see whether one of the round stands.
func (m *model) scan(w *world, i int) {
	p := &w.p[i]
	live := false
	if p.listed != 0 {
		j := p.listed.lowest()
		p.listed &^= of(j)
		if w.node[j] == 0 || !p.ready.round().has(standing{name: names[j], czxid: w.node[j]}) {
			return
		}
		live = true
		p.watch(j)
		p.whom, p.listed = int8(j), 0
	}
	if m.decide(w, i, &live); p.at != watchesEnd {
		p.unwatch()
	}
}

// set writes the ready node in the version that was read. It reports whether the answer
// says that this was the node that was read.
func (m *model) set(w *world, i int, answered bool) bool {
	p := &w.p[i]
	if w.ready.opened == 0 || w.ready.version != p.ready.version {
		return false
	}
	w.ready.version++
	w.ready.named = p.ready.named
	if w.ready.opened == p.ready.opened && p.at == registers {
		w.stood |= of(i)
	}
	w.fire(readyPlace)
	p.ready.version++
	return answered && w.ready.opened == p.ready.opened
}

// closeAt removes the ready node, if it has a version.
func (w *world) closeAt(version int8) bool {
	if w.ready.opened == 0 || w.ready.version != version {
		return false
	}
	w.close()
	return true
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
		w.open(counted)
		if w.stood.count() < m.members {
			return errFew
		}
	}
	m.heard(w, i)
	return nil
}
