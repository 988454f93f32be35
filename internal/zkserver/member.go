package zkserver

import (
	"fmt"
	"time"
)

// Role is what a member of an ensemble is at a time.
type Role int

// Roles of a member.
const (
	roleLooking   Role = iota // up, without a leader: it turns clients away
	roleFollowing             // serves, applies what its leader commits
	roleLeading               // serves, orders the writes
	roleDown                  // the process has ended
)

// String returns what ZooKeeper calls the role.
func (r Role) String() string {
	switch r {
	case roleFollowing:
		return "following"
	case roleLeading:
		return "leading"
	case roleDown:
		return "down"
	case roleLooking:
		return "looking"
	default:
		return fmt.Sprintf("role%d", int(r))
	}
}

// server is embedded by a name that keeps the field private.
type server = Server

// Member is one server of an [Ensemble]. It has the methods of a [Server]. A method
// that disturbs connections, clients or requests concerns this member alone. A
// method that changes the data goes through the leader; its code is
// [zoodefs.CodeConnectionLoss] if the member does not reach one. A Member is safe for
// concurrent use.
type Member struct {
	*server
	e  *Ensemble
	id int

	// Guarded by the ensemble's mutex.
	role    Role
	lead    *Member // while it follows or leads
	term    int64   // epoch of the last leader it has followed
	applied int     // how much of the history its tree has
	stale   bool    // its tree has transactions that the history lacks
	halted  bool    // the process stands still
	log     []entry // logged, not applied
	heard   time.Time
	alone   time.Time // since when it has had no leader

	// Of a follower: the messages from and to the leader that a cut holds back,
	// and the signs of life that the leader will hear of.
	inbox   []*request
	outbox  []func(lead *Member)
	touched map[int64]time.Duration
	lag     time.Duration
	holding bool

	// Of a leader.
	proposals []proposal
	peers     map[*Member]*peer
	checkAt   time.Time
}

// peer is a leader's view of a follower.
type peer struct {
	silent bool      // the network between them is cut
	heard  time.Time // when the leader last heard of it, if silent
}

func newMember(e *Ensemble, id int) *Member {
	m := &Member{server: newServer(e.cfg), e: e, id: id, touched: map[int64]time.Duration{}}
	s := m.server
	s.member, s.mu, s.journal, s.epoch = m, &e.mu, e.journal, e.start
	s.timetable = e.timetable
	s.rng = s.generator("", 0, streamServer)
	s.nextSession = firstSessionID(byte(id), s.wall())
	s.suspended = true
	m.alone = e.start
	return m
}

// Server returns the member as a server.
func (m *Member) Server() *Server { return m.server }

// ID returns the member's number, from 1.
func (m *Member) ID() int { return m.id }

// Host returns the name of the member in texts: "zk1" for the first.
func (m *Member) Host() string { return fmt.Sprintf("zk%d", m.id) }

// Role returns what the member is now. A member that has been cut off keeps its
// role until it notices.
func (m *Member) Role() Role {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	return m.role
}

// Serving reports whether the member serves clients. A member that has been cut off
// goes on serving for a while.
func (m *Member) Serving() bool {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	return !m.away()
}

// Leading reports whether the member takes itself for the leader.
func (m *Member) Leading() bool { return m.Role() == roleLeading }

// away reports whether the server belongs to an ensemble and has no leader.
func (s *Server) away() bool { return s.member != nil && s.member.lead == nil }

// Stop ends the member's process: its connections are closed, dials are refused,
// and the members that it can talk to notice at once. What it has logged is there
// when Resume starts it again. [QuirkCloseOnStop] makes Stop end the sessions of
// its clients first.
func (m *Member) Stop() {
	m.e.mu.Lock()
	if m.role != roleDown {
		m.proceed()
		m.closeAttached()
	}
	m.e.mu.Unlock()
	m.stop(0)
}

// Crash ends the process as Stop does, and the member loses the last n transactions
// that it has logged, applied ones too.
func (m *Member) Crash(n int) { m.stop(n) }

func (m *Member) stop(lose int) {
	m.e.mu.Lock()
	if m.role != roleDown {
		m.proceed()
		m.leave()
		m.role, m.stopped = roleDown, true
	}
	m.forgetTail(lose)
	m.e.react()
	m.e.mu.Unlock()
	m.closePort()
	m.report()
}

// Resume starts the member again after Stop or Crash. The member looks for a
// leader.
func (m *Member) Resume() {
	m.e.mu.Lock()
	if m.role == roleDown && !m.closed {
		m.role, m.stopped, m.alone = roleLooking, false, time.Now()
		m.networkChanged()
		for _, f := range m.e.members {
			// A cut may have kept a follower from noticing the end of the process.
			// It sees now that its connection was to the old process.
			if f.role == roleFollowing && f.lead == m && f.linked(m) {
				f.leave()
			}
		}
	}
	m.e.react()
	m.e.mu.Unlock()
	m.openPort()
	m.report()
}

// Lag makes the member, while it follows, apply every commit d after it hears of
// it. Zero makes it follow at once.
func (m *Member) Lag(d time.Duration) {
	m.e.mu.Lock()
	m.lag = d
	m.e.mu.Unlock()
}

// HoldCommits makes the member apply no commit until ReleaseCommits.
func (m *Member) HoldCommits() {
	m.e.mu.Lock()
	m.holding = true
	m.e.mu.Unlock()
}

// ReleaseCommits undoes HoldCommits.
func (m *Member) ReleaseCommits() {
	m.e.mu.Lock()
	m.holding = false
	m.e.react()
	m.e.mu.Unlock()
	m.report()
}

// ReleaseLog undoes [Server.HoldLog].
func (m *Member) ReleaseLog() {
	m.e.mu.Lock()
	m.logHeld = false
	m.e.react()
	m.e.mu.Unlock()
	m.report()
}

// Close stops the member for good; [Ensemble.Close] does so too.
func (m *Member) Close() error {
	m.Stop()
	return m.server.Close()
}
