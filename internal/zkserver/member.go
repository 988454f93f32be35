package zkserver

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
)

// Ensemble is several servers over one log: a leader that orders the writes, and
// followers that apply them, possibly late. Its members are numbered from 1;
// package zktest checks the numbers. All methods are safe for concurrent use. A
// method that changes something returns when the change is made. The consequences
// may come later: see [Ensemble.AwaitLeader].
type Ensemble struct {
	cfg   config
	start time.Time // ticks are counted from here
	wg    sync.WaitGroup

	// mu is the mutex of all members. It guards the rest.
	mu        sync.Mutex
	journal   *journal
	timetable *pipe.Timetable
	members   []*Member
	cut       map[[2]int]bool // from, to
	history   []committed
	term      int64   // epoch of the newest leader
	heir      *Member // the member that shall win the next election; nil for the best

	timer   *time.Timer
	timerAt time.Time // zero while no timer is set
	beatAt  time.Time // when followers tell the leader of signs of life; zero if there are none
	electAt time.Time // when members agree on a leader; zero if they cannot
	changed chan struct{}
	closed  bool
}

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

// committed is a transaction that a quorum has, with what a member that was away
// needs to apply it too.
type committed struct {
	txn     *txn
	timeout time.Duration // of the session it opens
	client  string
}

// proposal is a write in the leader's log, or a request without a transaction that
// waits for the writes before it.
type proposal struct {
	r   *request
	due time.Time
}

// entry is a proposal in a member's own log. The member applies it when it knows of
// the commit and its lag has passed.
type entry struct {
	r     *request
	known bool
	due   time.Time
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

// aloneBefore is how long a member looks for a leader before it serves reads, if that is
// more than a tick.
const aloneBefore = 2 * time.Second

// readsOnly reports whether the server serves reads to clients that ask for no more. In an
// ensemble that is a member without a leader. The mutex is held.
func (s *Server) readsOnly() bool {
	m := s.member
	return s.readOnly || m != nil && s.cfg.ReadOnlyMode && m.role == roleLooking &&
		time.Since(m.alone) >= max(s.cfg.Tick, aloneBefore)
}

// majority returns how many members make a quorum.
func (e *Ensemble) majority() int { return len(e.members)/2 + 1 }

// notify wakes the callers of AwaitLeader.
func (e *Ensemble) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// reaches reports whether what m sends gets to o.
func (m *Member) reaches(o *Member) bool {
	return m.runs() && o.runs() && !m.e.cut[[2]int{m.id, o.id}]
}

// runs reports whether the member's process is there and not halted.
func (m *Member) runs() bool { return m.role != roleDown && !m.halted }

// linked reports whether two members can talk to each other.
func (m *Member) linked(o *Member) bool { return m.reaches(o) && o.reaches(m) }

// leads reports whether m still leads f, which follows it or is m itself.
func (m *Member) leads(f *Member) bool { return m.role == roleLeading && m.term == f.term }

// reachesLeader reports whether the member and its leader can talk to each other.
func (m *Member) reachesLeader() bool { return m.lead != nil && m.linked(m.lead) }

// hearsLeader reports whether the messages of the leader get to the member.
func (m *Member) hearsLeader() bool { return m.lead != nil && m.lead.reaches(m) }

// followers returns the members that follow this leader, in order, cut off or not.
func (m *Member) followers() []*Member {
	var out []*Member
	for _, f := range m.e.members {
		if f.role == roleFollowing && f.lead == m && f.term == m.term {
			out = append(out, f)
		}
	}
	return out
}

// inSync reports whether a majority of the members with these numbers follow the leader m,
// or are m. A cut that m has not noticed does not count.
func (m *Member) inSync(ids []int64) bool {
	n := 0
	for _, f := range append(m.followers(), m) {
		if slices.Contains(ids, int64(f.id)) {
			n++
		}
	}
	return n > len(ids)/2
}

// hasQuorum reports whether enough members log what this leader proposes.
func (m *Member) hasQuorum() bool {
	n := 1
	for _, f := range m.followers() {
		if m.linked(f) {
			n++
		}
	}
	return n >= m.e.majority()
}
