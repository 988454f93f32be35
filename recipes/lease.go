package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// take begins to hold a place, as soon as the session is known to be good for
// some time. On error the nodes of the place are being removed.
func take(ctx context.Context, p place) (*Hold, error) {
	g := newGrant(ctx, p)
	var err error
	if g.holding, err = inner.Hold(ctx, g.session, g.expire, g.nodes...); err == nil {
		var h *Hold
		if h, err = g.first(); err == nil {
			return h, nil
		}
	} else if errors.Is(err, zk.ErrNoNode) {
		err = ErrNodeDeleted
	}
	g.end()
	g.drop()
	return nil, err
}

// end takes down what a grant has set up.
func (g *grant) end() {
	g.watch.Stop()
	g.cancel(ErrReleased)
	g.unbind()
	if g.holding != nil {
		g.holding.Done()
	}
}

// expire ends all holds of the grant because of its lease.
func (g *grant) expire(why error) {
	if errors.Is(why, zk.ErrNoNode) {
		why = ErrNodeDeleted
	}
	g.lose(why)
}

// Deadline returns the instant before which nobody else holds the lock, by
// what is known now; heartbeats move it on. The hold's context ends the safety
// margin of the client's client.LeasePolicy earlier, unless there is better
// news until then. What else the policy assumes, and what no client can
// promise, is in docs/losing-a-lock.md: a process that was paused between
// looking at the deadline and writing still needs the fencing token.
//
// It is zero once the hold is over.
func (h *Hold) Deadline() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	return h.grant.holding.Deadline()
}

// Jeopardy returns a channel that is closed while the hold is in doubt: the
// connection is down, or a heartbeat was not answered in time. The hold lasts
// until its context ends, but this is no time to begin anything long. Once the
// doubt is over Jeopardy returns a new channel.
func (h *Hold) Jeopardy() <-chan struct{} { return h.grant.holding.Jeopardy() }

// Confirm asks the ensemble whether the lock is held. After nil it was, at
// some moment during the call, and the deadline has moved on. It takes one
// write that a quorum agrees to.
//
// The error matches [ErrLost] or [ErrReleased] if the hold is over. After any
// other error, that of ctx for one, the hold is as it was and nothing new is
// known.
func (h *Hold) Confirm(ctx context.Context) error {
	g := h.grant
	fail := func(err error) error { return &LockError{Op: "confirm", Path: g.lock, Err: err} }
	if err := h.Err(); err != nil {
		return fail(err)
	}
	err := g.holding.Confirm(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		g.lose(ErrNodeDeleted)
	}
	if over := h.Err(); over != nil {
		return fail(over)
	}
	if err != nil {
		return fail(notOver(err))
	}
	return nil
}

// notOver keeps an error of a hold that is not over, or of a transaction that
// may have been applied before it was, from saying that it is: a ctx that ended
// with a hold, this or another, has that for its cause.
func notOver(err error) error {
	if errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) {
		return &causeless{err}
	}
	return err
}

// causeless matches all that its error does but the end of a hold.
type causeless struct{ err error }

func (e *causeless) Error() string { return e.err.Error() }

// Is reports whether the error matches target, unless that is the end of a
// hold.
func (e *causeless) Is(target error) bool {
	return target != ErrLost && target != ErrReleased && errors.Is(e.err, target)
}

// As finds what the error wraps.
func (e *causeless) As(target any) bool { return errors.As(e.err, target) }
