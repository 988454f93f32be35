package seqqueue

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/inside"
)

// chain is what one client knows of one directory without asking a server: which of its
// own members stand directly behind each other. This file is its state machine. It does
// no I/O.
//
// # States
//
// A member is in one of these states. The chain's mutex guards them.
//
//	unknown  it must list the directory. It is the state of a new member without a link.
//	linked   it waits behind another member of the chain, its front, and for nothing else.
//	         The front is exclusive.
//	first    no contender ahead blocks it. It is held, or about to be.
//	over     it was first, and no hold relies on it any more. Its node may still stand.
//	left     it has given up before it was first. Its node may still stand.
//
// A member may also be broken: its hold was lost, or a read node has the place of its write
// node (a downgrade). Nothing may be concluded from the end of a broken member. So its
// followers list.
//
// # Transitions
//
//	made     (answer of the create)    new -> unknown, linked or first
//	listed   (list: none ahead blocks) unknown -> first; linked -> first in a try, which always lists
//	follow   (list: all that block are members, the nearest is exclusive, the head is first
//	         or over) unknown -> linked, or first if its front is over
//	leave    (before the delete is sent) first -> over: its followers become first;
//	         unknown, linked -> left: its followers inherit its front, or become unknown
//	granted  (gate: answer of the transaction that deleted the node) as leave. A follower
//	         whose node stood before the servers ran that transaction is gapless then.
//	break    (loss, downgrade)         followers become unknown
//	forget   (evidence is too old)     linked, first -> unknown, of this member alone
//
// # Invariants
//
//	I1  At most one exclusive member of a chain is first and not over at any time. No
//	    shared member is first at that time.
//	I2  No member waits behind a front that shares. So whatever blocks a member blocks its
//	    front, is its front, or has gone: nothing that others may share with stands between.
//	I3  A linked member becomes first only when its front, which was first, becomes over.
//	    A member becomes over only when no hold relies on it any more.
//	I4  A front knows all its followers, and a member has one front at most. So each end
//	    of a front is told, and no member waits for a front that is over or left.
//	I5  Members that are linked to each other are of one session. So their nodes end
//	    together, and the lease that bounds the hold of one bounds the hold of the other.
//
// # Why a number proves a place
//
// The number of a sequential node is the count of creates in its directory, of children
// of whatever name (PrepRequestProcessor: the parent's cversion). So if one session made
// n-1 and n in one incarnation of a directory, no child was made in between. Every
// contender that stood before n is n-1, or stood before n-1. Only a directory that was
// deleted and made again counts from 0 again. A guard tells: a data watch on the
// directory. Changes of its children do not fire that. A server applies transactions one
// at a time, in their order. It queues the events of each to the connections before it
// answers it (CommitProcessor.processWrite, in 3.5 its currentlyCommitting;
// FinalRequestProcessor, DataTree.deleteNode, ServerCnxn.process; 3.5 to 3.9). Reads of
// the session, such as the read that set the watch, keep their place among its writes. A
// follower does the same with what the leader has committed. An answer to a create may
// be read on the connection on which the guard was set. If the guard has not fired by
// then, the directory is the one in which the guard was set. The wire reads events and
// answers on one goroutine, in the order of the connection, and calls made there.
// Numbers that end one incarnation of the directory and begin in the next have different
// guards.
//
// The guard does not see one case: since 3.8.4 and 3.9.2 no event goes to a client that
// may not read the node any more. If an operator takes that right away, deletes the
// directory, makes it again and gives the right back, the guard stands.
//
// # Why a grant may come before the delete
//
// As long as the node of a member that is over stands, its follower's node stands as well.
// Every contender of another client waits behind one of these two nodes. When the first is
// gone, the follower is the first. So at each moment one member alone counts as first: the
// front before leave, its follower after it. If the delete fails, other clients wait
// longer, and none overtakes.
type chain struct {
	key    chainKey
	window *window

	uses int // calls and members; guarded by chains.mu

	mu      sync.Mutex // guards the rest, and the positions of members; never held across I/O
	guard   inside.Guard
	arming  bool               // a goroutine sets a new guard
	busy    bool               // there was a member a short time ago
	joining int                // acquires that are about to make their nodes
	rested  time.Time          // when the chain became idle
	missed  bool               // the newest member was not linked by its number
	tail    *Member            // the newest member that was made while a guard stood, or nil
	members map[string]*Member // by the names of their nodes, until these are deleted
}

// state is that of a member; see chain.
type state int

const (
	unknown state = iota
	linked
	first
	over
	left
)

// position is what a chain knows of one member.
type position struct {
	chain     *chain // nil if the queue has none
	shared    bool   // members that are shared do not block each other
	state     state
	broken    bool
	gapless   bool // first, and its node stood before that of its front was deleted
	number    int64
	guard     inside.Guard  // that stood when the node was made, or nil
	front     *Member       // of a linked member
	followers []*Member     // whose front it is
	woken     chan struct{} // has a token after a change of state; nil until the member waits
	inWindow  bool          // it counts in the window
	usesChain bool          // until its node is deleted
	suspected bool          // a warning says that a member may wait for itself behind this one

	since    time.Time // when its node was known
	blockers int       // contenders that blocked it when it listed last
}

// made is called with the answer of the create, on the goroutine that reads from the
// connection. It links m to the newest member, if the numbers say that m is right behind.
func (c *chain) made(m *Member, path string, connection uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	node, numeral := parse(m.Node.Tag, path[strings.LastIndexByte(path, '/')+1:])
	again := m.Path != "" // the create was repeated: identify ends what was linked to the first node
	if numeral != number || m.state != unknown || again || c.guard == nil || !c.guard.Holds(connection) {
		c.missed = true
		return
	}
	m.Node, m.Path, m.number, m.guard = node, path, node.Sequence(), c.guard
	before := c.tail
	c.tail = m
	if before != nil && before.guard == m.guard && before.number+1 == m.number {
		m.standRightBehind(before)
	}
	c.missed = m.state == unknown
}

