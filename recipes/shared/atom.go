package shared

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/retry"
)

// atom is the node of an atomic value and the one goroutine that writes it.
//
// Operations that come while a write is under way wait, and go together in the next
// one. Each is applied to what the one before it has left, and has its own value
// before and after. So however many goroutines add, the process sends one write at
// a time. Which operations go when is the decision of turns.
type atom[T any] struct {
	node[T]

	recipe string // the type, for the observer

	mu    sync.Mutex // guards what follows
	turns turns[*change[T]]
	batch *batch[T] // in the turn, nil if none is

	// These belong to run. While it does not run the mutex guards them.
	mark  *mark         // nil if there is none
	known *Versioned[T] // what the node held last, as long as mark stands
	idle  *time.Timer
}

// lingering is how long the mark stays after the last operation. An operation that
// comes within it needs no new one.
const lingering = time.Second

var errReplaced = errors.New("the node was deleted and made again, and what was meant for the old one was written to the new one")

var errVersionAny = errors.New("the version of the node has come to -1, which would stand for any: while no other client writes, use ForceSet once")

// do applies f to the value. The error is a *client.OpError.
func (a *atom[T]) do(ctx context.Context, op string, f func(prev T, exists bool) (T, bool, error)) (AtomicValue[T], error) {
	return a.doAside(ctx, op, f, nil)
}

// doAside is do. It calls aside, if that is not nil, when the operation begins to wait for
// the lock.
func (a *atom[T]) doAside(ctx context.Context, op string, f func(prev T, exists bool) (T, bool, error), aside func()) (AtomicValue[T], error) {
	ctxerr.Require(ctx)
	ctx, seen := a.observe(ctx, op)
	ch := &change[T]{op: op, caller: ctx, apply: f, aside: aside, done: make(chan struct{})}
	result, err := a.through(ctx, ch)
	seen(result.Stats, result.Succeeded, err)
	return result, err
}

func (a *atom[T]) through(ctx context.Context, ch *change[T]) (AtomicValue[T], error) {
	if ctx.Err() != nil {
		return AtomicValue[T]{}, a.failed(ch.op, client.OutcomeNeverSent, ctxerr.Ended(ctx))
	}
	ch.seat = &seat[*change[T]]{who: ch}
	a.mu.Lock()
	a.obey(a.turns.arrive(ch.seat))
	a.mu.Unlock()
	select {
	case <-ch.done:
		return ch.result, ch.err
	case <-ctx.Done():
		return a.leave(ch, a.ended(ctx))
	}
}

// run applies what has the turn until nothing has.
func (a *atom[T]) run() {
	for b := a.take(); b != nil; b = a.take() {
		more, err := a.apply(b)
		a.settle(b, err, more)
	}
}

// rest begins the time after which an idle atom deletes its mark.
func (a *atom[T]) rest() {
	if a.mark == nil {
		return
	}
	if a.idle == nil {
		a.idle = time.AfterFunc(lingering, a.tidy)
		return
	}
	a.idle.Reset(lingering)
}

// tidy deletes the mark of an idle atom.
func (a *atom[T]) tidy() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turns.turn == resting {
		a.abandonMark()
	}
}

// abandonMark deletes the mark in the background. Without the mark, what is known may belong to a deleted
// node.
func (a *atom[T]) abandonMark() {
	if a.mark != nil {
		a.mark.abandon()
	}
	a.mark, a.known = nil, nil
}

// apply tries to commit a batch as long as the policy allows and its patience lasts,
// while other clients write in between. more says that nothing was written, and that
// only the tries, or the patience, have come to an end.
func (a *atom[T]) apply(b *batch[T]) (more bool, err error) {
	if a.mark == nil {
		a.known = nil
	}
	begun := time.Now()
	if b.owner != nil {
		return a.tried(b, a.promoted.tries, &b.stats.PromotedTries)
	}
	more, err = a.tried(b, a.tries, &b.stats.OptimisticTries)
	b.stats.OptimisticTime = time.Since(begun)
	return more, err
}

// renewals is how often in one try an atom makes its mark again.
const renewals = 10

func (a *atom[T]) tried(b *batch[T], policy retry.Policy, count *int) (more bool, err error) {
	var final error // says what is known of the outcome, whatever became of patience
	err = retry.Do(b.patience, policy, func(context.Context) error {
		*count++
		for round := 0; ; round++ {
			err := a.try(b.ctx, b)
			switch {
			case err == nil:
				return nil
			case errors.Is(err, ErrContended):
				a.known = nil
				if !b.looked { // the other client may have written long before
					continue
				}
				return err
			}
			a.abandonMark()
			renew := again(err) || missing(err)
			if !renew || b.ctx.Err() != nil || round == renewals {
				final = err
				return retry.Permanent(err)
			}
		}
	})
	return err != nil && final == nil, cmp.Or(final, err)
}

