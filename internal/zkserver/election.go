package zkserver

import (
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// leave makes a member stop serving: it drops its clients and looks for a leader.
// If the member leads, its followers do the same, except those that a cut keeps
// from noticing.
func (m *Member) leave() {
	lead, was := m.lead, m.role
	for c := range m.conns {
		c.close()
	}
	m.role, m.lead, m.suspended, m.alone = roleLooking, nil, true, time.Now()
	m.inbox, m.outbox, m.checkAt = nil, nil, time.Time{}
	clear(m.touched)
	m.log = slices.DeleteFunc(m.log, func(e entry) bool { return e.r.txn == nil })
	switch was {
	case roleFollowing:
		if m.reaches(lead) {
			delete(lead.peers, m)
		}
	case roleLeading:
		m.abdicate()
		for _, f := range m.e.members {
			if f.role == roleFollowing && f.lead == m && m.reaches(f) {
				f.leave()
			}
		}
	case roleLooking, roleDown:
	}
	m.e.notify()
}

// abdicate moves what a leader has proposed and not committed to its own log. Other
// members may or may not have it.
func (m *Member) abdicate() {
	for _, p := range m.proposals {
		if p.r.txn == nil {
			continue
		}
		m.log = append(m.log, entry{r: p.r})
		if p.r.op == zoodefs.OpConnect {
			delete(m.sessions, p.r.session)
		}
	}
	for _, ses := range m.sessions {
		ses.closing = false
	}
	m.proposals, m.peers = nil, nil
	m.prep.forget()
}

// rank tells how new the log of a member is: first by its epoch, then by its last
// zxid.
func (m *Member) rank() [2]int64 {
	last := m.tree.lastZxid
	for _, e := range m.log {
		if e.r.txn != nil {
			last = max(last, e.r.txn.zxid)
		}
	}
	for _, p := range m.proposals {
		if p.r.txn != nil {
			last = max(last, p.r.txn.zxid)
		}
	}
	return [2]int64{m.term, last}
}

func newer(a, b [2]int64) bool { return a[0] > b[0] || a[0] == b[0] && a[1] > b[1] }

// votes counts the members that would follow m: members that look for a leader, can
// talk to m and have no newer log. A majority of them knows everything that was
// committed.
func (m *Member) votes() int {
	n := 0
	for _, v := range m.e.members {
		if v.role == roleLooking && v.linked(m) && !newer(v.rank(), m.rank()) {
			n++
		}
	}
	return n
}

// candidate returns the member that would win an election now, or nil.
func (e *Ensemble) candidate() *Member {
	var best *Member
	for _, m := range e.members {
		switch {
		case m.role != roleLooking || m.halted || m.votes() < e.majority():
		case m == e.heir:
			return m
		case best == nil || !newer(best.rank(), m.rank()):
			best = m // the higher number wins a tie
		}
	}
	return best
}

// host returns a leader that m can join, or nil.
func (m *Member) host() *Member {
	for _, l := range m.e.members {
		if l.role == roleLeading && l.linked(m) && l.hasQuorum() {
			return l
		}
	}
	return nil
}

// canDecide reports whether a member could find a leader.
func (e *Ensemble) canDecide() bool {
	for _, m := range e.members {
		if m.role == roleLooking && m.host() != nil {
			return true
		}
	}
	return e.candidate() != nil
}

// decide lets members find the leader that there is. If there is none, it elects
// one.
func (e *Ensemble) decide() {
	for _, m := range e.members {
		if m.role == roleLooking {
			if l := m.host(); l != nil {
				m.join(l)
			}
		}
	}
	if w := e.candidate(); w != nil {
		w.begin()
		for _, m := range e.members {
			if m.role == roleLooking && m.linked(w) {
				m.join(w)
			}
		}
		e.heir = nil
	}
	e.notify()
}

// begin makes a member the leader of a new epoch. Everything in its log counts as
// committed, and every session gets its full timeout again.
func (m *Member) begin() {
	e := m.e
	m.cutHistory()
	log := m.log
	m.log = nil
	for _, entry := range log {
		r := entry.r
		if m.applied == len(e.history) {
			r.committed = true
			e.history = append(e.history, committed{r.txn, r.timeout, r.client})
			e.journal.noteCommit(r.txn)
		}
		m.apply(r)
	}
	m.dropLocal()
	e.term = max(e.term, m.tree.lastZxid>>32) + 1
	m.term, m.role, m.lead = e.term, roleLeading, m
	m.tree.lastZxid = m.term << 32
	m.prep = m.newPrep()
	m.prep.zxid = m.tree.lastZxid
	m.peers = map[*Member]*peer{}
	m.suspended = false
	for _, ses := range m.sessions {
		ses.owner = nil
	}
	m.renewSessions()
	m.armSweep()
}

// join makes a member follow a leader, after the member has got what the leader
// has.
func (m *Member) join(lead *Member) {
	m.log = nil
	m.dropLocal()
	m.catchUp(lead.applied)
	m.tree.lastZxid, m.term = lead.tree.lastZxid, lead.term
	m.role, m.lead, m.heard = roleFollowing, lead, time.Now()
	for _, p := range lead.proposals {
		if p.r.txn != nil {
			m.log = append(m.log, entry{r: p.r})
		}
	}
	lead.peers[m] = &peer{}
}
