package recipes

import (
	"context"
	"time"

	"github.com/docent-go/docent/client"
)

// AnyHold is what a [Hold], a [WriteHold], a [Lease] and a [MultiHold] have in
// common: code that takes an AnyHold works under every lock. The methods are
// described at [Hold]. Before v1 methods may be added.
type AnyHold interface {
	// LockPath is the path of the lock, for people. That of a MultiHold names
	// all its locks, joined by plus signs.
	LockPath() string
	// Context is done when the hold ends, with the reason as its cause.
	Context() context.Context
	// Err is nil while the lock is held. Afterwards it matches ErrReleased or
	// ErrLost.
	Err() error
	// Deadline is the instant before which no other contender holds the lock.
	Deadline() time.Time
	// Jeopardy returns a channel that is closed while the hold is in doubt.
	Jeopardy() <-chan struct{}
	// FencingToken grows with every hold of the lock.
	FencingToken() int64
	// Confirm asks the ensemble whether the lock is held.
	Confirm(ctx context.Context) error
	// Guard applies ops in one transaction that commits only while the lock
	// is held.
	Guard(ctx context.Context, ops ...client.Op) ([]client.OpResult, error)
	// Release ends the hold.
	Release(ctx context.Context) error
	// Close is Release within one session timeout.
	Close() error
}

// LockPath is the path of the lock that is held, as it was given to the lock's
// constructor; see also [Hold.Path].
func (h *Hold) LockPath() string { return h.grant.lock }

// LockPath names the paths of the locks, joined by plus signs, as
// [InterProcessMultiLock.Path]. It is for people.
func (h *MultiHold) LockPath() string { return h.path }
