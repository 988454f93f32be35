package zktest

import "time"

// Members exchange messages at once while the network between them is whole.
// A cut holds messages back, as packets are that are sent again and again; what
// has been held is delivered by Heal if neither side has given the other up.

func pair(i, j int) [2]int { return [2]int{min(i, j), max(i, j)} }

// linked reports whether two members can talk to each other.
func (m *Member) linked(o *Member) bool {
	return m == o || m.role != roleDown && o.role != roleDown && !m.e.cut[pair(m.id, o.id)]
}

// Cut stops all traffic between members i and j; clients reach both. If one of
// them leads the other, the follower keeps answering pings and reads from its
// old state until it has heard nothing for [WithSyncLimit] ticks; then it drops
// its clients and turns new ones away. A leader that a cut leaves without a
// quorum commits nothing more, and does the same at the end of the tick in
// which its followers have been silent for as long.
func (e *Ensemble) Cut(i, j int) { e.cutPairs(func(a, b int) bool { return pair(a, b) == pair(i, j) }) }

// Isolate cuts member i off from all other members; see [Ensemble.Cut].
func (e *Ensemble) Isolate(i int) { e.cutPairs(func(a, b int) bool { return a == i || b == i }) }

func (e *Ensemble) cutPairs(match func(a, b int) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, a := range e.members {
		for _, b := range e.members {
			if a.id < b.id && match(a.id, b.id) && !e.cut[pair(a.id, b.id)] {
				a.lose(b, now)
				b.lose(a, now)
				e.cut[pair(a.id, b.id)] = true
			}
		}
	}
	e.settle()
}

// lose remembers when a member has heard of the other for the last time.
func (m *Member) lose(o *Member, now time.Time) {
	if !m.linked(o) {
		return
	}
	last := m.e.lastBeat(now)
	switch {
	case m.role == roleFollowing && m.lead == o:
		if last.After(m.heard) {
			m.heard = last
		}
	case m.role == roleLeading && m.peers[o] != nil:
		m.peers[o].silent, m.peers[o].heard = true, last
	}
}

// Heal mends all cuts. A member that has not been given up yet gets what was
// held back and goes on; the others need the election time to find a leader.
func (e *Ensemble) Heal() {
	e.mu.Lock()
	clear(e.cut)
	// All members get what was held back before any of them sends anew, or
	// the new would overtake the old.
	for _, m := range e.members {
		if m.role == roleFollowing {
			m.resync()
		}
	}
	for _, m := range e.members {
		held := m.outbox
		m.outbox = nil
		for _, f := range held {
			m.send(f)
		}
	}
	e.settle()
	e.mu.Unlock()
	e.report()
}

// resync goes on with a leader after a cut, if it is still the same.
func (m *Member) resync() {
	if !m.linked(m.lead) {
		return // the leader's process has ended; its silence will tell
	}
	p := m.lead.peers[m]
	if m.lead.role != roleLeading || m.lead.term != m.term || p == nil {
		m.leave()
		return
	}
	p.silent, m.heard = false, time.Now()
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
	half := e.cfg.tick / 2
	passed := max(now.Sub(e.start)-beatOffset, 0)
	return e.start.Add(passed - passed%half + beatOffset)
}

// ticks returns how many ticks have passed.
func (e *Ensemble) ticks(at time.Time) int { return int(at.Sub(e.start) / e.cfg.tick) }

// deadline is when a follower that hears nothing gives its leader up.
func (m *Member) deadline() time.Time {
	return m.heard.Add(time.Duration(m.e.cfg.syncLimit) * m.e.cfg.tick)
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
	for f, p := range m.peers {
		if p.silent && now > m.e.ticks(p.heard)+m.e.cfg.syncLimit {
			delete(m.peers, f) // given up: it has to start anew
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
