package nodes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

var (
	// ErrClosed says that Close was called, or that the client was closed. For the latter
	// it comes with client.ErrClosed.
	ErrClosed = errors.New("nodes: closed")
	// ErrRemoved says that another client has deleted a node with [StopWhenRemoved].
	ErrRemoved = errors.New("nodes: another client has deleted the node")
)

// State is the state of a [PersistentNode].
type State int

// The states.
const (
	// Absent: the node does not stand, or its session is lost. It is being made,
	// unless the object is not started or is closed.
	Absent State = iota
	// Ours: the node stands, made by this object. An ephemeral node is of the present
	// session. While only the connection is lost the state stays.
	Ours
	// Foreign: another session's node, or one of another kind, stands at the path. It
	// is left alone. As soon as it is deleted, this object makes its own.
	Foreign
	// Removed: another client has deleted the node, which stays deleted; see
	// [StopWhenRemoved].
	Removed
	// Refused: a server refuses the node, which does not stand. The error says why. The
	// object tries again, with pauses of up to 2 s. If a server refuses new data of a
	// node that stands, the state stays Ours.
	Refused
)

// String returns the state in lower case.
func (s State) String() string {
	names := [...]string{"absent", "ours", "foreign", "removed", "refused"}
	if s < 0 || int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// Status is what is known of a node.
type Status struct {
	State State
	Path  string // of the node, "" while a name with a number or a UUID is not known
	Czxid int64  // of the node that stands, 0 unless State is Ours
	Err   error  // why the node does not stand; for Ours: why the newest try failed, such as a Set, or nil
}

// same compares errors by their text: every try has an error value of its own.
func (s Status) same(as Status) bool {
	return s.State == as.State && s.Path == as.Path && s.Czxid == as.Czxid && fmt.Sprint(s.Err) == fmt.Sprint(as.Err)
}

// vain reports whether Start does not go on: a server refuses the node, or the client's
// retry policy has given up.
func (s Status) vain() bool {
	return s.State == Refused || s.State == Absent && errors.Is(s.Err, client.ErrNotConnected)
}

// Status returns what this client knows now. It asks no server. A session is over for it
// one timeout after the newest answered request was sent, also if the goroutine has not
// noticed yet. The servers may have ended the session before: a server that is cut off
// from the others answers this client until it notices that, after syncLimit times
// tickTime. So for that long Ours may be said of a node that is gone. It is no lock.
func (n *PersistentNode) Status() Status {
	if n.unmade() {
		return Status{Err: errUnmade}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now()
}

// now is the status. The caller holds n.mu.
func (n *PersistentNode) now() Status {
	if n.status.State == Ours && n.in != nil {
		if err := n.in.Err(); err != nil {
			return Status{State: Absent, Path: n.status.Path, Err: err}
		}
	}
	return n.status
}

// Changes yields the status at once, and then every newer one. It ends when ctx
// ends, the node is closed, or another client has removed the node for good. A
// reader that is slow may miss a status, never the last.
func (n *PersistentNode) Changes(ctx context.Context) iter.Seq[Status] {
	ctxerr.Require(ctx)
	if n.unmade() {
		return func(yield func(Status) bool) { yield(n.Status()) }
	}
	return func(yield func(Status) bool) {
		var last Status
		for first := true; ctx.Err() == nil; first = false {
			n.mu.Lock()
			now, changed, over := n.now(), n.changed, n.over
			n.mu.Unlock()
			if (first || !now.same(last)) && !yield(now) || over {
				return
			}
			last = now
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// Wait waits until the node stands with the newest data. It is for a node that was lost,
// or that has started with [WithLazyStart]. The error matches that of ctx and why the node
// does not stand, or [ErrClosed] or [ErrRemoved]. If there is no connection it matches
// client.ErrNotConnected and says why.
//
// Before Start, Wait waits for that too, as another goroutine may be about to call it. If
// none does, only the end of ctx or Close ends the wait. So give ctx an end.
func (n *PersistentNode) Wait(ctx context.Context) error {
	ctxerr.Require(ctx)
	if n.unmade() {
		return errUnmade
	}
	n.mu.Lock()
	gen := n.gen
	n.mu.Unlock()
	return n.await(ctx, gen, false)
}

// await waits until the data of that generation, or newer data, stands. The start does not
// wait in vain.
func (n *PersistentNode) await(ctx context.Context, gen int, start bool) error {
	for {
		n.mu.Lock()
		now, changed, over, written := n.now(), n.changed, n.over, n.written
		n.mu.Unlock()
		switch {
		case over:
			return &nodeError{n.base, now.Err}
		case now.State == Ours && written >= gen:
			return nil
		case start && now.vain():
			return &nodeError{n.base, now.Err}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &nodeError{fmt.Sprintf("%s is %v", n.base, now.State), n.missed(ctx, now.Err)}
		}
	}
}

// nodeError is the error of a call that waited, with the package's name once.
type nodeError struct {
	what string
	err  error
}

func (e *nodeError) Error() string {
	return "nodes: " + e.what + ": " + strings.TrimPrefix(e.err.Error(), "nodes: ")
}

// Unwrap returns the reason.
func (e *nodeError) Unwrap() error { return e.err }

// missed says why the node did not stand before ctx ended. known is what the status says.
func (n *PersistentNode) missed(ctx context.Context, known error) error {
	n.mu.Lock()
	started := n.started
	n.mu.Unlock()
	switch _, err := n.c.Session(ctx); {
	case !started:
		return fmt.Errorf("call Start first: %w", ctxerr.Ended(ctx))
	case known != nil:
		return fmt.Errorf("%w: %w", known, ctxerr.Ended(ctx))
	case errors.Is(err, client.ErrNotConnected):
		return err // says of every server why it was not reached, and matches the context's error
	default:
		return ctxerr.Ended(ctx)
	}
}

// tell sets the status, and wakes all callers that wait for a change.
func (n *PersistentNode) tell(state State, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := Status{State: state, Path: n.path, Err: err}
	if state == Ours {
		now.Czxid = n.k.czxid
	}
	if !n.started || n.status.same(now) && (state != Ours || n.written == n.k.wrote) {
		return
	}
	n.set(now, state == Removed || errors.Is(err, ErrClosed))
}

// set sets the status, unless the last was set already. The caller holds n.mu.
func (n *PersistentNode) set(now Status, over bool) {
	if n.over {
		return
	}
	n.status, n.in, n.over = now, nil, over
	if now.State == Ours {
		n.written = n.k.wrote
		if n.mode.ephemeral() {
			n.in = n.session
		}
	}
	close(n.changed)
	n.changed = make(chan struct{})
}
