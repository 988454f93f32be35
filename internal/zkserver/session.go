package zkserver

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// passwordSecret is the constant that ZooKeeper mixes into the password of a
// session. So the password is a function of the session's id.
const passwordSecret = 0xB3415C00

// sessionPassword returns the first 16 bytes of java.util.Random, seeded with the
// session's id and the secret.
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

// firstSessionID composes a session id as ZooKeeper does. The number of the server
// is in the top byte, the time in the next five, a counter in the last two.
func firstSessionID(serverID byte, now time.Time) int64 {
	ms := uint64(now.UnixMilli())
	return int64(ms<<24>>8&^(0xff<<56) | uint64(serverID)<<56)
}

// clampTimeout negotiates a session timeout.
func (s *Server) clampTimeout(ms int32) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	return min(max(d, s.cfg.MinTimeout), s.cfg.MaxTimeout)
}

// expiryTick returns the tick at which a session is over that is touched now.
// Sessions expire at the first multiple of the tick after their timeout.
func (s *Server) expiryTick(timeout time.Duration) int64 {
	return int64((time.Since(s.epoch)+timeout)/s.cfg.Tick) + 1
}

// touch puts off the expiry of a session. It reports false for a session that is
// over; the server then drops the request without an answer.
func (s *Server) touch(id int64, timeout time.Duration) bool {
	ses := s.sessions[id]
	if s.member != nil && s.member.role != roleLeading && (ses == nil || !ses.local) {
		return s.member.noteTouch(id, timeout)
	}
	if ses == nil || ses.closing {
		return false
	}
	ses.expires = s.expiryTick(timeout)
	s.armExpiry(ses.expires)
	return true
}

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

// track starts to track the session that r opens.
func (s *Server) track(r *request) {
	s.sessions[r.session] = &session{id: r.session, timeout: r.timeout, client: r.client, owner: r.s}
	s.touch(r.session, r.timeout)
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

// learnSession makes a session known to the member, if it is not known yet.
func (m *Member) learnSession(id int64, timeout time.Duration, client string) {
	if m.sessions[id] == nil {
		m.sessions[id] = &session{id: id, timeout: timeout, client: client}
	}
}

// armExpiry makes sure that the timer fires at the given tick or earlier.
func (s *Server) armExpiry(tick int64) {
	if s.suspended && !s.readsOnly() || s.closed || s.expiryArmed && s.expiryAt <= tick {
		return
	}
	if s.expiryArmed {
		s.expiryTimer.Stop() // if it has fired already, it finds nothing due
	}
	s.expiryArmed, s.expiryAt = true, tick
	at := s.epoch.Add(time.Duration(tick) * s.cfg.Tick)
	s.expiryTimer = time.AfterFunc(time.Until(at), s.expireDue)
}

// armNextExpiry sets the timer for the session that expires first. A session that
// is touched leaves the timer where it is, so the timer may fire early.
func (s *Server) armNextExpiry() {
	first := int64(-1)
	for _, ses := range s.sessions {
		if s.expirable(ses) && (first < 0 || ses.expires < first) {
			first = ses.expires
		}
	}
	if first >= 0 {
		s.armExpiry(first)
	}
}

// expirable reports whether the server may end a session when its time is over. Without a
// quorum it ends no session but its own.
func (s *Server) expirable(ses *session) bool { return !ses.closing && (ses.local || !s.readsOnly()) }

// expireDue ends the sessions whose tick has come.
func (s *Server) expireDue() {
	if !s.beginTimer() {
		return
	}
	defer s.wg.Done()
	s.expiryArmed = false
	if s.suspended && !s.readsOnly() {
		s.mu.Unlock()
		return
	}
	now := int64(time.Since(s.epoch) / s.cfg.Tick)
	var due []int64
	for id, ses := range s.sessions {
		if s.expirable(ses) && ses.expires <= now {
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

// expire submits the end of a session, as ZooKeeper's session tracker does.
func (s *Server) expire(id int64) {
	ses := s.sessions[id]
	if ses == nil || ses.closing {
		return
	}
	s.counts.Expired++
	if ses.local {
		s.endLocal(ses)
		return
	}
	ses.closing = true
	s.submit(&request{s: s, session: id, op: zoodefs.OpCloseSession, logOp: zoodefs.OpExpire, client: ses.client})
}

// endLocal ends a session that no other server knows.
func (s *Server) endLocal(ses *session) {
	s.record(&request{s: s, session: ses.id, op: zoodefs.OpExpire, client: ses.client})
	delete(s.sessions, ses.id)
	if ses.conn != nil {
		ses.conn.close()
	}
}

// checkSession checks the session of a request. Every request that reaches the
// preparation is checked.
func (r *request) checkSession() zoodefs.Code {
	if r.internal {
		return zoodefs.CodeOK
	}
	ses := r.tracked()
	switch {
	case ses == nil || ses.closing:
		return zoodefs.CodeSessionExpired
	case r.c != nil && r.c.moved, !ses.heldBy(r.s):
		return zoodefs.CodeSessionMoved
	default:
		return zoodefs.CodeOK
	}
}

// tracked returns the session of a request as the deciding server knows it. In an
// ensemble that is the leader.
func (r *request) tracked() *session {
	if r.leader != nil {
		return r.leader.sessions[r.session]
	}
	return r.s.sessions[r.session]
}

// heldBy reports whether requests of the session may come through s: in an
// ensemble, whether the session has not been attached to another server since.
// After an election the first server that asks owns the session.
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

// armSweep schedules the next look for empty containers, at a multiple of the
// interval since the start. While there are no containers, no timer runs, so that
// an idle simulation comes to rest.
func (s *Server) armSweep() {
	if s.sweepArmed || s.closed || len(s.tree.containers)+len(s.tree.ttls) == 0 {
		return
	}
	s.sweepArmed = true
	every := s.cfg.SweepEvery
	// One nanosecond after the ticks at which sessions expire. At one instant the
	// order would be left to the scheduler.
	wait := every - (time.Since(s.epoch)-time.Nanosecond)%every
	s.sweepTimer = time.AfterFunc(wait, s.sweep)
}

func (s *Server) sweep() {
	if !s.beginTimer() {
		return
	}
	defer s.wg.Done()
	s.sweepArmed = false
	if !s.stopped && !s.readOnly && (s.member == nil || s.member.role == roleLeading) {
		s.sweepContainers()
	}
	s.armSweep()
	s.mu.Unlock()
	s.report()
}

// Sweep deletes what is due now: containers that have had children and have none,
// and TTL nodes that are too old. It returns how many deletions it asked for.
func (s *Server) Sweep() int {
	s.mu.Lock()
	n := s.sweepContainers()
	s.mu.Unlock()
	s.report()
	return n
}

func (s *Server) sweepContainers() int {
	var due []string
	for path := range s.tree.containers {
		if n := s.tree.nodes[path]; n.stat.cversion > 0 && len(n.children) == 0 {
			due = append(due, path)
		}
	}
	now := s.wallMillis()
	for path := range s.tree.ttls {
		n := s.tree.nodes[path]
		if ttl := n.stat.owner & maxTTL; len(n.children) == 0 && now-n.stat.mtime > ttl {
			due = append(due, path)
		}
	}
	slices.Sort(due)
	for _, path := range due {
		s.submit(&request{s: s, op: zoodefs.OpDeleteContainer, path: path, internal: true})
	}
	return len(due)
}
