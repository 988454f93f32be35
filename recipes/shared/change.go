package shared

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/client"
)

// AtomicValue is the result of an operation on an atomic value, as Curator's
// AtomicValue. If the error beside it is nil, then Succeeded is false for one reason
// only: a CompareAndSet found another value.
type AtomicValue[T any] struct {
	Succeeded bool // the value was set, or read
	PreValue  T    // before the operation
	PostValue T    // after it; zero unless Succeeded
	Stats     AtomicStats

	czxid int64 // of the node that was written
}

// AtomicStats says what an operation took, as Curator's AtomicStats. The operations
// that one write carries together have the same tries.
type AtomicStats struct {
	OptimisticTries int           // without the lock
	OptimisticTime  time.Duration // that they took, with the pauses between them
	PromotedTries   int           // under the lock of PromotedToLock
	PromotedTime    time.Duration // that they took, with the wait for the lock
	Merged          int           // how many operations of this process the write carried, with this one
}

// change is one operation on an atomic value.
type change[T any] struct {
	op     string          // for errors
	caller context.Context //nolint:containedctx // its values are for the requests
	// apply computes the next value, and whether it is to be written. exists is
	// false if there was no node.
	apply  func(prev T, exists bool) (next T, write bool, err error)
	done   chan struct{}
	result AtomicValue[T] // of these two done is the guard
	err    error

	// guarded by the mutex of the atom
	batch *batch[T] // that has taken it
	sent  bool      // it is part of a write whose outcome is open
	gone  bool      // its caller waits no more
	over  bool      // err was found, and the others of the batch go on
}

// batch is changes that are applied in one write, one after the other.
type batch[T any] struct {
	changes []*change[T]
	cancel  context.CancelCauseFunc
	waiting int // callers; guarded by the mutex of the atom

	stats     AtomicStats
	born      bool // it has made the node
	looked    bool // it has read the node; else what is known is of an earlier batch
	confirmed bool // what it has read is not older than the batch
	czxid     int64
}

// take makes a batch of what is queued, and its context: that has the values of the
// first change, and ends when no caller waits. If nothing is queued, take returns nil:
// then the goroutine is no longer the one that writes.
func (a *atom[T]) take() (context.Context, *batch[T]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		a.running = false
		a.rest()
		return nil, nil
	}
	b := &batch[T]{changes: a.queue, waiting: len(a.queue)}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(a.queue[0].caller))
	b.cancel = cancel
	a.queue = nil
	for _, ch := range b.changes {
		ch.batch = b
	}
	return ctx, b
}

// evaluate applies the changes whose callers still wait to prev. It reports whether
// there is something to write. From then on these changes may come to be applied.
func (a *atom[T]) evaluate(b *batch[T], prev T, exists bool) (next T, write bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = prev
	for _, ch := range b.changes {
		ch.sent = false
		if ch.gone || ch.over {
			continue
		}
		ch.result = AtomicValue[T]{PreValue: next}
		v, change, err := ch.apply(next, exists)
		ch.err = err
		if err != nil || !change {
			continue
		}
		ch.sent = true
		ch.result.Succeeded, ch.result.PostValue = true, v
		next, exists, write = v, true, true
	}
	return next, write
}

// unsend says that a write was refused: nothing of b is open any more.
func (a *atom[T]) unsend(b *batch[T]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ch := range b.changes {
		ch.sent = false
	}
}

// takeOut takes the change out of b that has made the value which was too large to send.
// It reports whether others are left: these need not fail with err.
func (a *atom[T]) takeOut(b *batch[T], err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var last *change[T]
	for _, ch := range b.changes {
		if ch.sent {
			last = ch
		}
	}
	others := func(ch *change[T]) bool { return ch != last && !ch.gone && !ch.over }
	if last == nil || !slices.ContainsFunc(b.changes, others) {
		return false
	}
	var none T
	last.over, last.sent, last.err = true, false, a.named(last.op, err)
	last.result.Succeeded, last.result.PostValue = false, none
	return true
}

// finish tells the callers. An err says that nothing was applied, or, if it matches
// client.UnknownOutcome, that it is not known.
func (a *atom[T]) finish(b *batch[T], err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.cancel(nil)
	b.stats.Merged = len(b.changes)
	for _, ch := range b.changes {
		if err != nil && !ch.over {
			var zero T
			ch.result.Succeeded, ch.result.PostValue = false, zero
			ch.err = a.named(ch.op, err)
			if !ch.sent && client.UnknownOutcome(ch.err) {
				ch.err = a.failed(ch.op, client.OutcomeNeverSent, fmt.Errorf("nothing of it was in the write that failed: %w", err))
			}
		}
		ch.result.Stats, ch.result.czxid = b.stats, b.czxid
		close(ch.done)
	}
}

// named is err, with the name of the operation that failed.
func (a *atom[T]) named(op string, err error) error {
	var known *client.OpError
	switch {
	case errors.Is(err, ErrContended):
		return a.failed(op, client.OutcomeRefused, err)
	case errors.As(err, &known):
		return a.failed(op, known.Outcome, err)
	default:
		return a.failed(op, client.OutcomeNeverSent, err)
	}
}

// leave is called when the caller of ch waits no more, because of why. The error says
// whether ch may have been applied, or may still be.
func (a *atom[T]) leave(ch *change[T], why error) (AtomicValue[T], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-ch.done:
		return ch.result, ch.err
	default:
	}
	ch.gone = true
	outcome := client.OutcomeNeverSent
	switch b := ch.batch; b {
	case nil:
		a.queue = slices.DeleteFunc(a.queue, func(other *change[T]) bool { return other == ch })
	default:
		if b.waiting--; b.waiting == 0 {
			b.cancel(why)
		}
		if ch.sent {
			outcome = client.OutcomeUnknown
		}
	}
	return AtomicValue[T]{}, a.failed(ch.op, outcome, why)
}
