package zkserver

import "time"

// SetSessionTimeouts changes the range into which requested timeouts are
// clamped, for handshakes from now on, re-attached sessions too: what was
// negotiated before stays until then. It models coming back to a server that
// is configured differently. The range must not be empty or negative.
func (s *Server) SetSessionTimeouts(lo, hi time.Duration) {
	s.mu.Lock()
	s.cfg.MinTimeout, s.cfg.MaxTimeout = lo, hi
	s.mu.Unlock()
}

// SetMaxConns limits the connections from one client's address, as
// maxClientCnxns does: those beyond n are accepted and closed at once. Here the
// clients of one [ClientLink] share an address. Zero, the default, means no
// limit.
func (s *Server) SetMaxConns(n int) {
	s.mu.Lock()
	s.maxConns = n
	s.mu.Unlock()
}

// crowded reports whether a new connection is one too many. The connection
// itself counts. The mutex is held.
func (s *Server) crowded(c *conn) bool {
	if s.maxConns <= 0 {
		return false
	}
	n := 0
	for other := range s.conns {
		if other.owner == c.owner {
			n++
		}
	}
	return n > s.maxConns
}

// DropLog loses the writes that are in the log and have not been applied, as a
// leader does that fails before its followers have them: they never happen.
// The connections they came by are closed without an answer; sessions that
// were being made do not exist, those that were ending live on. Zxids given
// out are not used again. It returns how many requests were lost, reads behind
// the writes included.
func (s *Server) DropLog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.pending
	s.pending = nil
	s.prep.forget()
	for _, r := range lost {
		switch {
		case r.op == OpConnect:
			delete(s.sessions, r.session)
		case r.op == OpCloseSession && s.sessions[r.session] != nil:
			s.sessions[r.session].closing = false
		}
		if r.c != nil {
			r.c.close()
		}
	}
	s.armNextExpiry()
	return len(lost)
}

// ChangeLeader does what clients see of the election of a new leader:
// connections are closed, transactions count from the next epoch, and every
// session has its full timeout again. Writes that are still in the log are
// applied before.
func (s *Server) ChangeLeader() {
	s.mu.Lock()
	for len(s.pending) > 0 {
		r := s.pending[0]
		s.pending = s.pending[1:]
		s.finish(r)
	}
	zxid := (s.prep.zxid>>32 + 1) << 32
	s.prep.zxid, s.tree.lastZxid = zxid, zxid
	s.renewSessions()
	s.mu.Unlock()
	s.CutAll()
	s.report()
}

// renewSessions gives every session its full timeout.
func (s *Server) renewSessions() {
	for _, ses := range s.sessions {
		ses.expires = s.expiryTick(ses.timeout)
	}
	s.armNextExpiry()
}
