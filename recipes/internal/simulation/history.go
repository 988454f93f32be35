package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Never is the time of what did not happen.
const Never = time.Duration(-1)

// History is what happened in one schedule. Times count from its start. While
// it is being written its methods are safe for concurrent use; what reads it
// comes later.
type History struct {
	// Timeout is the session timeout, Tick the granularity of its end at the
	// server.
	Timeout, Tick time.Duration
	// Healed is when the last fault ended, Calm when all of its consequences
	// have to be over, and Finished when the schedule was.
	Healed, Calm, Finished time.Duration
	// Lagging says that servers may answer reads from the past.
	Lagging bool

	Attempts []*Attempt
	Holds    []*Hold
	Nodes    []*Node
	Losses   []Loss
	Forces   []Force
	Moves    []Force // of participants, by hand-overs: their nodes were deleted
	Stops    []Stop
	Counts   []*Count
	Sessions map[int64]string // whose they are
	Visits   []Meeting
	Closings []*Closing
	Sights   []*Sight
	Writes   []Write
	Wrong    []string // answers of calls that were not so
	Left     []Residue

	readings readings

	mu sync.Mutex // guards all of the above while the schedule runs
}

// Attempt is one call that wanted a lock, or several at once.
type Attempt struct {
	Actor, Client, Lock string
	Locks               []string // of a multi-lock; Lock names all of them then
	Call                string   // "acquire", "try", "do", "try do", "re-enter", "downgrade"
	Recipe              string   // that called, if several share a path
	Begun, Ended        time.Duration
	ContextEnded        time.Duration // of its context, Never if it had not when the call returned
	Err                 error
	Hold                *Hold   // what it got, the first if that is several
	Holds               []*Hold // what a multi-lock got
	Outer               *Hold   // what it re-entered
	From                *Hold   // the write hold that it wanted to read in the place of
	Hopeless            bool    // it can never be granted while Outer lasts
	Asks                bool    // the servers are asked before it is refused
	Units               int     // how many permits it wanted
}

// wants reports whether a lock is, or is one of, what the call wanted.
func (a *Attempt) wants(lock string) bool { return lock == a.Lock || slices.Contains(a.Locks, lock) }

// tries reports whether the call does not wait for contenders.
func (a *Attempt) tries() bool { return a.Call == "try" || a.Call == "try do" }

// works reports whether the call lasts as long as the work under the lock.
func (a *Attempt) works() bool { return a.Call == "do" || a.Call == "try do" }

// Hold is one lock that was granted.
type Hold struct {
	Actor, Client, Lock string
	Path                string
	In                  string // the namespace of its client, as a path
	Token               int64
	Granted             time.Duration
	Deadline            time.Duration // the latest that it named
	ContextEnded        time.Duration // Never: still not at the end
	Cause               error         // of its context's end
	Leaving             time.Duration // when Release was called
	Released            time.Duration // when it returned
	ReleaseErr          error
	Nested              bool     // a hold that re-entered another one
	Stays               bool     // a hold that re-entered it has outlasted it, with the node
	Ahead               []string // older contenders that stood when it was granted
	Units, Of           int      // its share of the lock; both 0 if it is alone
	From                *Hold    // the write hold whose place it took as a reader
}

// Loss is a session that a client gave up or was told to be over.
type Loss struct {
	Client  string
	Session int64
	At      time.Duration
}

// Stop is the stop of a server that ends the sessions of its clients, as ClickHouse
// Keeper does, and closes their connections. Clients hear of it a moment later.
type Stop struct{ At, Heard time.Duration }

// Force is the deletion of a node or the end of a session from outside.
type Force struct {
	Path    string
	Session int64
	At      time.Duration
}

// Count is a number of permits that an operator gave a semaphore. Clients could read
// it from when the operator set it until the next one was set.
type Count struct {
	Lock      string
	Permits   int
	Set, Gone time.Duration // Gone: Never for the last
}

