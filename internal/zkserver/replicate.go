package zkserver

import (
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// forwarded reports whether a request goes to the leader.
func (r *request) forwarded() bool {
	return r.err == zoodefs.CodeOK && (isWrite(r.op) || r.op == zoodefs.OpConnect || r.op == zoodefs.OpCloseSession)
}

// submit takes a request of a client of this member, or of the member itself. The
// requests of one connection are answered in order. A read does not wait for the
// writes of other connections.
func (m *Member) submit(r *request) {
	if r.at.IsZero() {
		r.at = time.Now()
	}
	switch {
	case r.forwarded() && r.internal && !m.reachesLeader():
		r.err = zoodefs.CodeConnectionLoss
	case r.forwarded():
		r.sent = true
		if r.c != nil {
			r.c.waiting = append(r.c.waiting, r)
		}
		m.send(func(lead *Member) { lead.propose(r) })
		m.e.arm()
	case r.c != nil && len(r.c.waiting) > 0:
		r.c.waiting = append(r.c.waiting, r)
	default:
		m.read(r)
	}
}

// read answers a request from the member's own tree. Only a leader checks the
// session first.
func (m *Member) read(r *request) {
	if m.role == roleLeading && r.err == zoodefs.CodeOK {
		r.err = r.checkSession()
	}
	m.finish(r)
}

// send makes the leader call f, as soon as the network lets the message pass.
func (m *Member) send(f func(lead *Member)) {
	switch {
	case m.lead == nil:
	case m.reaches(m.lead) && !m.lead.leads(m):
		// Lost: the leader has closed the connection, and a cut keeps m from noticing.
	case m.reaches(m.lead):
		f(m.lead)
	default:
		m.outbox = append(m.outbox, f)
	}
}

// ask is send for a message that the leader answers at once: it waits until both
// directions are open.
func (m *Member) ask(f func(lead *Member)) {
	if m.lead != nil && !m.reachesLeader() {
		m.outbox = append(m.outbox, f)
		return
	}
	m.send(f)
}

// propose prepares a request and sends it to the followers.
func (m *Member) propose(r *request) {
	r.leader = m.server
	if r.txn == nil {
		m.prep.prepare(r)
	}
	if r.op == zoodefs.OpConnect {
		m.track(r)
	}
	p := proposal{r: r, due: r.at}
	if r.txn != nil {
		p.due = time.Now().Add(m.logDelay)
		for _, f := range m.followers() {
			f.receive(r)
		}
	}
	m.proposals = append(m.proposals, p)
	m.commit()
}

// receive takes a proposal from the leader. If a cut holds it back, it goes to the
// inbox.
func (m *Member) receive(r *request) {
	if !m.hearsLeader() {
		m.inbox = append(m.inbox, r)
		return
	}
	m.heard = time.Now()
	m.log = append(m.log, entry{r: r})
}

// commit commits the proposals that are due in the leader's log.
func (m *Member) commit() {
	for len(m.proposals) > 0 {
		p := m.proposals[0]
		if p.r.txn != nil && (m.logHeld || p.due.After(time.Now()) || !m.hasQuorum()) {
			return
		}
		m.proposals = m.proposals[1:]
		p.r.committed = true
		if p.r.txn == nil {
			p.r.s.member.pass(m, p.r)
			continue
		}
		m.e.history = append(m.e.history, committed{p.r.txn, p.r.timeout, p.r.client})
		m.e.journal.noteCommit(p.r.txn)
		m.apply(p.r)
		for _, f := range m.followers() {
			f.learn()
		}
	}
}

// pass lets a request without a transaction through, behind the commits that were
// sent before it. The answer to sync relies on that.
func (m *Member) pass(lead *Member, r *request) {
	switch {
	case m == lead:
		m.answerOwn(r)
	case m.role != roleFollowing || m.lead != lead:
	case !m.hearsLeader():
		i := slices.IndexFunc(m.inbox, func(r *request) bool { return !r.committed })
		if i < 0 {
			i = len(m.inbox)
		}
		m.inbox = slices.Insert(m.inbox, i, r)
	default:
		i := slices.IndexFunc(m.log, func(e entry) bool { return !e.r.committed })
		if i < 0 {
			i = len(m.log)
		}
		m.log = slices.Insert(m.log, i, entry{r: r, known: true})
		m.advance()
	}
}

// learn tells a follower which of its entries are committed.
func (m *Member) learn() {
	if !m.hearsLeader() {
		return
	}
	now := time.Now()
	m.heard = now
	for i := range m.log {
		if e := &m.log[i]; e.r.committed && !e.known {
			e.known = true
			if m.lag > 0 {
				// Two members that lag alike must not act at one instant.
				e.due = now.Add(m.lag + time.Duration(m.id))
			}
		}
	}
	m.advance()
}

// advance applies the entries that a follower may apply now.
func (m *Member) advance() {
	for m.role == roleFollowing && !m.halted && len(m.log) > 0 && m.log[0].known {
		e := m.log[0]
		if e.r.txn != nil && (m.holding || e.due.After(time.Now())) {
			return
		}
		m.log = m.log[1:]
		if e.r.txn == nil {
			m.answerOwn(e.r)
		} else {
			m.apply(e.r)
		}
	}
}

// apply performs a committed write. The member that it came from answers it.
func (m *Member) apply(r *request) {
	m.applied++
	if r.s == m.server {
		m.answerOwn(r)
		return
	}
	m.replay(committed{r.txn, r.timeout, r.client})
	m.prep.applied(r.txn.zxid)
}

// replay does here what a transaction of another member does.
func (m *Member) replay(c committed) {
	m.tree.apply(c.txn)
	m.armSweep()
	switch c.txn.op {
	case zoodefs.OpConnect:
		m.learnSession(c.txn.session, c.timeout, c.client)
	case zoodefs.OpCloseSession:
		if ses := m.sessions[c.txn.session]; ses != nil && ses.conn != nil {
			ses.conn.close()
		}
		delete(m.sessions, c.txn.session)
	default:
	}
}

// answerOwn finishes a request of this member's own client, and the reads behind
// it.
func (m *Member) answerOwn(r *request) {
	m.finish(r)
	c := r.c
	if c == nil || len(c.waiting) == 0 {
		return
	}
	c.waiting = c.waiting[1:]
	for len(c.waiting) > 0 && !c.waiting[0].sent {
		next := c.waiting[0]
		c.waiting = c.waiting[1:]
		m.read(next)
	}
}

// catchUp applies the history up to its nth transaction. No client is connected
// meanwhile.
func (m *Member) catchUp(n int) {
	if m.stale || m.applied > n {
		m.rebuild(n)
		return
	}
	for ; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// rebuild makes the member's state from the first n transactions, and drops the
// state it had.
func (m *Member) rebuild(n int) {
	m.stale = false
	m.tree = newDataTree(m.watches, &m.cfg)
	m.prep = m.newPrep()
	clear(m.sessions)
	for m.applied = 0; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// forgetTail loses the last n transactions of a member whose process has ended.
// Transactions that it has not applied are the last ones.
func (m *Member) forgetTail(n int) {
	kept := min(n, len(m.log))
	m.log = m.log[:len(m.log)-kept]
	if n -= kept; n > 0 {
		m.rebuild(min(max(m.applied-n, 0), len(m.e.history)))
	}
}

// cutHistory makes the history end where that of a new leader ends. Transactions
// that the new leader does not know are lost. That happens only if crashes have
// taken them from a majority.
func (m *Member) cutHistory() {
	e := m.e
	known := m.applied
	for _, entry := range m.log {
		if entry.r.committed {
			known++
		}
	}
	if known >= len(e.history) {
		return
	}
	e.history = e.history[:known:known]
	for _, o := range e.members {
		o.stale = o.stale || o.applied > known
	}
}
