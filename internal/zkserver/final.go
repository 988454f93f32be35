package zkserver

import (
	"time"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zoodefs"
)

// submit sends a request through the preparation and the log. The mutex is held.
func (s *Server) submit(r *request) {
	if r.at.IsZero() {
		r.at = time.Now()
	}
	if s.member != nil {
		s.member.submit(r)
		return
	}
	s.prep.prepare(r)
	if s.logDelay == 0 && !s.logHeld && len(s.pending) == 0 {
		s.finish(r)
		return
	}
	// A read behind a write in the log waits for it. With nothing before it, a read
	// does not wait.
	if r.txn == nil && len(s.pending) == 0 {
		s.finish(r)
		return
	}
	r.due = r.at
	if r.txn != nil {
		r.due = r.at.Add(s.logDelay)
	}
	s.pending = append(s.pending, r)
	s.armLog()
}

// armLog makes sure the oldest request in the log is finished when it is due.
func (s *Server) armLog() {
	if s.logArmed || s.logHeld || len(s.pending) == 0 || s.closed {
		return
	}
	s.logArmed = true
	s.logTimer = time.AfterFunc(time.Until(s.pending[0].due), s.drainLog)
}

func (s *Server) drainLog() {
	if !s.beginTimer() {
		return
	}
	defer s.wg.Done()
	s.logArmed = false
	now := time.Now()
	for !s.logHeld && len(s.pending) > 0 && !s.pending[0].due.After(now) {
		r := s.pending[0]
		s.pending = s.pending[1:]
		s.finish(r)
	}
	s.armLog()
	s.mu.Unlock()
	s.report()
}

// finish applies a request and answers it.
func (s *Server) finish(r *request) {
	if r.verdict.LoseReply && r.c != nil {
		r.c.mute()
	}
	if r.txn != nil {
		r.result = s.tree.apply(r.txn)
		if s.member == nil { // the leader of an ensemble has noted it
			s.journal.noteCommit(r.txn)
		}
		s.prep.applied(r.txn.zxid)
		s.armSweep()
	}
	switch r.op {
	case zoodefs.OpConnect:
		s.sessionOpened(r)
	case zoodefs.OpCloseSession:
		s.sessionClosed(r)
	}
	s.record(r)
	if r.c == nil || r.c.dead {
		return
	}
	if r.op == zoodefs.OpConnect {
		r.c.connected(r)
		return
	}
	e := jute.NewFrame(64)
	code, moved := r.answer(e)
	if moved {
		// The session has moved. The connection is closed without an answer, so
		// that its client notices.
		r.c.close()
		return
	}
	if code != zoodefs.CodeOK {
		rest := e.B[4+16:]
		e = jute.NewFrame(16 + len(rest))
		e.Header(r.xid, s.tree.lastZxid, code)
		if r.keepBody {
			e.B = append(e.B, rest...)
		}
	}
	r.c.reply(r, e.Frame())
}

// sessionOpened attaches the connection to a session that was made. The time until
// the session expires has counted since the handshake was read.
func (s *Server) sessionOpened(r *request) {
	if s.member != nil {
		s.member.learnSession(r.session, r.timeout, r.client)
	}
	if ses := s.sessions[r.session]; ses != nil && r.c != nil && !r.c.dead {
		ses.conn = r.c
	}
}

// sessionClosed forgets a session. If the server ended it, its connection is
// closed.
func (s *Server) sessionClosed(r *request) {
	ses := s.sessions[r.session]
	delete(s.sessions, r.session)
	if r.c == nil && ses != nil && ses.conn != nil {
		ses.conn.close()
	}
}

// answer encodes the reply to r, with its header, and returns the code of the
// header. If moved is true, the connection must be closed instead.
func (r *request) answer(e *jute.Encoder) (code zoodefs.Code, moved bool) {
	zxid := r.s.tree.lastZxid
	xid := r.xid
	if r.op == zoodefs.OpPing {
		xid = zoodefs.XidPing
	}
	e.Header(xid, zxid, zoodefs.CodeOK)
	if r.err == zoodefs.CodeSessionMoved {
		return r.err, true
	}
	if r.err != zoodefs.CodeOK {
		if r.op == zoodefs.OpMulti {
			e.MultiHeader(zoodefs.OpError, true, -1) // only some errors keep the body
		}
		return r.err, false
	}
	if r.txn != nil {
		return r.answerWrite(e)
	}
	code = r.answerRead(e)
	if r.err == zoodefs.CodeOK {
		r.err = code
	}
	return code, false
}

// answerWrite encodes the result of a transaction.
func (r *request) answerWrite(e *jute.Encoder) (code zoodefs.Code, moved bool) {
	res := r.result
	switch r.op {
	case zoodefs.OpCreate:
		e.Text(res.path)
	case zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		e.Text(res.path)
		e.Stat(res.stat)
	case zoodefs.OpSetData, zoodefs.OpSetACL:
		e.Stat(res.stat)
	case zoodefs.OpReconfig:
		e.Buffer([]byte(r.s.tree.roster.String()))
		e.Stat(res.stat)
	case zoodefs.OpMulti:
		for _, p := range res.parts {
			if p.err == zoodefs.CodeSessionMoved {
				return p.err, true
			}
			multiResult(e, p)
		}
		e.MultiHeader(zoodefs.OpError, true, -1)
	}
	return res.err, false
}

// multiResult encodes the outcome of one part of a transaction.
func multiResult(e *jute.Encoder, p txnResult) {
	switch p.op {
	case zoodefs.OpCreate:
		e.MultiHeader(zoodefs.OpCreate, false, zoodefs.CodeOK)
		e.Text(p.path)
	case zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		e.MultiHeader(zoodefs.OpCreate2, false, zoodefs.CodeOK)
		e.Text(p.path)
		e.Stat(p.stat)
	case zoodefs.OpDelete:
		e.MultiHeader(zoodefs.OpDelete, false, zoodefs.CodeOK)
	case zoodefs.OpSetData:
		e.MultiHeader(zoodefs.OpSetData, false, zoodefs.CodeOK)
		e.Stat(p.stat)
	case zoodefs.OpCheck:
		e.MultiHeader(zoodefs.OpCheck, false, zoodefs.CodeOK)
	default:
		e.MultiHeader(zoodefs.OpError, false, p.err)
		e.Int(int32(p.err))
	}
}
