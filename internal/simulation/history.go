package simulation

import (
	"fmt"
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
	Visits   []Meeting
	Closings []*Closing
	Left     []Residue

	mu sync.Mutex // guards all of the above while the schedule runs
}

// Attempt is one call that wanted a lock.
type Attempt struct {
	Actor, Client, Lock string
	Call                string // "acquire", "try", "do", "re-enter"
	Begun, Ended        time.Duration
	ContextEnded        time.Duration // of its context, Never if it had not when the call returned
	Err                 error
	Hold                *Hold // what it got
	Outer               *Hold // what it re-entered
}

// Hold is one lock that was granted.
type Hold struct {
	Actor, Client, Lock string
	Path                string
	Token               int64
	Granted             time.Duration
	Deadline            time.Duration // the latest that it named
	ContextEnded        time.Duration // Never: still not at the end
	Cause               error         // of its context's end
	Leaving             time.Duration // when Release was called
	Released            time.Duration // when it returned
	ReleaseErr          error
	Nested              bool     // a hold that re-entered another one
	Ahead               []string // older contenders that stood when it was granted
}

// Node is a contender's node, as the server's log tells.
type Node struct {
	Path, Lock string
	Session    int64
	Czxid      int64
	Made, Gone time.Duration // Never: it still stands
	Given      bool          // it was deleted by its own session
}

// Loss is a session that a client gave up or was told to be over.
type Loss struct {
	Client  string
	Session int64
	At      time.Duration
}

// Force is the deletion of a node or the end of a session from outside.
type Force struct {
	Path    string
	Session int64
	At      time.Duration
}

// Closing is the end of a client amid its work.
type Closing struct {
	Client       string
	Within       time.Duration // of its context
	Begun, Ended time.Duration
	Err          error
}

// Meeting is a visit to a resource that another visitor had not left although
// it still believed to hold the lock.
type Meeting struct {
	Lock        string
	In, Entered *Hold
	At          time.Duration
}

// Residue is something that was left behind.
type Residue struct {
	Kind ResidueKind
	What string
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
)

// NodeMade records a contender's node.
func (h *History) NodeMade(n Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n.Gone = Never
	h.Nodes = append(h.Nodes, &n)
}

// NodesGone records the end of all nodes that match, which a session has
// deleted; 0 stands for nobody, as when their own session has ended.
func (h *History) NodesGone(at time.Duration, by int64, match func(*Node) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.Nodes {
		if n.Gone == Never && match(n) {
			n.Gone, n.Given = at, by != 0 && by == n.Session
		}
	}
}

// Standing returns the paths of the contenders of a lock that still stand, in
// the order in which they were made.
func (h *History) Standing(lock string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var paths []string
	for _, n := range h.Nodes {
		if n.Lock == lock && n.Gone == Never {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// First returns the session of the oldest contender that stands, 0 if none does.
func (h *History) First(lock string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.Nodes {
		if n.Lock == lock && n.Gone == Never {
			return n.Session
		}
	}
	return 0
}

// Begin records the start of an attempt.
func (h *History) Begin(a *Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.Ended, a.ContextEnded = Never, Never
	h.Attempts = append(h.Attempts, a)
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
