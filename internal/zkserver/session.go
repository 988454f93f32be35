package zkserver

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

// session is a client's session. It is guarded by the server's mutex.
type session struct {
	id      int64
	timeout time.Duration // negotiated when it was created
	expires int64         // tick at which it is over
	closing bool
	conn    *conn   // nil while no connection is attached
	owner   *Server // of an ensemble: where it was attached last; nil if unknown
	client  string
}

// passwordSecret is the constant ZooKeeper mixes into a session's password,
// which therefore is a function of the session's id.
const passwordSecret = 0xB3415C00

// sessionPassword returns what java.util.Random, seeded with the session's id
// and the secret, yields first.
func sessionPassword(id int64) []byte {
	const mult, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(id) ^ passwordSecret ^ mult) & mask
	out := make([]byte, 0, 16)
	for range 4 {
		seed = (seed*mult + 0xB) & mask
		out = binary.LittleEndian.AppendUint32(out, uint32(seed>>16))
	}
	return out
}

func passwordMatches(id int64, password []byte) bool {
	return id != 0 && bytes.Equal(password, sessionPassword(id))
}

// firstSessionID composes a session id as the server does: its own number in
// the top byte, the time in the next five, a counter in the last two.
func firstSessionID(serverID byte, now time.Time) int64 {
	ms := uint64(now.UnixMilli())
	return int64(ms<<24>>8&^(0xff<<56) | uint64(serverID)<<56)
}

// clampTimeout negotiates a session timeout.
func (s *Server) clampTimeout(ms int32) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	return min(max(d, s.cfg.MinTimeout), s.cfg.MaxTimeout)
}

// expiryTick returns the tick at which a session touched now is over: sessions
// expire in buckets, at the first multiple of the tick after their timeout.
func (s *Server) expiryTick(timeout time.Duration) int64 {
	return int64((time.Since(s.epoch)+timeout)/s.cfg.Tick) + 1
}

// touch puts a session's expiry off. It reports false for a session that is
// over; the server drops the request then without a word.
func (s *Server) touch(id int64, timeout time.Duration) bool {
	if s.member != nil && s.member.role != roleLeading {
		return s.member.noteTouch(id, timeout)
	}
	ses := s.sessions[id]
	if ses == nil || ses.closing {
		return false
	}
	ses.expires = s.expiryTick(timeout)
	s.armExpiry(ses.expires)
	return true
}

// track starts to track the session that r opens.
func (s *Server) track(r *request) {
	s.sessions[r.session] = &session{id: r.session, timeout: r.timeout, client: r.client, owner: r.s}
	s.touch(r.session, r.timeout)
}

// armExpiry makes sure that the timer fires no later than at tick.
func (s *Server) armExpiry(tick int64) {
	if s.suspended || s.closed || s.expiryArmed && s.expiryAt <= tick {
		return
	}
	if s.expiryArmed {
		s.expiryTimer.Stop() // if it is too late for that it fires once for nothing
	}
	s.expiryArmed, s.expiryAt = true, tick
	at := s.epoch.Add(time.Duration(tick) * s.cfg.Tick)
	s.expiryTimer = time.AfterFunc(time.Until(at), s.expireDue)
}

// armNextExpiry sets the timer for the session that expires first. Sessions
// that are touched leave the timer where it is, so it may fire early.
func (s *Server) armNextExpiry() {
	first := int64(-1)
	for _, ses := range s.sessions {
		if !ses.closing && (first < 0 || ses.expires < first) {
			first = ses.expires
		}
	}
	if first >= 0 {
		s.armExpiry(first)
	}
}

// expireDue closes the sessions whose bucket has come.
func (s *Server) expireDue() {
	if !s.enterTimer() {
		return
	}
	defer s.wg.Done()
	s.expiryArmed = false
	if s.suspended {
		s.mu.Unlock()
		return
	}
	now := int64(time.Since(s.epoch) / s.cfg.Tick)
	var due []int64
	for id, ses := range s.sessions {
		if !ses.closing && ses.expires <= now {
			due = append(due, id)
		}
	}
	slices.Sort(due)
	for _, id := range due {
		s.expire(id)
	}
	s.armNextExpiry()
	s.mu.Unlock()
	s.report()
}

// expire submits the closing of a session as the session tracker does.
func (s *Server) expire(id int64) {
	ses := s.sessions[id]
	if ses == nil || ses.closing {
		return
	}
	ses.closing = true
	s.counts.Expired++
	s.submit(&request{s: s, session: id, op: OpCloseSession, logOp: OpExpire, client: ses.client})
}

// checkSession is what every request that reaches preparation undergoes.
func (r *request) checkSession() Code {
	if r.internal {
		return CodeOK
	}
	ses := r.tracked()
	switch {
	case ses == nil || ses.closing:
		return CodeSessionExpired
	case r.c != nil && r.c.moved, !ses.heldBy(r.s):
		return CodeSessionMoved
	default:
		return CodeOK
	}
}

// tracked returns the session of a request as the server knows it that
// decides about it: in an ensemble that is the leader.
func (r *request) tracked() *session {
	if r.leader != nil {
		return r.leader.sessions[r.session]
	}
	return r.s.sessions[r.session]
}

// heldBy reports whether requests may come through s: in an ensemble, whether
// the session has not been attached elsewhere since. The first to ask owns a
// session of an earlier leader.
func (ses *session) heldBy(s *Server) bool {
	if s.member == nil || ses.owner == s {
		return true
	}
	if ses.owner == nil {
		ses.owner = s
		return true
	}
	return false
}
