package client

import (
	"time"

	"github.com/docent-go/docent/client/internal/duties"
)

// RemovalState says what has become of the removal of a node.
type RemovalState int

// The states of a removal. RemovalOwed comes once and first. RemovalFailed comes
// after every try that failed. One of the others comes once, at the end.
const (
	RemovalOwed        RemovalState = iota // the client has taken it on
	RemovalFailed                          // a try failed, and another follows
	RemovalDone                            // the node is gone, or never was
	RemovalWithSession                     // the session is over, and the server deletes the node with it
	RemovalGivenUp                         // the client is closed, or no server accepts it
)

// String returns the state in words.
func (s RemovalState) String() string {
	switch s {
	case RemovalOwed:
		return "owed"
	case RemovalFailed:
		return "failed"
	case RemovalDone:
		return "done"
	case RemovalWithSession:
		return "with session"
	default:
		return "given up"
	}
}

// RemovalInfo is news of a node that the client removes in the background. Either its
// release failed, or it may have been made by a create that got no answer.
type RemovalInfo struct {
	// Path is the path of the node, with the chroot and the namespace. For a create
	// that got no answer, it is the directory in which the client looks for the node.
	Path  string
	State RemovalState
	Begun time.Time // when it was taken on
	Tries int       // so far
	Err   error     // why the newest try failed, or why the removal was given up
}

// tellRemoval tells the observer that m is in the given state.
func (c *core) tellRemoval(m *duties.Removal, state duties.State, err error) {
	hook := c.cfg.observer.Removal
	if hook == nil {
		return
	}
	info := RemovalInfo{Path: m.What, State: RemovalState(state), Begun: m.Begun, Tries: m.Tries, Err: err}
	c.teller.Tell(func() { hook(info) })
}
