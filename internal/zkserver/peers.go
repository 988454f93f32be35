package zkserver

import "time"

// Members exchange messages at once while the network between them is whole.
// A cut holds messages back, as packets are that are sent again and again; what
// has been held is delivered by Heal if neither side has given the other up.

// reaches reports whether what a member sends gets to the other.
func (m *Member) reaches(o *Member) bool {
	return m.runs() && o.runs() && !m.e.cut[[2]int{m.id, o.id}]
}

// runs reports whether the member's process is there and not halted.
func (m *Member) runs() bool { return m.role != roleDown && !m.halted }

// linked reports whether two members can talk to each other.
func (m *Member) linked(o *Member) bool { return m.reaches(o) && o.reaches(m) }

// Cut stops all traffic between members i and j; clients reach both. If one of
// them leads the other, the follower keeps answering pings and reads from its
// old state until it has heard nothing for [WithSyncLimit] ticks; then it drops
// its clients and turns new ones away. A leader that a cut leaves without a
// quorum commits nothing more, and does the same at the end of the tick in
// which its followers have been silent for as long.
func (e *Ensemble) Cut(i, j int) {
	e.cutWays(func(from, to int) bool { return from == i && to == j || from == j && to == i })
}

// CutOneWay holds what member from sends to member to, and nothing else. A
// follower that does not get through hears its leader's commits and pings, while
// its clients' writes and signs of life wait and their sessions expire, until the
// leader has had no answer for [WithSyncLimit] ticks and drops it. A leader that
// does not get through goes on taking the follower's writes, and neither hears
// an answer; the follower gives up as after [Ensemble.Cut].
func (e *Ensemble) CutOneWay(from, to int) {
	e.cutWays(func(a, b int) bool { return a == from && b == to })
}

// Isolate cuts member i off from all other members; see [Ensemble.Cut].
func (e *Ensemble) Isolate(i int) {
	e.cutWays(func(from, to int) bool { return from == i || to == i })
}

func (e *Ensemble) cutWays(match func(from, to int) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, from := range e.members {
		for _, to := range e.members {
			if from != to && match(from.id, to.id) && !e.cut[[2]int{from.id, to.id}] {
				from.lose(to, now)
				e.cut[[2]int{from.id, to.id}] = true
			}
		}
	}
	e.settle()
}

// lose remembers when two members have heard of each other for the last time
// before a cut of the way from m to o. A leader does not hear of a follower that
// cannot hear its pings.
func (m *Member) lose(o *Member, now time.Time) {
	if !m.reaches(o) {
		return
	}
	last := m.e.lastBeat(now)
	if o.role == roleFollowing && o.lead == m && last.After(o.heard) {
		o.heard = last
	}
	for _, way := range [][2]*Member{{m, o}, {o, m}} {
		if p := way[0].peers[way[1]]; way[0].role == roleLeading && p != nil && !p.silent {
			p.silent, p.heard = true, last
		}
	}
}

// Heal mends all cuts. A member that has not been given up yet gets what was
// held back and goes on; the others need the election time to find a leader.
func (e *Ensemble) Heal() {
	e.mu.Lock()
	clear(e.cut)
	e.deliverHeld()
	e.settle()
	e.mu.Unlock()
	e.report()
}

// deliverHeld lets members have what was held back, where nothing holds it any
// more. All of them get it before any of them sends anew, or the new would
// overtake the old.
func (e *Ensemble) deliverHeld() {
	for _, m := range e.members {
		if m.role == roleFollowing && !m.halted {
			m.resync()
		}
	}
	for _, m := range e.members {
		if !m.reachesLeader() {
			continue
		}
		held := m.outbox
		m.outbox = nil
		for _, f := range held {
			m.send(f)
		}
	}
}

// resync goes on with a leader after a cut, if it is still the same.
func (m *Member) resync() {
	if !m.linked(m.lead) {
		if m.hearsLeader() && m.lead.role == roleLeading && m.lead.term == m.term {
			m.takeIn() // a cut holds the other way
		}
		return // or the leader's process has ended; its silence will tell
	}
	p := m.lead.peers[m]
	if m.lead.role != roleLeading || m.lead.term != m.term || p == nil {
		m.leave()
		return
	}
	now := time.Now()
	if p.silent && m.e.lastBeat(now).After(p.heard) {
		m.relay() // the pings of the meantime are answered first of all
	}
	p.silent = false
	m.takeIn()
}

// takeIn takes what a cut held back on the way from the leader.
func (m *Member) takeIn() {
	m.heard = time.Now()
	for _, r := range m.inbox {
		m.log = append(m.log, entry{r: r, known: r.txn == nil})
	}
	m.inbox = nil
	m.learn()
}

// Signs of life and silence are looked at twice per tick, a little after the
// instants at which sessions expire: at one instant the order would be
// anybody's.
const beatOffset = 2 * time.Nanosecond

func (e *Ensemble) lastBeat(now time.Time) time.Time {
	half := e.cfg.Tick / 2
	passed := max(now.Sub(e.start)-beatOffset, 0)
	return e.start.Add(passed - passed%half + beatOffset)
}

// ticks returns how many ticks have passed.
func (e *Ensemble) ticks(at time.Time) int { return int(at.Sub(e.start) / e.cfg.Tick) }

// deadline is when a follower that hears nothing gives its leader up.
func (m *Member) deadline() time.Time {
	return m.heard.Add(time.Duration(m.e.cfg.SyncLimit) * m.e.cfg.Tick)
}

// relay tells the leader which sessions have shown signs of life, as the answer
// to its ping does.
func (m *Member) relay() {
	if m.role != roleFollowing || !m.reachesLeader() {
		return
	}
	for id, timeout := range m.touched {
		m.lead.touch(id, timeout)
	}
	clear(m.touched)
}

// count lets a leader step down that has no quorum of followers left.
func (m *Member) count() {
	now := m.e.ticks(time.Now())
	support := 1
	for _, f := range m.e.members {
		p := m.peers[f]
		if p == nil {
			continue
		}
		if p.silent && now > m.e.ticks(p.heard)+m.e.cfg.SyncLimit {
			delete(m.peers, f) // given up: it has to start anew
			if m.reaches(f) {
				f.leave() // it sees its connection end
			}
			continue
		}
		support++
	}
	if support < m.e.majority() {
		m.leave()
	}
}

// doubtful reports whether a leader has to count its followers.
func (m *Member) doubtful() bool {
	for _, p := range m.peers {
		if p.silent {
			return true
		}
	}
	return len(m.peers)+1 < m.e.majority()
}
