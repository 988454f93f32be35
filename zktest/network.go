package zktest

import "time"

// Freeze holds both directions of every connection, including later connections:
// the server accepts them and sends nothing. The server itself runs on, so sessions
// expire. Thaw delivers what was held.
func (s *Server) Freeze() { s.engine.Freeze() }

// Thaw undoes Freeze, and every StallReply.
func (s *Server) Thaw() { s.engine.Thaw() }

// Partition holds both directions of every connection and keeps new dials waiting,
// as a network does that drops every packet. Heal undoes it.
func (s *Server) Partition() { s.engine.Partition() }

// Heal undoes Partition. Held frames flow, and waiting dials go on.
func (s *Server) Heal() { s.engine.Heal() }

// Refuse makes dials fail with ECONNREFUSED. A TCP client is connected and its
// connection reset at once, because the port stays taken. Connections that exist go
// on.
func (s *Server) Refuse() { s.engine.Refuse() }

// HangHandshake makes the server accept connections and not answer their
// handshakes. Connections that exist go on.
func (s *Server) HangHandshake() { s.engine.HangHandshake() }

// Accept undoes Refuse and HangHandshake. Handshakes that hang are answered.
func (s *Server) Accept() { s.engine.Accept() }

// CutAll closes every connection and returns how many it closed. Sessions live on,
// and clients may come back at once.
func (s *Server) CutAll() int { return s.engine.CutAll() }

// Stop makes the server behave like a process that has ended: connections are
// closed, dials are refused, its port is free, and sessions do not expire. Resume starts
// the server again with the same data. [QuirkCloseOnStop] makes Stop end the sessions too.
func (s *Server) Stop() { s.engine.Stop() }

// Resume undoes Stop. As after a restart or a change of the leader, every session
// gets its full timeout again. The server listens on the same port as before; if another
// process has taken that, the server listens as soon as it is free.
func (s *Server) Resume() { s.engine.Resume() }

// ChangeLeader does what clients see of the election of a new leader. Connections
// are closed, transactions count from the next epoch, and every session gets its
// full timeout again. Before that, the writes that are still in the log are applied.
func (s *Server) ChangeLeader() { s.engine.ChangeLeader() }

// SlowLog sets the time that every write spends between its place in the log and
// its effect; zero makes writes immediate again. Writes that are in the log already
// keep their time.
func (s *Server) SlowLog(d time.Duration) { s.engine.SlowLog(d) }

// HoldLog keeps every write in the log until ReleaseLog: the server has accepted
// it, but it has no effect and no answer yet.
func (s *Server) HoldLog() { s.engine.HoldLog() }

// ReleaseLog undoes HoldLog.
func (s *Server) ReleaseLog() { s.engine.ReleaseLog() }

// DropLog loses the writes that are in the log and have not been applied, as when a
// leader fails before its followers have them. The writes never happen, and the
// connections that sent them are closed without an answer. A session that was being
// made does not exist; a session that was being closed lives on. Their zxids are not
// used again. DropLog returns how many requests were lost, including reads behind
// the writes.
func (s *Server) DropLog() int { return s.engine.DropLog() }

// DelayEvents makes watch events take d longer than replies do. The order within a
// connection is kept, so later replies wait for the event.
func (s *Server) DelayEvents(d time.Duration) { s.engine.DelayEvents(d) }

// JumpClock moves the wall clock, which stamps nodes and ages TTL nodes. Sessions do
// not notice.
func (s *Server) JumpClock(d time.Duration) { s.engine.JumpClock(d) }

// SetReadOnly turns the server into one that has lost its quorum and serves reads,
// or back. Connections are closed. Only clients that ask for a read-only server may
// connect to one, and it answers writes with [CodeNotReadOnly]. Their sessions are local:
// they take no zxid, and end when the server is turned back. Sessions of before are
// refused, and do not expire, until then.
func (s *Server) SetReadOnly(on bool) { s.engine.SetReadOnly(on) }

// SetSessionTimeouts changes the range into which the server clamps requested
// timeouts. It applies to handshakes from now on, also to those of sessions that
// come back; until then a session keeps what was negotiated before. So a client can
// come back to a server that is configured differently. The range must not be empty
// or negative.
func (s *Server) SetSessionTimeouts(lo, hi time.Duration) { s.engine.SetSessionTimeouts(lo, hi) }

// SetMaxConns limits the connections from one client's address, as maxClientCnxns
// does: the server accepts a connection beyond n and closes it at once. Here the
// connections of one [ClientLink] share an address. Zero, the default, means no
// limit.
func (s *Server) SetMaxConns(n int) { s.engine.SetMaxConns(n) }