// try is one try: read, unless the value is known; apply the changes; write.
func (a *atom[T]) try(ctx context.Context, b *batch[T]) error {
	for {
		if err := a.read(ctx, b); err != nil {
			return err
		}
		prev := *a.known
		none := prev.czxid == 0
		next, write := a.evaluate(b, prev.Value, !none && !a.fresh(b, prev))
		switch {
		case write && !none:
			err := a.write(ctx, b, prev, next)
			if errors.Is(err, client.ErrTooLarge) && a.takeOut(b, err) {
				continue
			}
			if err != nil && !client.UnknownOutcome(err) {
				a.unsend()
			}
			return err
		case write:
			a.unsend()
			if err := a.bear(ctx, b); err != nil {
				return err
			}
		case b.confirmed:
			return nil
		default: // what is known may be old
			if err := a.c.Sync(ctx, a.path); err != nil {
				return err
			}
			a.known, b.confirmed = nil, true
		}
	}
}

// fresh reports whether the node is the one that b has made, as it was made.
func (a *atom[T]) fresh(b *batch[T], now Versioned[T]) bool {
	var zero T
	return b.born && now.Version == 0 && bytes.Equal(a.kind.encode(now.Value), a.kind.encode(zero))
}

// bear makes the node, with the value that stands for none: then it does not matter
// which client has made it.
func (a *atom[T]) bear(ctx context.Context, b *batch[T]) error {
	var zero T
	err := a.create(ctx, a.kind.encode(zero))
	if err != nil && (!mayExist(err) || ctx.Err() != nil) {
		return a.failed("set", client.OutcomeNeverSent, err)
	}
	a.known, b.born = nil, err == nil
	return nil
}

// read makes sure that the value is known. A missing node is known as a zero
// Versioned, and has no mark.
func (a *atom[T]) read(ctx context.Context, b *batch[T]) error {
	if a.mark != nil && (a.mark.session.Err() != nil || a.mark.version >= worn) {
		a.abandonMark()
	}
	if a.known != nil {
		return nil
	}
	b.looked = true
	if !a.plain && a.mark == nil {
		switch err := a.makeMark(ctx); {
		case errors.Is(err, zk.ErrNoNode):
			a.known = &Versioned[T]{}
			return nil
		case err != nil:
			return a.failed("set", client.OutcomeNeverSent, err)
		}
		b.confirmed = true // a write of the same session comes before the read
	}
	get := a.c.Get
	if a.mark != nil {
		get = a.mark.session.Get
	}
	data, stat, err := get(ctx, a.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		a.abandonMark()
		a.known = &Versioned[T]{}
		return nil
	case err != nil:
		return err
	}
	now, err := a.parse(data, stat)
	if err == nil {
		a.known = &now
	}
	return err
}

// makeMark makes a mark in the current session.
func (a *atom[T]) makeMark(ctx context.Context) error {
	session, err := a.c.Session(ctx)
	if err == nil {
		a.mark, err = newMark(ctx, session, a.path, a.createOptions())
	}
	return err
}

// write sets the value, if no client has written since prev.
func (a *atom[T]) write(ctx context.Context, b *batch[T], prev Versioned[T], next T) error {
	if prev.Version == client.AnyVersion {
		return a.failed("set", client.OutcomeNeverSent, errVersionAny)
	}
	data := a.kind.encode(next)
	stat, set, err := a.send(ctx, a.origin(prev), data)
	switch {
	case err != nil:
		return err
	case !set:
		return ErrContended
	case stat != nil && stat.Czxid != prev.czxid:
		return a.failed("set", client.OutcomeUnknown, errReplaced)
	}
	a.known, b.czxid = nil, prev.czxid
	if stat != nil {
		a.known = &Versioned[T]{Value: a.kind.decode(data), Version: stat.Version, czxid: stat.Czxid, mzxid: stat.Mzxid}
	}
	return nil
}

func (a *atom[T]) send(ctx context.Context, prev origin, data []byte) (stat *zk.Stat, set bool, err error) {
	if a.mark != nil {
		return a.mark.write(ctx, prev, data)
	}
	stat, err = a.c.Set(ctx, a.path, data, prev.version)
	if errors.Is(err, zk.ErrBadVersion) && !client.UnknownOutcome(err) {
		return nil, false, nil
	}
	return stat, err == nil, err
}
