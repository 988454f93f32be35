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
	aside  func() // called when it begins to wait for the lock; may be nil
	done   chan struct{}
	result AtomicValue[T] // of these two done is the guard
	err    error

	stats AtomicStats // of the batches before
	// guarded by the mutex of the atom
	seat   *seat[*change[T]]
	batch  *batch[T] // that it was in last
	wanted time.Time // since then it waits for the lock; zero if it does not
	asked  *asked    // its last ask for the lock
}

// batch is changes that are applied in one write, one after the other.
type batch[T any] struct {
	changes []*change[T]
	ctx     context.Context //nolint:containedctx // of the requests: the values of the first change; ends when no caller waits
	cancel  context.CancelCauseFunc
	// patience ends when no other try is to begin.
	patience context.Context //nolint:containedctx // ends with ctx, with the hold of the lock, or by hurry
	hurry    context.CancelCauseFunc
	owner    *change[T] // whose hold of the lock it has; nil without the lock

	stats     AtomicStats
	born      bool // it has made the node
	looked    bool // it has read the node; else what is known is of an earlier batch
	confirmed bool // what it has read is not older than the batch
	czxid     int64
}

// errOther ends the patience of a batch when another one goes ahead.
var errOther = errors.New("another operation of this process has the lock")

// take makes the next batch, nil if there is none.
func (a *atom[T]) take() *batch[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	seats, owner, o := a.turns.take()
	a.obey(o)
	if len(seats) == 0 {
		a.batch = nil
		a.rest()
		return nil
	}
	b := &batch[T]{}
	for _, s := range seats {
		s.who.batch = b
		b.changes = append(b.changes, s.who)
	}
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(b.changes[0].caller))
	b.patience, b.hurry = context.WithCancelCause(b.ctx)
	if owner != nil { // its caller may have left
		b.owner = owner.who
		hold := b.owner.asked.hold
		stop, cancel := context.AfterFunc(hold, func() { b.hurry(context.Cause(hold)) }), b.cancel
		b.cancel = func(why error) { stop(); cancel(why) }
	}
	a.batch = b
	return b
}

// obey does what the machine orders. The caller holds a.mu.
func (a *atom[T]) obey(o orders[*change[T]]) {
	if o.start {
		if a.idle != nil {
			a.idle.Stop()
		}
		go a.run() // ends when nobody waits for the turn, or with the callers' contexts
	}
	if o.hurry {
		a.batch.hurry(errOther)
	}
	for _, ch := range o.recall {
		ch.asked.cancel(errOther)
	}
	for _, ch := range o.release {
		close(ch.asked.over)
	}
	for _, ch := range o.ask {
		a.ask(ch)
	}
}

// evaluate applies the changes whose callers still wait to prev. It reports whether
// there is something to write. From then on these changes may come to be applied.
func (a *atom[T]) evaluate(b *batch[T], prev T, exists bool) (next T, write bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = prev
	a.turns.unsend()
	for _, ch := range b.changes {
		if !ch.seat.waits() {
			continue
		}
		ch.result = AtomicValue[T]{PreValue: next}
		v, change, err := ch.apply(next, exists)
		ch.err = err
		if err != nil || !change {
			continue
		}
		ch.seat.sent = true
		ch.result.Succeeded, ch.result.PostValue = true, v
		next, exists, write = v, true, true
	}
	return next, write
}

// unsend says that nothing of the batch in the turn is open any more.
func (a *atom[T]) unsend() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns.unsend()
}

// takeOut takes the change out of b that has made the value which was too large to send.
// It reports whether others are left: these need not fail with err.
func (a *atom[T]) takeOut(b *batch[T], err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var last *change[T]
	for _, ch := range b.changes {
		if ch.seat.sent {
			last = ch
		}
	}
	others := func(ch *change[T]) bool { return ch != last && ch.seat.waits() }
	if last == nil || !slices.ContainsFunc(b.changes, others) {
		return false
	}
	a.fail(last, err)
	return true
}

// settle ends the turn of b. An err says that nothing was applied, or, if it matches
// client.UnknownOutcome, that it is not known. If more is set, nothing was applied, and
// only the tries were used up or had to end.
func (a *atom[T]) settle(b *batch[T], err error, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	over := b.patience.Err() != nil
	b.cancel(nil)
	if more && a.promoted != nil && (b.owner == nil || over) {
		a.lost(b, err)
		return
	}
	for _, ch := range b.changes {
		switch {
		case !ch.seat.waits():
		case err != nil:
			a.fail(ch, err)
		default:
			a.tell(ch)
		}
	}
	a.obey(a.turns.finish())
}

// lost ends the turn of b, whose changes go on to want the lock. Only the one that has had
// the lock has failed with err.
func (a *atom[T]) lost(b *batch[T], err error) {
	if o := b.owner; o != nil && o.seat.waits() {
		a.fail(o, contended(holdOver, err))
	}
	for _, ch := range b.changes {
		if !ch.seat.waits() {
			continue
		}
		ch.stats.add(b.stats)
		if ch.wanted.IsZero() {
			ch.wanted = time.Now()
			if ch.aside != nil {
				ch.aside()
			}
		}
	}
	a.obey(a.turns.lost())
}

// add adds what a batch took.
func (s *AtomicStats) add(b AtomicStats) {
	s.OptimisticTries += b.OptimisticTries
	s.OptimisticTime += b.OptimisticTime
	s.PromotedTries += b.PromotedTries
}

// fail tells the caller of ch that it has failed with err.
func (a *atom[T]) fail(ch *change[T], err error) {
	var zero T
	ch.result.Succeeded, ch.result.PostValue = false, zero
	ch.err = a.named(ch.op, err)
	if !ch.seat.sent && client.UnknownOutcome(ch.err) {
		ch.err = a.failed(ch.op, client.OutcomeNeverSent, fmt.Errorf("nothing of it was in the write that failed: %w", err))
	}
	a.tell(ch)
}

// tell gives the caller of ch its result.
func (a *atom[T]) tell(ch *change[T]) {
	if ch.seat.waits() {
		ch.stats.add(ch.batch.stats)
		a.turns.tell(ch.seat)
	}
	if !ch.wanted.IsZero() {
		ch.stats.PromotedTime = time.Since(ch.wanted)
	}
	ch.stats.Merged = len(ch.batch.changes)
	ch.result.Stats, ch.result.czxid = ch.stats, ch.batch.czxid
	close(ch.done)
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
	outcome := client.OutcomeNeverSent
	if ch.seat.sent {
		outcome = client.OutcomeUnknown
	}
	o := a.turns.leave(ch.seat)
	if o.stop {
		ch.batch.cancel(why)
	}
	a.obey(o)
	return AtomicValue[T]{}, a.failed(ch.op, outcome, why)
}