// Counted records a number of permits. set writes it and reports whether it did.
func (h *History) Counted(lock string, permits int, now func() time.Duration, set func() bool) {
	begun := now()
	if !set() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.Counts {
		if c.Lock == lock && c.Gone == Never {
			c.Gone = now()
		}
	}
	h.Counts = append(h.Counts, &Count{lock, permits, begun, Never})
}

// Write is what a holder has written with its hold's Guard, and when, in the order of all
// transactions.
type Write struct {
	Hold *Hold
	Zxid int64
}

// Closing is the end of a client amid its work.
type Closing struct {
	Client       string
	Within       time.Duration // of its context
	Begun, Ended time.Duration
	Err          error
}

// Meeting is a visit to a resource that other visitors had not left, or a grant beside other
// holds. The others still believed to hold the lock, and together it is more than the lock
// allows.
type Meeting struct {
	Lock    string
	In      []*Hold
	Entered *Hold
	At      time.Duration
}

// Role is what a node says of its owner.
type Role int

// The roles.
const (
	RolePlace  Role = iota // it waits or, when its turn has come, holds
	RoleQueue              // it waits for permits, and goes when they are made
	RolePermit             // it holds one permit
)

// Node is a contender's node, as the server's log tells.
type Node struct {
	Path, Lock string
	Role       Role
	Recipe     string // that makes such nodes, of a place
	Session    int64  // 0 for one of an operator's
	Czxid      int64
	Made, Gone time.Duration // Never: it still stands
	Given      bool          // it was deleted by its own session
	Inherited  bool          // it was deleted by a later session of its client

	// Of a permit: how many there are, and whether it came from places in the
	// queue. Also the places that stood then and were older than the last of these,
	// and whether the same transaction ended another permit, or several places. A permit
	// without a place may stand for a moment without being granted.
	Of     int
	Placed bool
	Ahead  []string
	Handed bool

	Together bool
}

// Residue is something that was left behind.
type Residue struct {
	Kind ResidueKind
	What string
}

// Sight is what an observer of an election has seen.
type Sight struct {
	Observer, Client, Lock string
	Term                   int64 // 0: no participant stands in line
	InDoubt                bool
	At                     time.Duration
	Ended                  bool // and then the observer saw no more
}

// ResidueKind is a kind of thing that can be left behind.
type ResidueKind string

// What can be left behind: before the clients are closed no contender and no
// watch may remain, afterwards no session and no goroutine either.
const (
	ResidueNode      ResidueKind = "node"
	ResidueWatch     ResidueKind = "watch"
	ResidueSession   ResidueKind = "session"
	ResidueGoroutine ResidueKind = "goroutine"
	ResidueClose     ResidueKind = "close"
	ResidueChain     ResidueKind = "chain"
)

// Begin records the start of an attempt.
func (h *History) Begin(a *Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.Ended, a.ContextEnded = Never, Never
	h.Attempts = append(h.Attempts, a)
	h.stir(a.Client, "")
}

// Granted records a hold.
func (h *History) Granted(g *Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g.ContextEnded, g.Leaving, g.Released = Never, Never, Never
	h.Holds = append(h.Holds, g)
}

// Note lets f change what has been recorded.
func (h *History) Note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// String is for people.
func (g *Hold) String() string {
	return fmt.Sprintf("%s of %s (%s, token %#x, granted at %v, ended at %v)",
		g.Lock, g.Actor, g.Path, g.Token, g.Granted, g.ContextEnded)
}

// String is for people.
func (a *Attempt) String() string {
	return fmt.Sprintf("%s %s by %s from %v to %v: %v", a.Call, a.Lock, a.Actor, a.Begun, a.Ended, a.Err)
}

// readings are the ones that go on, and the longest that are over.
type readings struct {
	now  []*Reading
	most []Reading // those above the bound
}

// Reading is what one client reads of one lock while nothing happens: the lock has no change,
// and the client makes no call and no connection.
type Reading struct {
	Client, Lock string
	Reads        int
	Begun, Ended time.Duration
}
