package zkserver

import (
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Freeze holds both directions of every connection, including later ones. Dials
// succeed.
func (s *Server) Freeze() { s.holdAll(pipe.HoldFrozen) }

// Thaw undoes Freeze, and every stalled reply.
func (s *Server) Thaw() { s.releaseAll(pipe.HoldFrozen | pipe.HoldStalled) }

// Partition holds both directions of every connection and keeps new dials waiting.
func (s *Server) Partition() {
	s.mu.Lock()
	s.partitioned = true
	s.mu.Unlock()
	s.holdAll(pipe.HoldPartition)
}

// Heal undoes Partition.
func (s *Server) Heal() {
	s.mu.Lock()
	s.partitioned = false
	s.networkChanged()
	s.mu.Unlock()
	s.releaseAll(pipe.HoldPartition)
}

func (s *Server) holdAll(c pipe.HoldCause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held |= c
	for k := range s.links {
		k.hold(c)
	}
}

// releaseAll ends a cause for the whole server. If a client's own link is held for
// the same cause, it stays held.
func (s *Server) releaseAll(c pipe.HoldCause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held &^= c
	for k := range s.links {
		k.release(c &^ k.owner.held)
	}
}

// Refuse makes dials fail with ECONNREFUSED. A TCP client is connected and its
// connection reset at once.
func (s *Server) Refuse() { s.setDoor(true, false) }

// HangHandshake makes the server accept connections and not answer their
// handshakes.
func (s *Server) HangHandshake() { s.setDoor(false, true) }

// Accept undoes Refuse and HangHandshake.
func (s *Server) Accept() { s.setDoor(false, false) }

func (s *Server) setDoor(refusing, hanging bool) {
	s.mu.Lock()
	s.refusing, s.hanging = refusing, hanging
	s.networkChanged()
	s.mu.Unlock()
}

// CutAll closes every connection and returns how many it closed. Sessions live on.
func (s *Server) CutAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.conns)
	for c := range s.conns {
		c.close()
	}
	return n
}

// Stop makes the server behave like a process that has ended. [QuirkCloseOnStop]
// makes Stop end the sessions too.
func (s *Server) Stop() {
	s.mu.Lock()
	s.closeAttached()
	s.stopped, s.suspended = true, true
	s.mu.Unlock()
	s.closePort()
	s.CutAll()
	s.report()
}

// closeAttached ends the sessions that are connected here, as the Stop of a
// server with QuirkCloseOnStop does. The mutex is held.
func (s *Server) closeAttached() {
	if !s.cfg.has(QuirkCloseOnStop) || s.stopped || s.away() {
		return
	}
	for _, id := range sortedKeys(s.sessions) {
		if ses := s.sessions[id]; ses.conn != nil && !ses.closing {
			s.submit(&request{s: s, session: id, op: zoodefs.OpCloseSession, client: ses.client})
		}
	}
}

// Resume undoes Stop. Every session gets its full timeout again.
func (s *Server) Resume() {
	s.mu.Lock()
	s.stopped, s.suspended = false, false
	s.renewSessions()
	s.networkChanged()
	s.mu.Unlock()
	s.openPort()
}

// SlowLog sets the time that every write spends in the log. Writes that are in the
// log already keep their time.
func (s *Server) SlowLog(d time.Duration) {
	s.mu.Lock()
	s.logDelay = d
	s.mu.Unlock()
}

// HoldLog keeps every write in the log until ReleaseLog.
func (s *Server) HoldLog() {
	s.mu.Lock()
	s.logHeld = true
	s.mu.Unlock()
}

// ReleaseLog undoes HoldLog.
func (s *Server) ReleaseLog() {
	s.mu.Lock()
	s.logHeld = false
	s.armLog()
	s.mu.Unlock()
}

// DelayEvents makes watch events take d longer than replies do.
func (s *Server) DelayEvents(d time.Duration) {
	s.mu.Lock()
	s.eventDelay = d
	s.mu.Unlock()
}

// JumpClock moves the wall clock. Sessions do not use it.
func (s *Server) JumpClock(d time.Duration) {
	s.mu.Lock()
	s.wallOffset += d
	s.mu.Unlock()
}

// SetReadOnly turns the server into one that serves reads only, or back. Connections are
// closed. Local sessions end with it, and the others get their full timeout again.
func (s *Server) SetReadOnly(on bool) {
	s.CutAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly = on; on {
		return
	}
	s.dropLocal()
	if !s.suspended {
		s.renewSessions()
	}
}

// dropLocal ends all local sessions and their connections. The mutex is held.
func (s *Server) dropLocal() {
	for _, id := range sortedKeys(s.sessions) {
		if ses := s.sessions[id]; ses.local {
			if ses.conn != nil {
				ses.conn.close()
			}
			delete(s.sessions, id)
		}
	}
}

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
