package zkserver

import (
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// noteTouch notes a sign of life until the follower answers the leader's next ping.
// A follower reports true for every session, because only the leader knows whether
// it still lives.
func (m *Member) noteTouch(id int64, timeout time.Duration) bool {
	if m.role != roleFollowing {
		return false
	}
	m.touched[id] = timeout
	m.e.arm()
	return true
}

// learnSession makes a session known to the member, if it is not known yet.
func (m *Member) learnSession(id int64, timeout time.Duration, client string) {
	if m.sessions[id] == nil {
		m.sessions[id] = &session{id: id, timeout: timeout, client: client}
	}
}

// revalidate asks the leader whether a client may come back with its session, which
// then belongs to this member. If the session has a connection to another member,
// that connection stays open, as on the real server. A request on it that needs the
// leader finds that the session has moved.
func (m *Member) revalidate(c *conn, r *request) {
	m.ask(func(lead *Member) {
		valid := lead.touch(r.session, c.timeout)
		if valid {
			lead.sessions[r.session].owner = m.server
		}
		if c.dead {
			return
		}
		if valid {
			m.learnSession(r.session, c.timeout, r.client)
		}
		c.attach(r, valid)
	})
}

// authority returns the server that tracks sessions, or nil.
func (s *Server) authority() *Server {
	switch {
	case s.member == nil:
		return s
	case s.member.reachesLeader():
		return s.member.lead.server
	default:
		return nil
	}
}

// expiryOf returns the tick at which a session is over, as far as the server knows.
func (s *Server) expiryOf(ses *session) int64 {
	if a := s.authority(); a != nil && a.sessions[ses.id] != nil {
		return a.sessions[ses.id].expires
	}
	return ses.expires
}

// DropLog loses the writes that the leader has logged and not committed, on all
// members that follow it, and closes the connections that sent them. It returns how
// many requests were lost; on a member that does not lead, that is none.
func (m *Member) DropLog() int {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	lost := m.proposals
	m.proposals = nil
	m.prep.forget()
	doomed := map[*request]bool{}
	for _, p := range lost {
		doomed[p.r] = true
		switch ses := m.sessions[p.r.session]; {
		case p.r.op == zoodefs.OpConnect:
			delete(m.sessions, p.r.session)
		case p.r.op == zoodefs.OpCloseSession && ses != nil:
			ses.closing = false
		}
		if p.r.c != nil {
			p.r.c.close()
		}
	}
	for _, f := range m.followers() {
		f.discard(doomed)
	}
	m.armNextExpiry()
	return len(lost)
}

// discard removes requests from a follower's log and from the messages that a cut
// holds.
func (m *Member) discard(doomed map[*request]bool) {
	var log []entry
	for _, e := range m.log {
		if !doomed[e.r] {
			log = append(log, e)
		}
	}
	var inbox []*request
	for _, r := range m.inbox {
		if !doomed[r] {
			inbox = append(inbox, r)
		}
	}
	m.log, m.inbox = log, inbox
}

// SetCounter presets a counter on all members; see [Server.SetCounter]. Here it is
// a write, which takes a zxid and its place in the log.
func (m *Member) SetCounter(path string, n int32) zoodefs.Code {
	return m.preset(path, func(st *storedStat) { st.cversion = n })
}

// SetVersion presets a version on all members; see [Member.SetCounter].
func (m *Member) SetVersion(path string, n int32) zoodefs.Code {
	return m.preset(path, func(st *storedStat) { st.version = n })
}

func (m *Member) preset(path string, set func(*storedStat)) zoodefs.Code {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	a := m.authority()
	if a == nil {
		return zoodefs.CodeConnectionLoss
	}
	rec := a.prep.record(path)
	if rec == nil {
		return zoodefs.CodeNoNode
	}
	r := &request{s: a, op: opPreset, path: path, internal: true, at: time.Now()}
	r.txn = a.prep.begin(r)
	r.txn.path, r.txn.preset = path, set
	rec = rec.duplicate(r.txn.zxid)
	set(rec.stat)
	a.prep.add(rec)
	a.member.propose(r)
	m.e.react()
	return zoodefs.CodeOK
}

// SetZxid makes the next transaction of the ensemble take the number after zxid;
// see [Server.SetZxid]. The code is [zoodefs.CodeConnectionLoss] when the member does not
// reach a leader.
func (m *Member) SetZxid(zxid int64) (last int64, code zoodefs.Code) {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	a := m.authority()
	if a == nil {
		return 0, zoodefs.CodeConnectionLoss
	}
	last = a.prep.zxid
	if zxid < last {
		return last, zoodefs.CodeBadArguments
	}
	a.prep.zxid = zxid
	return last, zoodefs.CodeOK
}

// react does everything that a change has made possible. Every change of the
// ensemble ends with it.
func (e *Ensemble) react() {
	for _, m := range e.members {
		switch m.role {
		case roleLeading:
			m.commit()
		case roleFollowing:
			m.learn()
			m.advance()
		case roleLooking, roleDown:
		}
	}
	switch possible := e.canDecide(); {
	case !possible:
		e.electAt = time.Time{}
	case e.electAt.IsZero():
		e.electAt = time.Now().Add(e.cfg.ElectionTime)
	}
	e.arm()
}

// arm sets the timer of the ensemble to the next instant at which something is due.
// While nothing is due, no timer runs, so that an idle simulation comes to rest.
func (e *Ensemble) arm() {
	at := e.next()
	if e.closed || at.IsZero() || !e.timerAt.IsZero() && !e.timerAt.After(at) {
		return
	}
	if e.timer != nil {
		e.timer.Stop() // if it has fired already, the pulse finds nothing due
	}
	e.timerAt = at
	e.timer = time.AfterFunc(time.Until(at), e.pulse)
}

// next returns the first instant at which something is due, or zero.
func (e *Ensemble) next() time.Time {
	first := e.electAt
	sooner := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	now := time.Now()
	for _, m := range e.members {
		if m.halted {
			continue
		}
		switch m.role {
		case roleFollowing:
			if !m.hearsLeader() {
				sooner(m.deadline())
			}
			if m.reachesLeader() && len(m.touched) > 0 && e.beatAt.IsZero() {
				e.beatAt = e.lastBeat(now).Add(e.cfg.Tick / 2)
			}
			if len(m.log) > 0 && m.log[0].known && !m.holding {
				sooner(m.log[0].due)
			}
		case roleLeading:
			if m.checkAt.IsZero() && m.doubtful() {
				m.checkAt = e.start.Add(time.Duration(e.ticks(now)+1)*e.cfg.Tick + beatOffset)
			}
			sooner(m.checkAt)
			if len(m.proposals) > 0 && !m.logHeld && m.proposals[0].due.After(now) {
				sooner(m.proposals[0].due)
			}
		case roleLooking, roleDown:
		}
	}
	sooner(e.beatAt)
	return first
}

// pulse does what is due. One timer does all of it, so that things that are due at
// one instant happen in one order.
func (e *Ensemble) pulse() {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.wg.Add(1)
	defer e.wg.Done()
	e.timerAt = time.Time{}
	now := time.Now()
	if due(e.beatAt, now) {
		e.beatAt = time.Time{}
		for _, m := range e.members {
			m.relay()
		}
	}
	for _, m := range e.members {
		switch {
		case m.halted:
		case m.role == roleFollowing && !m.hearsLeader() && due(m.deadline(), now):
			m.leave()
		case m.role == roleLeading && due(m.checkAt, now):
			m.checkAt = time.Time{}
			m.count()
		}
	}
	if due(e.electAt, now) {
		e.electAt = time.Time{}
		e.decide()
	}
	e.react()
	e.mu.Unlock()
	e.report()
}

func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// report tells observers what has happened; see [Server.OnRequest].
func (e *Ensemble) report() { e.members[0].report() }
