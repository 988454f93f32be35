package shared

import (
	"context"
	"fmt"
)

// asked is one wait for the lock of PromotedToLock.
type asked struct {
	n      int // which one of its change
	cancel context.CancelCauseFunc
	over   chan struct{}   // closed when its hold is of no more use
	hold   context.Context //nolint:containedctx // of the lock, once it is granted
}

// ask waits for the lock in the background, with the context values of the caller of ch,
// among which may be holds. The caller holds a.mu.
func (a *atom[T]) ask(ch *change[T]) {
	within, cancel := context.WithCancelCause(context.WithoutCancel(ch.caller))
	limit := context.CancelFunc(func() {})
	if a.promoted.timeout > 0 {
		within, limit = context.WithDeadline(within, ch.wanted.Add(a.promoted.timeout))
	}
	q := &asked{n: ch.seat.asked, cancel: cancel, over: make(chan struct{})}
	ch.asked = q
	go func() { // ends when the machine recalls q, or releases its hold
		defer cancel(nil)
		defer limit()
		err := a.promoted.lock(within, func(hold context.Context) error {
			a.give(hold, ch, q)
			return nil
		})
		a.refused(ch, q, "the lock was not acquired", err)
	}()
}

// give lets the operations that want the lock have a hold of it, until the hold is of no
// more use.
func (a *atom[T]) give(hold context.Context, ch *change[T], q *asked) {
	a.mu.Lock()
	use, o := a.turns.granted(ch.seat, q.n)
	if use {
		q.hold = hold
	}
	a.obey(o)
	a.mu.Unlock()
	if !use {
		return
	}
	select {
	case <-q.over:
	case <-hold.Done():
		a.refused(ch, q, holdOver, context.Cause(hold)) // unless a batch has the hold, which then ends its tries
		<-q.over
	}
}

const holdOver = "the hold of the lock is over"

// refused says that nothing more comes of q.
func (a *atom[T]) refused(ch *change[T], q *asked, what string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	tell, o := a.turns.refused(ch.seat, q.n)
	if tell {
		a.fail(ch, contended(what, err))
	}
	a.obey(o)
}

// contended is the error of an operation that has lost its tries, and then the lock.
func contended(what string, err error) error {
	return fmt.Errorf("%w, and %s: %w", ErrContended, what, err)
}
