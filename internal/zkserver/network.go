package zkserver

import "time"

// Freeze holds both directions of every connection, those made later too: the
// server accepts and is never heard of. It lives on, so sessions expire. Thaw
// delivers what was held.
func (s *Server) Freeze() { s.holdAll(holdFrozen) }

// Thaw undoes Freeze, and every StallReply.
func (s *Server) Thaw() { s.releaseAll(holdFrozen | holdStalled) }

// Partition holds both directions of every connection and keeps new dials
// waiting, as a network does that drops every packet. Heal undoes it.
func (s *Server) Partition() {
	s.mu.Lock()
	s.partitioned = true
	s.mu.Unlock()
	s.holdAll(holdPartition)
}

// Heal undoes Partition. Held frames flow, and waiting dials go on.
func (s *Server) Heal() {
	s.mu.Lock()
	s.partitioned = false
	s.networkChanged()
	s.mu.Unlock()
	s.releaseAll(holdPartition)
}

func (s *Server) holdAll(c holdCause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held |= c
	for k := range s.links {
		k.hold(c)
	}
}

// releaseAll ends a cause for the whole server. Links that their own client
// holds for the same cause stay held.
func (s *Server) releaseAll(c holdCause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held &^= c
	for k := range s.links {
		k.release(c &^ k.owner.held)
	}
}

// Refuse makes dials fail with ECONNREFUSED. A TCP client is connected and
// reset at once, since the port stays taken. Connections that exist go on.
func (s *Server) Refuse() { s.setDoor(true, false) }

// HangHandshake makes the server accept connections and not answer their
// handshake. Connections that exist go on.
func (s *Server) HangHandshake() { s.setDoor(false, true) }

// Accept undoes Refuse and HangHandshake. Handshakes that hang are answered.
func (s *Server) Accept() { s.setDoor(false, false) }

func (s *Server) setDoor(refusing, hanging bool) {
	s.mu.Lock()
	s.refusing, s.hanging = refusing, hanging
	s.networkChanged()
	s.mu.Unlock()
}

// CutAll closes every connection. Sessions live on, and clients may come back
// at once. It returns how many connections it closed.
func (s *Server) CutAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.conns)
	for c := range s.conns {
		c.close()
	}
	return n
}

// Stop makes the server behave like a process that has ended: connections are
// closed, dials are refused, sessions do not expire. Resume starts it again
// with the same data. [QuirkCloseOnStop] makes it end the sessions too.
func (s *Server) Stop() {
	s.mu.Lock()
	s.closeAttached()
	s.stopped, s.suspended = true, true
	s.mu.Unlock()
	s.CutAll()
	s.report()
}

// Resume undoes Stop. As after a restart or a change of the leader, every
// session gets its full timeout again.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped, s.suspended = false, false
	s.renewSessions()
	s.networkChanged()
}

// SlowLog sets the time that every write spends between its place in the log
// and its effect; zero makes writes immediate again. Those in the log keep
// their time.
func (s *Server) SlowLog(d time.Duration) {
	s.mu.Lock()
	s.logDelay = d
	s.mu.Unlock()
}

// HoldLog keeps every write in the log until ReleaseLog: it is accepted, but
// has no effect and no answer yet.
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

// DelayEvents makes watch events take d longer than replies do. The order
// within a connection is kept, so later replies wait for the event.
func (s *Server) DelayEvents(d time.Duration) {
	s.mu.Lock()
	s.eventDelay = d
	s.mu.Unlock()
}

// JumpClock moves the wall clock, which stamps nodes and ages TTL nodes.
// Sessions do not notice.
func (s *Server) JumpClock(d time.Duration) {
	s.mu.Lock()
	s.wallOffset += d
	s.mu.Unlock()
}

// SetReadOnly turns the server into one that has lost its quorum and serves
// reads, or back. Connections are closed; only clients that ask for it may
// connect to a read-only server, and writes get [CodeNotReadOnly].
func (s *Server) SetReadOnly(on bool) {
	s.mu.Lock()
	s.readOnly = on
	s.mu.Unlock()
	s.CutAll()
}
