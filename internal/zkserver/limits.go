package zkserver

import (
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// SetSessionTimeouts changes the range into which the server clamps requested
// timeouts, for handshakes from now on.
func (s *Server) SetSessionTimeouts(lo, hi time.Duration) {
	s.mu.Lock()
	s.cfg.MinTimeout, s.cfg.MaxTimeout = lo, hi
	s.mu.Unlock()
}

// SetMaxConns limits the connections of one [ClientLink]. Zero means no limit.
func (s *Server) SetMaxConns(n int) {
	s.mu.Lock()
	s.maxConns = n
	s.mu.Unlock()
}

// crowded reports whether a new connection is above the limit. The connection
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

// DropLog loses the writes that are in the log and have not been applied, and the
// reads behind them. It returns how many requests were lost. Their connections are
// closed and their zxids are not used again.
func (s *Server) DropLog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.pending
	s.pending = nil
	s.prep.forget()
	for _, r := range lost {
		switch {
		case r.op == zoodefs.OpConnect:
			delete(s.sessions, r.session)
		case r.op == zoodefs.OpCloseSession && s.sessions[r.session] != nil:
			s.sessions[r.session].closing = false
		}
		if r.c != nil {
			r.c.close()
		}
	}
	s.armNextExpiry()
	return len(lost)
}

// ChangeLeader does what clients see of an election: connections are closed,
// transactions count from the next epoch, and every session gets its full timeout
// again. The writes in the log are applied first.
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
