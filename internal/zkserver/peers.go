package zkserver

import "time"

// While the network between two members is whole, messages take no time. A cut holds
// messages back, as TCP does that sends a packet again and again. If neither member
// has given the other up, Heal delivers what was held.

// lose notes, before a cut of the way from m to o, when the two members have last
// heard of each other. If a follower cannot hear the pings of its leader, the
// leader does not hear of the follower either.
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

// deliverHeld gives members what was held back, where no cut holds it any more. All
// members get it before any member sends something new, because the new messages
// would overtake the old.
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

// resync makes a follower go on with its leader after a cut, if that member still
// leads it.
func (m *Member) resync() {
	if !m.linked(m.lead) {
		if m.hearsLeader() && m.lead.role == roleLeading && m.lead.term == m.term {
			m.takeIn() // a cut still holds the other direction
		}
		return // if the leader's process has ended, its silence will tell
	}
	p := m.lead.peers[m]
	if m.lead.role != roleLeading || m.lead.term != m.term || p == nil {
		m.leave()
		return
	}
	now := time.Now()
	if p.silent && m.e.lastBeat(now).After(p.heard) {
		m.relay() // the follower answers the held pings before anything else
	}
	p.silent = false
	m.takeIn()
}

// takeIn takes the messages from the leader that a cut held back.
func (m *Member) takeIn() {
	m.heard = time.Now()
	for _, r := range m.inbox {
		m.log = append(m.log, entry{r: r, known: r.txn == nil})
	}
	m.inbox = nil
	m.learn()
}

// Twice per tick the members look for signs of life and for silence. They do so by
// beatOffset later than sessions expire: at one instant the order would be left to the
// scheduler.
const beatOffset = 2 * time.Nanosecond

// lastBeat returns the latest instant, not after now, at which followers have told
// the leader of signs of life.
func (e *Ensemble) lastBeat(now time.Time) time.Time {
	half := e.cfg.Tick / 2
	passed := max(now.Sub(e.start)-beatOffset, 0)
	return e.start.Add(passed - passed%half + beatOffset)
}

// ticks returns how many ticks have passed.
func (e *Ensemble) ticks(at time.Time) int { return int(at.Sub(e.start) / e.cfg.Tick) }

// deadline returns when a follower that hears nothing gives its leader up.
func (m *Member) deadline() time.Time {
	return m.heard.Add(time.Duration(m.e.cfg.SyncLimit) * m.e.cfg.Tick)
}

// relay tells the leader which sessions have shown signs of life. A real follower
// does that in its answer to a ping.
func (m *Member) relay() {
	if m.role != roleFollowing || !m.reachesLeader() {
		return
	}
	for id, timeout := range m.touched {
		m.lead.touch(id, timeout)
	}
	clear(m.touched)
}

// count makes a leader step down that has no quorum of followers left.
func (m *Member) count() {
	now := m.e.ticks(time.Now())
	support := 1
	for _, f := range m.e.members {
		p := m.peers[f]
		if p == nil {
			continue
		}
		if p.silent && now > m.e.ticks(p.heard)+m.e.cfg.SyncLimit {
			delete(m.peers, f) // given up: it has to join again
			if m.reaches(f) {
				f.leave() // it sees that its connection has ended
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
