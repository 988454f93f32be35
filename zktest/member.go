package zktest

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/zkserver"
)

// Role is what a member of an ensemble is at a time: it looks for a leader, follows
// one, leads, or is down.
type Role int

// String returns what ZooKeeper calls the role: "looking", "following" or "leading",
// and "down" for a member that is stopped.
func (r Role) String() string { return zkserver.Role(r).String() }

// server is embedded by a name that keeps the field private.
type server = Server

// Member is one server of an [Ensemble]. It has the methods of a [Server]. A method
// that disturbs connections, clients or requests concerns this member alone. A method
// that changes the data (Create, SetCounter, ExpireSession and so on) goes through
// the leader. It fails with [CodeConnectionLoss] if the member does not reach one. A
// Member is safe for concurrent use.
type Member struct {
	*server

	engine   *zkserver.Member
	ensemble *Ensemble
}

// ID returns the member's number, from 1.
func (m *Member) ID() int { return m.engine.ID() }

// Host returns the name by which an [EnsembleLink] knows the member: "zk1" for the
// first.
func (m *Member) Host() string { return fmt.Sprintf("zk%d", m.ID()) }

// Role returns what the member is now. A member that has been cut off keeps its role
// until it notices.
func (m *Member) Role() Role { return Role(m.engine.Role()) }

// String says which member it is, and its role: "zk1 (leading)".
func (m *Member) String() string { return fmt.Sprintf("%s (%v)", m.Host(), m.Role()) }

// Serving reports whether the member serves clients. A member that has been cut off
// goes on serving for a while.
func (m *Member) Serving() bool { return m.engine.Serving() }

// Leading reports whether the member takes itself for the leader.
func (m *Member) Leading() bool { return m.engine.Leading() }

// ChangeLeader makes the member the leader; see [Ensemble.ChangeLeader].
func (m *Member) ChangeLeader() error { return m.engine.ChangeLeader() }

// Halt makes the member's process stand still, as SIGSTOP does, or a move of its
// virtual machine. Clients and other members can connect and send, and hear nothing.
// The member does nothing by itself. The sessions that it tracks do not expire, and
// it does not notice that the other members have given it up. Continue lets it go on
// from there, and everything that is overdue happens then. A member that is down
// cannot be halted. Stop and Crash end a halt.
func (m *Member) Halt() { m.engine.Halt() }

// Continue undoes Halt. A leader that was deposed meanwhile answers reads from its
// old state for up to a tick, as a real leader does.
func (m *Member) Continue() { m.engine.Continue() }

// Stop ends the member's process: its connections are closed, dials are refused, and
// the members that it can talk to notice at once. Resume starts it again with what it
// has logged. [QuirkCloseOnStop] makes Stop end the sessions of its clients first.
func (m *Member) Stop() { m.engine.Stop() }

// Crash ends the member's process as Stop does, and the member loses the last n
// transactions that it has logged, applied ones too. So does a machine that had not
// written them to its disk. If a quorum has these transactions, the member gets
// them back from the leader after Resume. If the members that have them never come
// back, the transactions are lost for all.
func (m *Member) Crash(n int) { m.engine.Crash(n) }

// Resume starts the member again after Stop or Crash. The member looks for a leader,
// which takes the election time, and serves when it has caught up with the leader.
func (m *Member) Resume() { m.engine.Resume() }

// Close stops the member for good; [Ensemble.Close] does so too. The error is always
// nil.
func (m *Member) Close() error { return m.engine.Close() }

// Lag makes the member, while it follows, apply every commit d after it hears of
// that commit. Its clients read the past, and it answers their writes and syncs when
// it has applied them. Zero makes it follow at once. Whenever a member starts to
// follow a leader it catches up first, and a leader never lags.
func (m *Member) Lag(d time.Duration) { m.engine.Lag(d) }

// HoldCommits makes the member apply no commit until ReleaseCommits; see
// [Member.Lag].
func (m *Member) HoldCommits() { m.engine.HoldCommits() }

// ReleaseCommits undoes HoldCommits.
func (m *Member) ReleaseCommits() { m.engine.ReleaseCommits() }

// ReleaseLog undoes [Server.HoldLog].
func (m *Member) ReleaseLog() { m.engine.ReleaseLog() }

// DropLog loses the writes that the leader has logged and not committed, on all
// members that follow it, and closes the connections that sent them. It returns how
// many requests were lost; on a member that does not lead, that is none. See
// [Server.DropLog].
func (m *Member) DropLog() int { return m.engine.DropLog() }

// SetCounter presets a counter on all members; see [Server.SetCounter]. On a member
// it is a write: it takes a zxid and its place in the log.
func (m *Member) SetCounter(path string, n int32) error {
	return opError(OpSetData, path, m.engine.SetCounter(path, n))
}

// SetVersion presets a version on all members; see [Member.SetCounter].
func (m *Member) SetVersion(path string, n int32) error {
	return opError(OpSetData, path, m.engine.SetVersion(path, n))
}

// SetZxid makes the next transaction of the ensemble take the number after zxid. See
// [Server.SetZxid].
func (m *Member) SetZxid(zxid int64) error {
	last, code := m.engine.SetZxid(zxid)
	return zxidError(zxid, last, code)
}
