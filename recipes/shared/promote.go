package shared

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// underLock is the part of apply that has the lock.
//
// The lock sees the values of one caller, among which may be holds. What these spoil
// for that caller, because they are lost, is no matter of the others: it is done again
// with the values of another.
func (a *atom[T]) underLock(ctx context.Context, b *batch[T]) error {
	begun, err := time.Now(), ErrContended
	for caller := b.sponsor(); caller != nil; caller = b.sponsor() {
		within, end := a.promoted.within(ctx, caller, begun)
		err = a.locked(ctx, within, b)
		over := within.Err() != nil
		end()
		if !errors.Is(err, ErrContended) || over || caller.Err() == nil {
			break
		}
	}
	return err
}

// locked is underLock for the values of one caller. What came of the tries counts,
// whatever becomes of the release.
func (a *atom[T]) locked(ctx, within context.Context, b *batch[T]) (result error) {
	held := false
	err := a.promoted.lock(within, func(hold context.Context) error {
		held = true
		result = a.tried(ctx, hold, b, a.promoted.tries, &b.stats.PromotedTries)
		return nil
	})
	if !held {
		return fmt.Errorf("%w, and the lock was not acquired: %w", ErrContended, err)
	}
	return result
}

// within returns a context with the values of caller. It ends with ctx, and when the
// timeout since begun has passed.
func (p *promotion) within(ctx, caller context.Context, begun time.Time) (within context.Context, end func()) {
	within, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	limit := context.CancelFunc(func() {})
	if p.timeout > 0 {
		within, limit = context.WithDeadline(within, begun.Add(p.timeout))
	}
	return within, func() {
		stop()
		limit()
		cancel(nil)
	}
}

// sponsor is the context of a caller that still waits, nil if none does.
func (b *batch[T]) sponsor() context.Context {
	for _, ch := range b.changes {
		if ch.caller.Err() == nil {
			return ch.caller
		}
	}
	return nil
}
