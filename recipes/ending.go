package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/runonce"
)

// ending is how a hold ends, of one lock or of several: first its context, then
// its nodes, and both once.
type ending struct {
	of     endable
	values context.Context //nolint:containedctx // what the hold's context is made of
	outer  *outers         // nil for a hold that was acquired within no other

	released runonce.Once

	mu   sync.Mutex              // guards the rest; never held across I/O
	over error                   // why the hold has ended before it had a context
	ctx  context.Context         //nolint:containedctx // of the hold; nil until it is wanted
	stop context.CancelCauseFunc // ends ctx
}

// endable is what an ending ends.
type endable interface {
	// within returns a context that descends from what is held.
	within(ctx context.Context) context.Context
	// name is the path of the lock, or of the locks, for errors.
	name() string
	// number is the fencing token, that of the first lock of several.
	number() int64
	// err is nil while all is held.
	err() error
	// timeout is that of the session, the longest of several.
	timeout() time.Duration
	// leave gives up what e holds, and deletes the nodes if no other hold stands
	// on them. lost says why it was over before, if it was.
	leave(ctx context.Context, e *ending, lost error) error
	// confirm asks the servers whether all is held.
	confirm(ctx context.Context) error
}

// String names the lock and the token, for people who print a hold of whatever type.
func (e *ending) String() string {
	return fmt.Sprintf("hold of %s, token %d", e.of.name(), e.of.number())
}

// context returns the hold's context, which has the values of e.values. The first
// call makes the context: many a short hold needs none.
func (e *ending) context() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		own, stop := context.WithCancelCause(context.WithoutCancel(e.values))
		e.ctx, e.stop = e.of.within(own), stop
		if e.over != nil {
			stop(e.over)
		}
	}
	return e.ctx
}

// replace gives the hold another context, which descends from its own.
func (e *ending) replace(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ctx = ctx
}

// cancel ends the hold's context, unless that has ended.
func (e *ending) cancel(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ctx != nil:
		e.stop(cause)
	case e.over == nil:
		e.over = cause
	}
}

// ended is nil while the hold's context has not ended.
func (e *ending) ended() error {
	e.mu.Lock()
	ctx, over := e.ctx, e.over
	e.mu.Unlock()
	if ctx != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return over
}

// err is nil while the hold lasts.
func (e *ending) err() error {
	if err := e.ended(); err != nil {
		return err
	}
	if err := e.of.err(); err != nil {
		return err
	}
	if err := e.outer.err(); err != nil {
		e.cancel(err)
		return err
	}
	return nil
}

// release ends the hold, if it is the first call, and otherwise waits for the
// first call's result.
func (e *ending) release(ctx context.Context) error {
	ctxerr.Require(ctx)
	err, done := e.released.Do(ctx, func() error {
		begun := ctx.Err()
		lost, why := e.finish()
		//nolint:errorlint // the very error that has just ended the hold's context: ctx descends from that
		if begun == nil && ctx.Err() != nil && context.Cause(ctx) == why {
			longer, stop := e.outlived(ctx)
			defer stop()
			return e.of.leave(longer, e, lost)
		}
		return e.of.leave(ctx, e, lost)
	})
	if !done {
		return &LockError{Op: "release", Path: e.of.name(), Err: ctxerr.Ended(ctx)}
	}
	return err
}

// finish ends the hold's context, and says why. lost is why the hold was over before, or nil.
func (e *ending) finish() (lost, why error) {
	lost = e.err()
	e.outer.leave()
	why = cmp.Or(lost, ErrReleased)
	e.cancel(why) // a goroutine that waits on the context learns what Release returns
	return lost, why
}

// close is release within one session timeout.
func (e *ending) close() error {
	ctx, cancel := e.outlived(e.context())
	defer cancel()
	return e.release(ctx)
}

// outlived bounds a release whose context ends with the hold.
func (e *ending) outlived(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(e.of.timeout())
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

// confirm asks whether all is still held.
func (e *ending) confirm(ctx context.Context) error {
	err := e.err()
	if err == nil {
		said := e.of.confirm(ctx)
		if err = e.err(); err == nil || errors.Is(said, ErrLost) || errors.Is(said, ErrReleased) {
			return said
		}
	}
	return &LockError{Op: "confirm", Path: e.of.name(), Err: err}
}

// outers are the grants that an inner hold was acquired within.
type outers struct {
	grants []*grant
	stops  []func() bool // from their ends
}

// err is not nil once one of the outer holds is lost. It asks their sessions, as
// grant.err does.
func (o *outers) err() error {
	if o == nil {
		return nil
	}
	return lostAmong(o.grants)
}

// lostAmong is not nil once one of the grants is lost.
func lostAmong(grants []*grant) error {
	for _, g := range grants {
		if why := g.err(); errors.Is(why, ErrLost) {
			return lostWith(why)
		}
	}
	return nil
}

// leave stops waiting for the ends of the outer holds.
func (o *outers) leave() {
	if o != nil {
		for _, stop := range o.stops {
			stop()
		}
	}
}

// outerLossError is the loss of an inner hold.
type outerLossError struct {
	err error // why the outer hold was lost
}

// lostWith says that a hold is lost because another was, whose loss is why.
func lostWith(why error) error { return &outerLossError{why} }

// Error names the lock of the outer hold, and why that was lost.
func (e *outerLossError) Error() string {
	return ErrLost.Error() + " with the outer hold of " + strings.TrimPrefix(e.err.Error(), ErrLost.Error()+": ")
}

// Unwrap returns why the outer hold was lost.
func (e *outerLossError) Unwrap() error { return e.err }
