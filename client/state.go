package client

import (
	"context"
	"iter"
	"sync"
	"time"
)

// State is the state of a client.
type State int

// The states of a client. Curator's SUSPENDED, LOST and RECONNECTED are
// Suspended, Lost and the Connected that follows either.
const (
	// Connecting: there is no session yet, or the last one is lost and the
	// next one is being established.
	Connecting State = iota
	// Connected: a server has accepted the session.
	Connected
	// Suspended: the connection is lost and the session is in jeopardy. It lives on
	// if the client reaches a server before its timeout. Not on ClickHouse Keeper,
	// where Lost follows at once.
	Suspended
	// Lost: the session is over and its ephemeral nodes are deleted, or about to be.
	// Connecting follows.
	Lost
	// Closed: Close was called. The last state.
	Closed
)

// String returns the name of the state in lower case.
func (s State) String() string {
	if s < Connecting || s > Closed {
		return "unknown"
	}
	return [...]string{"connecting", "connected", "suspended", "lost", "closed"}[s]
}

// StateChange is one transition.
type StateChange struct {
	State   State
	Session int64 // id of the session it is about; 0 where there is none yet
	Err     error // why, for Suspended and Lost
	At      time.Time

	// ReadOnly says of Connected that the server is cut off from its quorum, so that what it
	// shows may be arbitrarily old. It is never set without [WithReadOnly].
	ReadOnly bool

	// SessionTimeout is what the servers have granted, for Connected and Suspended. A
	// server may grant another timeout than was asked for.
	SessionTimeout time.Duration
}

// stateLog is the history of a client as a linked list. Every reader walks it at its
// own pace. So no change is dropped, and no reader delays another reader or the
// connection. Entries that all readers have passed are garbage.
type stateLog struct {
	mu   sync.Mutex // guards last; never held while anything blocks
	last *stateEntry
}

type stateEntry struct {
	change StateChange
	next   *stateEntry   // set before ready is closed
	ready  chan struct{} // closed when next is set
}

func newStateLog(now time.Time) *stateLog {
	return &stateLog{last: &stateEntry{change: StateChange{State: Connecting, At: now}, ready: make(chan struct{})}}
}

// add appends a change. The same state of the same session twice in a row counts
// once, and nothing follows Closed.
func (l *stateLog) add(ch StateChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.last.change
	if was.State == Closed || was.State == ch.State && was.Session == ch.Session {
		return
	}
	e := &stateEntry{change: ch, ready: make(chan struct{})}
	l.last.next = e
	close(l.last.ready)
	l.last = e
}

func (l *stateLog) newest() *stateEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// from yields e's change and all that follow, until ctx ends or the client is
// closed.
func (l *stateLog) from(ctx context.Context, e *stateEntry) iter.Seq[StateChange] {
	return func(yield func(StateChange) bool) {
		for {
			if !yield(e.change) || e.change.State == Closed {
				return
			}
			select {
			case <-e.ready:
				e = e.next
			case <-ctx.Done():
				return
			}
		}
	}
}
