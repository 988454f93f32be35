package recipes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/runonce"
)

// MultiHold is several locks that are held as one. It is safe for concurrent
// use and must be released, also after it was lost.
type MultiHold struct {
	path   string
	holds  []*Hold
	ctx    context.Context //nolint:containedctx // it is the hold: it ends with it
	cancel context.CancelCauseFunc
	stops  []func() bool
	doubt  doubts
	seen   atomic.Pointer[sight] // nil until the hold is given, or for ever

	leaving *runonce.Once
}

// newMultiHold begins to hold n locks, which add adds. ctx gives its values,
// not its end.
func newMultiHold(ctx context.Context, path string, n int) *MultiHold {
	h := &MultiHold{path: path, holds: make([]*Hold, n), leaving: runonce.New()}
	h.ctx, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return h
}

// add makes one the hold of lock i. The hold's context, and the one that is
// returned, descend from it.
func (h *MultiHold) add(ctx context.Context, i int, one *Hold) context.Context {
	h.holds[i] = one
	h.ctx = one.grant.within(h.ctx)
	h.stops = append(h.stops, context.AfterFunc(one.Context(), func() {
		cause := context.Cause(one.Context())
		h.cancel(cause)
		h.seen.Load().lost(one.grant.lock, cause)
	}))
	if _, observed := ctx.Value(callerKey{}).(context.Context); observed {
		ctx = context.WithValue(ctx, callerKey{}, h.ctx)
	}
	return one.grant.within(ctx)
}

// lost names the first hold that has ended, nil if there is none.
func (h *MultiHold) lost() error {
	for _, one := range h.holds {
		if one == nil {
			continue
		}
		if err := one.Err(); err != nil {
			return &LockError{Path: one.grant.lock, Err: err}
		}
	}
	return nil
}

// discard ends a hold that nobody was given, of the locks added so far.
func (h *MultiHold) discard() {
	h.end(ErrReleased)
	for _, one := range h.holds {
		if one != nil {
			one.discard()
		}
	}
}

// end ends the context.
func (h *MultiHold) end(cause error) {
	for _, stop := range h.stops {
		stop()
	}
	h.cancel(cause)
}

// Context is done when any of the locks is no longer held. Its cause matches
// [ErrReleased] or [ErrLost]. Each lock is re-entered with it, but for
// semaphores, which know it and return [ErrWouldDeadlock] for what can never
// be had within it.
func (h *MultiHold) Context() context.Context { return h.ctx }

// Holds are the holds of the locks, in the order in which they were named.
// They must not be released one by one unless the multi-lock is given up.
func (h *MultiHold) Holds() []*Hold { return slices.Clone(h.holds) }

// FencingToken is that of the first lock named, and grows with every hold of
// that lock. Those of the other locks are in [MultiHold.Holds]: locks that
// were entered in one transaction have the same, permits of a semaphore and
// locks that were re-entered have their own.
func (h *MultiHold) FencingToken() int64 { return h.holds[0].FencingToken() }

// Err is nil while all locks are held. Afterwards it matches [ErrReleased] or
// [ErrLost].
func (h *MultiHold) Err() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	for _, one := range h.holds {
		if err := one.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Release ends the hold and releases all locks at once, each as
// [Hold.Release]; one that fails does not keep the others from it, and the
// error joins those of all. It may be called more than once: all calls return
// the result of the first, or their own context's end.
func (h *MultiHold) Release(ctx context.Context) error {
	ctxerr.Require(ctx)
	err, done := h.leaving.Do(ctx, func() error {
		err := h.release(ctx)
		h.seen.Load().released(err)
		return err
	})
	if !done {
		return &LockError{Op: "release", Path: h.path, Err: ctxerr.Ended(ctx)}
	}
	return err
}

// Close is [MultiHold.Release] within one session timeout. It is made for
// defer.
func (h *MultiHold) Close() error {
	ctx, cancel := h.outlived(h.ctx)
	defer cancel()
	return h.Release(ctx)
}

// release lets the locks of one session leave together, so that they cost one
// round trip.
func (h *MultiHold) release(ctx context.Context) error {
	begun := ctx.Err()
	h.end(cmp.Or(h.Err(), ErrReleased))
	if begun == nil && ctx.Err() != nil {
		var done context.CancelFunc
		ctx, done = h.outlived(ctx) // it descends from the hold's
		defer done()
	}
	errs := make([]error, len(h.holds))
	var all sync.WaitGroup
	for i, one := range h.holds {
		all.Go(func() { errs[i] = one.Release(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// outlived bounds a release whose context ends with the hold.
func (h *MultiHold) outlived(ctx context.Context) (context.Context, context.CancelFunc) {
	var longest time.Duration
	for _, one := range h.holds {
		longest = max(longest, one.grant.session.Timeout())
	}
	end := time.Now().Add(longest)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}
