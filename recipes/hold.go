package recipes

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/docent-go/docent/client"
)

// Hold is a lock that is held. It is safe for concurrent use. Every hold must
// be released, by [Hold.Release] or [Hold.Close], also after it was lost.
type Hold struct {
	*ending

	grant *grant
}

// newHold returns the handle of a hold of g that ends with e. If the program drops
// it without a release, a warning says so: the lock stays taken then for as long as
// the client lives.
func newHold(e *ending, g *grant) *Hold {
	h := &Hold{e, g}
	runtime.SetFinalizer(h, (*Hold).dropped) // a cleanup would allocate twice
	return h
}

// answeredFor is called when the program releases the hold, so that dropped has nothing to
// say. A finalizer keeps its object, and through it the connection of the hold's session,
// for one more collection. A program whose holds come and go would grow by that.
func (h *Hold) answeredFor() {
	if h == nil { // SetFinalizer would end the process, past any recover
		panic("recipes: Release or Close of a nil Hold: the acquire returned an error, which the program has to look at first")
	}
	runtime.SetFinalizer(h, nil)
}

// dropped is called when the handle h is garbage. Nothing of the grant refers to it.
func (h *Hold) dropped() {
	g := h.grant
	if h.released.Begun() || g.ended() != nil {
		return
	}
	inner.Logger(g.c).Warn("zookeeper: a hold was dropped without a release; its lock stays taken while the client lives",
		"lock", g.lock, "node", g.Paths[0], "remedy", "call Release or Close of every hold")
}

// Context is done when the hold ends: at the latest a safety margin before
// [Hold.Deadline], with a cause that matches client.ErrLeaseExpired. Its cause
// matches [ErrReleased] or [ErrLost]. It carries the values of the context that
// was given to Acquire, but not its end. Re-enter the lock with it.
//
// If Acquire had a context of another hold, of whatever lock, this hold is lost when
// that outer hold is lost. The cause then names the lock of the outer hold. If
// the outer hold is only released, the inner one goes on until its own end. If the
// outer lock was re-entered, the inner hold follows it until its last hold is released.
func (h *Hold) Context() context.Context { return h.context() }

// Path is the path of the hold's own node.
func (h *Hold) Path() string { return h.grant.Paths[0] }

// FencingToken grows with every hold of the lock, of every client: it is the
// id of the transaction that made the hold's node (czxid). The node's sequence
// number is no token, it starts again at 0 when the directory is removed. A
// read hold in the place of a write hold has the write hold's token. Permits that are
// held at the same time may have been granted in another order than that of their tokens.
// Permits that were granted in one transaction have the same token.
// Restoring an ensemble from a backup may take tokens back.
func (h *Hold) FencingToken() int64 { return h.grant.token }

// Exclusive reports whether the lock gives one hold at a time. It is false for a
// read hold, also after a downgrade, and for the permits of a semaphore. Other
// holds stand beside such a hold, so fencing tokens cannot order their writes.
// Package fence refuses such a hold.
func (h *Hold) Exclusive() bool { return !h.grant.shared }

// Err is nil while the lock is held. Afterwards it matches [ErrReleased] or
// [ErrLost].
func (h *Hold) Err() error { return h.err() }

// Release ends the hold: first its context, then, if no other hold re-entered
// the lock, its node. It may be called from any goroutine and more than once;
// all calls return the result of the first, or their own context's end.
//
// If the lock was lost before Release, or while it ran, the error matches [ErrLost].
// After any other error the hold is over as well. Its node is then removed in the
// background, until that succeeds or the session is over. Until then others wait.
func (h *Hold) Release(ctx context.Context) error {
	h.answeredFor()
	return h.release(ctx)
}

// Close is [Hold.Release] within one session timeout. It is made for defer.
func (h *Hold) Close() error {
	h.answeredFor()
	return h.close()
}

// Deadline returns the instant before which no other contender holds the lock, by
// what is known now; heartbeats move it on. The hold's context ends the safety
// margin of the client's client.LeasePolicy earlier, unless there is better news
// until then. What else the policy assumes, and what no client can promise, is in
// docs/losing-a-lock.md. A process that was paused between looking at the
// deadline and writing still needs the fencing token.
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
func (h *Hold) Confirm(ctx context.Context) error { return h.confirm(ctx) }

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

// releaseGrace is how long Do waits for the release after its context has ended.
// What is not removed by then is removed in the background.
const releaseGrace = time.Second

// do runs fn while acquire's hold lasts.
func do[H AnyHold](ctx context.Context, acquire func(context.Context) (H, error), fn func(ctx context.Context, hold H) error) (err error) {
	if fn == nil {
		return errNoFunction
	}
	hold, err := acquire(ctx)
	if err != nil {
		return err
	}
	within := hold.Context()
	if deadline, ok := ctx.Deadline(); ok { // for functions that pass deadlines on
		var end context.CancelFunc
		within, end = context.WithDeadline(within, deadline)
		defer end()
	}
	work, cancel := context.WithCancelCause(within)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer func() {
		ended := !stop()
		if err != nil && ended && errors.Is(err, work.Err()) && !errors.Is(err, ctx.Err()) { // work's deadline and ctx's are two timers
			err = fmt.Errorf("%w: %w", ctx.Err(), &uncancelled{err})
		}
		cancel(ErrReleased)
		err = summed(err, leave(ctx, hold, ended))
	}()
	return fn(work, hold)
}

// leave releases the hold of a do with ctx. Once ctx has ended, the caller does
// not wait for long.
func leave(ctx context.Context, hold AnyHold, ended bool) error {
	if deadline, ok := ctx.Deadline(); !ended && (!ok || time.Now().Before(deadline)) {
		return hold.Close()
	}
	short, done := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
	defer done()
	return hold.Release(short)
}

// summed joins what fn returned with the error of the release. After a loss the
// error does not match the error of any context. The loss cancelled fn's context.
// A caller that tests for context.Canceled first would take the loss for its own
// cancellation.
func summed(err, released error) error {
	switch {
	case released == nil: // fn's error stays itself
		return err
	case err == nil, errors.Is(released, err): // fn returned the cause of its context, which need not be said twice
		return released
	case errors.Is(released, ErrLost):
		return fmt.Errorf("%w; the function returned: %w", released, &uncancelled{err}) // one line for a log
	default:
		return joined(err, released)
	}
}

// uncancelled matches all that its error does but the end of a context.
type uncancelled struct{ err error }

func (e *uncancelled) Error() string { return e.err.Error() }

// Is reports whether the error matches target, unless that is the end of a
// context.
func (e *uncancelled) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}

// As finds what the error wraps.
func (e *uncancelled) As(target any) bool { return errors.As(e.err, target) }
