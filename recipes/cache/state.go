package cache

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// Phase is what a cache is doing.
type Phase int

// The phases.
const (
	// Syncing: the tree has not been read yet. The snapshot is empty.
	Syncing Phase = iota
	// Synced: the cache hears of every change, and none has waited for its snapshot for
	// longer than a second, or than three rounds of reads.
	Synced
	// Stale: the cache cannot hear of changes, has not caught up yet, or cannot read as
	// fast as the nodes change. The last snapshot stays readable.
	Stale
)

// String returns the phase in lower case.
func (p Phase) String() string {
	if p < Syncing || p > Stale {
		return "unknown"
	}
	return [...]string{"syncing", "synced", "stale"}[p]
}

// State is the state of a cache.
//
// Synced is said of a connection that stands. A connection that is cut without a sign
// is noticed after up to two thirds of the session timeout. Until then the snapshot
// may be that old although the state is Synced; Wait tells, as it asks the servers.
type State struct {
	Phase Phase
	// Since is when the cache has noticed that it is in this phase.
	Since time.Time
	// Err is why the cache is Stale or still Syncing, if that is known. It is
	// [client.ErrNotConnected] with the end of the connection or the session, a
	// [*LimitError], an answer of the servers, that changes come too fast, or [ErrClosed].
	Err error
}

// String is for logs.
func (s State) String() string {
	if s.Err != nil {
		return fmt.Sprintf("%v since %s: %v", s.Phase, s.Since.Format(time.RFC3339), s.Err)
	}
	return fmt.Sprintf("%v since %s", s.Phase, s.Since.Format(time.RFC3339))
}

// version is what the goroutine of a cache publishes: a snapshot and a state.
type version[V any] struct {
	Snapshot[V]

	state      State
	cause      Cause // of its difference to the version before
	connection int   // the connection on which it was synced
	seq        int   // counts the versions that a reader can tell apart
	sums       sums  // for observers
	over       bool
	superseded chan struct{} // closed when there is a newer version
}

// at is the state of v, seen by a client that stands like that. It is not Synced
// while the goroutine of the cache has yet to notice that the connection is gone.
func (v *version[V]) at(now inside.Contact) State {
	s := v.state
	if s.Phase == Synced && (!now.Connected || now.Connection != v.connection) {
		s = State{Phase: Stale, Since: now.Since, Err: unconnected(now)}
	}
	if s.Phase != Synced && s.Err == nil {
		s.Err = unconnected(now)
	}
	return s
}

// unconnected is the error of a client without a connection: [client.ErrNotConnected], and how
// the connection was lost.
func unconnected(now inside.Contact) error {
	switch {
	case now.Connected:
		return now.Err
	case now.Err == nil:
		return client.ErrNotConnected
	default:
		return fmt.Errorf("%w: %w", client.ErrNotConnected, now.Err)
	}
}