// identify is called when the create has returned. It says which node m has.
func (m *Member) identify(node Node, path string, czxid int64) {
	now := time.Now()
	c := m.chain
	if c == nil {
		m.Node, m.Path, m.Czxid, m.seen = node, path, czxid, now
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Path != path { // made has told of no node, or of one that is gone: the create was repeated
		m.forget()
		m.unlinkFollowers()
	}
	m.Node, m.Path, m.Czxid, m.seen, m.since = node, path, czxid, now, now
	c.members[node.Name] = m
}

// forget deletes what is known of m's position. The caller holds the chain's mutex.
func (m *Member) forget() {
	m.unlink()
	m.state, m.gapless = unknown, false
}

// standRightBehind links m to front, unless that tells nothing about m's turn. One guard does
// not mean one session: each session counts its connections from 1, and the guard of a lost
// one may stand for a moment. The caller holds the chain's mutex.
func (m *Member) standRightBehind(front *Member) {
	switch {
	case front.broken || front.state == left || front.Session.ID() != m.Session.ID():
	case !front.shared:
		m.standBehind(front)
	case !m.shared || front.state == unknown: // others may share the lock with the front
	case front.state == linked: // what blocks one blocks the other
		m.linkTo(front.front)
	default:
		m.state = first
	}
}

// standBehind links m to an exclusive front, or makes it first if the front is over. The
// caller holds the chain's mutex.
func (m *Member) standBehind(front *Member) {
	if front.state == over {
		m.state = first
		return
	}
	m.linkTo(front)
}

// linkTo makes m wait for front. The caller holds the chain's mutex.
func (m *Member) linkTo(front *Member) {
	m.state, m.front = linked, front
	front.followers = append(front.followers, m)
}

// unlink takes m out of the followers of its front. The caller holds the chain's mutex.
func (m *Member) unlink() {
	if m.front != nil {
		m.front.followers = slices.DeleteFunc(m.front.followers, func(f *Member) bool { return f == m })
		m.front = nil
	}
}

// listed notes that a list shows no contender ahead that blocks m.
func (c *chain) listed(m *Member) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.unlink()
	m.state, m.gapless = first, false
}

// blocked notes how many contenders block m.
func (c *chain) blocked(m *Member, blockers int) {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	m.blockers = blockers
}

// follow links m behind the contender with the given name. list has shown that contender as
// the nearest that blocks m, and how many block m. follow reports false if the contender is
// no member whose end can be m's turn.
//
// The front must be exclusive: beside one that is shared, others may be held. All blockers
// must be members, up to one that is first, and list must show all of these.
// For a reader of another client may stand between members. So may a node to which an
// operator has given a number. Such a node must not be counted for a member's node that was
// deleted.
func (c *chain) follow(m *Member, name string, blockers int, list []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	front := c.members[name]
	if front == nil || front.shared || front.broken || front.Session.ID() != m.Session.ID() {
		return false
	}
	head, known := front, 1
	for ; head.state == linked && slices.Contains(list, head.Node.Name); head = head.front {
		known++
	}
	if known != blockers || head.state != first && head.state != over || !slices.Contains(list, head.Node.Name) {
		return false
	}
	m.standBehind(front)
	return true
}

// leave notes that no hold relies on m any more, or that m has given up. It is called before
// the delete of m's node is sent.
func (c *chain) leave(m *Member) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(m)
}

// granted is leave of a member whose node a transaction has deleted, which was to grant it.
// behind is the member that [Member.Next] returned before the servers ran that transaction,
// or nil.
func (c *chain) granted(m, behind *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	handed := behind != nil && behind.front == m && m.state == first
	c.end(m)
	if handed {
		behind.gapless = true
	}
}

// end is leave. The caller holds c.mu.
func (c *chain) end(m *Member) {
	was, front, followers := m.state, m.front, m.followers
	if was == over {
		return
	}
	m.unlink()
	m.followers, m.state = nil, left
	if was == first {
		m.state = over
	}
	for _, f := range followers {
		f.front, f.state = nil, unknown
		switch was { //nolint:exhaustive // an unknown one tells its followers nothing
		case first:
			f.state = first
		case linked:
			f.linkTo(front)
		}
		f.wake()
	}
}

// breakOff says that nothing may be concluded from the end of m.
func (c *chain) breakOff(m *Member) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.broken = true
	c.leaveWindow(m)
	m.unlinkFollowers()
}

// unlinkFollowers makes the followers of m list the directory. The caller holds the chain's
// mutex.
func (m *Member) unlinkFollowers() {
	for _, f := range m.followers {
		f.front, f.state = nil, unknown
		f.wake()
	}
	m.followers = nil
}

// forget deletes what is known of m's position, so that m lists the directory.
func (c *chain) forget(m *Member) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.forget()
}

// forgetAll makes every member that waits in the chain list the directory.
func (c *chain) forgetAll() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = nil
	for _, m := range c.members {
		if m.state == linked {
			m.forget()
			m.wake()
		}
	}
}

// leaveWindow makes room for another member, unless m has left the window before. The caller
// holds c.mu.
func (c *chain) leaveWindow(m *Member) {
	if m.inWindow {
		m.inWindow = false
		c.window.leave()
	}
}

// wake wakes m, if it waits.
func (m *Member) wake() {
	select {
	case m.woken <- struct{}{}:
	default: // there is a token, or m does not wait yet
	}
}
