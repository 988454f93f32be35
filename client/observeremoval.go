package client

import "time"

// RemovalState says what has become of the removal of a node.
type RemovalState int

// The states of a removal. The first comes once, the second after every try that
// failed, and one of the others once, at the end.
const (
	RemovalOwed        RemovalState = iota // the client has taken it on
	RemovalFailed                          // a try failed, and another follows
	RemovalDone                            // the node is gone, or never was
	RemovalWithSession                     // the session is over, and the node goes with it
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

// RemovalInfo is news of a node that is removed in the background: that of a release
// that failed, or what a create may have left whose answer did not come.
type RemovalInfo struct {
	// Path is that of the node, or of the directory where what a create may have left
	// is looked for; with the chroot and the namespace.
	Path  string
	State RemovalState
	Begun time.Time // when it was taken on
	Tries int       // so far
	Err   error     // why the newest try failed, or why the removal was given up
}

// told tells the observer that m is in the given state.
func (r *remover) told(m *removal, state RemovalState, err error) {
	hook := r.core.cfg.observer.Removal
	if hook == nil {
		return
	}
	info := RemovalInfo{Path: m.what, State: state, Begun: m.begun, Tries: m.tries, Err: err}
	r.core.teller.tell(func() { hook(info) })
}
