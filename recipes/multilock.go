package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/gathering"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// InterProcessMultiLock holds several locks as one, all of them or none. Use one
// order of locks everywhere. It takes its locks in the order in which they are
// named, as Curator's InterProcessMultiLock does. As long as all contenders take
// the locks that they share in the same order, it cannot deadlock. That holds
// beside single locks taken one within the other, beside Curator's and beside
// another multi-lock. Where orders differ, two acquires can wait for each other
// until one of their contexts ends.
//
// It has no nodes of its own. The nodes of each lock are as if that were acquired
// alone, so any contender for one of the locks sees what it always sees.
//
// An acquire joins the queues of all locks of one client in one transaction. If all
// are free that is all it takes. At the first lock that is not free the acquire
// withdraws from the queues of the locks behind, and only then it waits. It never
// stands in the queue of a lock while it waits for one that is named before. When it
// has that lock, it joins the queues of the locks behind in the same way.
// For the moment in between, contenders for these locks may see its nodes, and a
// TryAcquire that sees them returns a [*BusyError].
//
// The transaction ends before a lock that another acquire of this client holds, waits for or
// joins. That lock is joined alone. So is the first one if one of the last eight acquires of
// this value had to wait for it. So waiters have no nodes but in one queue, and
// [WithMaxContenders] of each lock bounds them.
//
// The acquire cannot join the queues of different clients in one transaction.
// It takes their locks in the order in which they are named as well.
//
// It is safe for concurrent use, holds no state of the locks and needs no Close.
type InterProcessMultiLock struct {
	path  string // of the locks, for errors
	parts []part // in the order in which they were named
	crowd crowded
}

// NewInterProcessMultiLock returns the lock of all locks, in this order. Two locks
// with one queue are refused: they would wait for each other.
func NewInterProcessMultiLock(locks ...Lock) (*InterProcessMultiLock, error) {
	if len(locks) == 0 {
		return nil, errors.New("recipes: a multi-lock without locks; name at least one")
	}
	m := &InterProcessMultiLock{}
	for i, l := range locks {
		if l == nil || reflect.ValueOf(l).IsZero() { // also a nil *InterProcessMutex
			return nil, fmt.Errorf("recipes: lock %d of a multi-lock is nil", i)
		}
		if p, ok := l.(permits); ok && p.n < 1 {
			return nil, fmt.Errorf("recipes: lock %d of a multi-lock is %d permits of %s; ask for at least one", i, p.n, p.path)
		}
		p := l.part()
		for _, other := range m.parts {
			if other.gate.queueKey() == p.gate.queueKey() {
				return nil, fmt.Errorf("recipes: a multi-lock names the queue of %s twice; it would wait for itself", p.path)
			}
		}
		m.parts = append(m.parts, p)
	}
	m.path = pathOf(m.parts)
	return m, nil
}

// pathOf names several locks, for errors.
func pathOf(parts []part) string {
	paths := make([]string, len(parts))
	for i, p := range parts {
		paths[i] = p.path
	}
	return strings.Join(paths, "+")
}

// Acquire waits until all locks are held. ctx bounds the waiting for all of them
// together and nothing after it. The hold lasts until it is released or one of the
// locks is lost.
//
// On error none is held and no node remains, or its removal goes on in the
// background until it succeeds or the session is over. The error is a [*LockError]
// that names the lock that failed, or all locks whose queues the acquire was to join
// at once. It matches what the error of that lock's own Acquire matches. It also
// matches [ErrLost] if one lock was lost while the acquire waited for another.
//
// Locks that ctx holds already are re-entered first, as by their own Acquire. They
// should therefore be named first everywhere.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*MultiHold, error) {
	return m.acquire(ctx, true)
}

// TryAcquire takes the locks if no other contender holds or waits for any of them,
// as the TryAcquire of each. If one is ahead it returns a [*BusyError] that names
// it, and makes no node unless it came in the same moment.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context) (*MultiHold, error) {
	return m.acquire(ctx, false)
}

// Do runs fn while all locks are held, as [InterProcessMutex.Do].
func (m *InterProcessMultiLock) Do(ctx context.Context, fn func(ctx context.Context, hold *MultiHold) error) error {
	return do(ctx, m.Acquire, fn)
}

// TryDo runs fn if all locks are free, as [InterProcessMutex.TryDo].
func (m *InterProcessMultiLock) TryDo(ctx context.Context, fn func(ctx context.Context, hold *MultiHold) error) error {
	return do(ctx, m.TryAcquire, fn)
}

// Path names the locks, joined by plus signs. It is for people.
func (m *InterProcessMultiLock) Path() string { return m.path }

// collecting is one acquire of a multi-lock.
type collecting struct {
	gathering.Acquire

	wait  bool
	parts []part
	hold  *MultiHold // of what is held so far
	outer []*grant   // that the acquire is within
	seen  *sight
	crowd *crowded // of the multi-lock

	rest    []int              // the missing locks
	members []*seqqueue.Member // in the queues of the first of these
	since   time.Time          // when the newest of the members joined
}

// crowded remembers for some acquires of a multi-lock that one of them had to wait for the
// first lock. It is safe for concurrent use.
type crowded struct{ left atomic.Int32 }

// crowdedFor is how many acquires remember it.
const crowdedFor = 8

// lately reports whether one of the last acquires had to wait.
func (c *crowded) lately() bool { return c.left.Load() > 0 }

// note notes whether an acquire had to wait.
func (c *crowded) note(waited bool) {
	if waited {
		c.left.Store(crowdedFor)
	} else if n := c.left.Load(); n > 0 {
		c.left.CompareAndSwap(n, n-1)
	}
}

func (m *InterProcessMultiLock) acquire(ctx context.Context, wait bool) (*MultiHold, error) {
	ctxerr.Require(ctx)
	h, outer := newMultiHold(ctx, m.path, len(m.parts)), around(ctx)
	ctx, seen := observe(ctx, m.parts[0].gate.key.root, client.LockInfo{Recipe: "InterProcessMultiLock", Mode: "multi", Path: m.path, Try: !wait})
	c := &collecting{wait: wait, parts: m.parts, hold: h, outer: outer, seen: seen, crowd: &m.crowd}
	err := c.all(ctx)
	// The loss of a lock that was held ends the waiting for the next ones. It is the
	// reason of the error then.
	if lost := c.hold.lost(); lost != nil {
		err = lost
	}
	if err != nil {
		c.hold.abandon()
		var failed *LockError
		if errors.As(err, &failed) {
			failed.Op = opOf(!wait)
		}
	}
	seen.givenAll(ctx, c.hold, err)
	if err != nil {
		return nil, err
	}
	return c.hold, nil
}

// all takes all locks.
func (c *collecting) all(ctx context.Context) error {
	if err := ctxerr.Ended(ctx); err != nil {
		return &LockError{Path: c.hold.path, Err: endedBefore(err)}
	}
	// The acquire waits for the missing locks only while the holds that it has last,
	// in a context that descends from them.
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := c.hold.ctx
	defer context.AfterFunc(over, func() { end(context.Cause(over)) })()

	for i, p := range c.parts {
		h, ok, err := p.reenter(ctx)
		switch {
		case err != nil:
			return &LockError{Path: p.path, Err: err}
		case ok:
			ctx = c.hold.add(ctx, i, h) //nolint:fatcontext // one within the other is what is wanted
		default:
			c.rest = append(c.rest, i)
		}
	}
	if !c.wait {
		if err := c.free(ctx); err != nil {
			return err
		}
	}
	c.Acquire = gathering.Of(len(c.rest), c.wait, c.crowd.lately() || c.together() == 1)
	err := c.gather(ctx)
	if err != nil {
		for _, m := range c.members {
			abandon(ctx, m, err)
		}
	}
	return err
}

// first is the first of the missing locks.
func (c *collecting) first() part { return c.parts[c.rest[0]] }

// together is how many of the missing locks, from the first on, are of one client.
func (c *collecting) together() int {
	n := min(1, len(c.rest))
	for n < len(c.rest) && c.parts[c.rest[n]].gate.key.root == c.first().gate.key.root {
		n++
	}
	return n
}

// free returns a BusyError if another contender would be ahead in one of the missing
// locks.
func (c *collecting) free(ctx context.Context) error {
	errs := make([]error, len(c.rest))
	var all sync.WaitGroup
	for k, i := range c.rest {
		all.Go(func() {
			if err := c.parts[i].free(ctx); err != nil {
				errs[k] = &LockError{Path: c.parts[i].path, Err: err}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// gather takes the missing locks. On error it leaves the nodes of its members.
func (c *collecting) gather(ctx context.Context) error {
	for {
		deed := c.Next()
		var err error
		switch deed {
		case gathering.Done:
			return nil
		case gathering.JoinFirst:
			err = c.joinFirst(ctx)
		case gathering.JoinRest:
			err = c.joinRest(ctx)
		case gathering.Look, gathering.Await:
			ctx, err = c.turn(ctx, deed == gathering.Await) //nolint:fatcontext // one within the other is what is wanted
		case gathering.Withdraw:
			err = c.withdraw(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// joinFirst joins the queue of the first lock alone, as the lock itself does: within the
// window of the queue.
func (c *collecting) joinFirst(ctx context.Context) error {
	p := c.first()
	m, err := p.join(ctx)
	if err != nil {
		return &LockError{Path: p.path, Err: err}
	}
	c.add(m)
	return nil
}

// joinRest joins the queues of the missing locks of one client, in one transaction, up to one
// for which another acquire of the client contends. That one is joined alone, within the window
// of its queue.
func (c *collecting) joinRest(ctx context.Context) error {
	parts := make([]part, c.together())
	for k := range parts {
		parts[k] = c.parts[c.rest[k]]
	}
	root := parts[0].gate.key.root
	if err := met(ctx, root); err != nil {
		return &LockError{Path: pathOf(parts), Err: err}
	}
	entries := make([]seqqueue.Entry, len(parts))
	for k, p := range parts {
		entries[k] = seqqueue.Entry{Queue: p.gate.queue, Node: p.gate.node()}
	}
	members, at, err := seqqueue.JoinTogether(ctx, root, entries, !c.wait)
	switch {
	case err != nil && at >= 0:
		return &LockError{Path: parts[at].path, Err: err}
	case err != nil:
		return &LockError{Path: pathOf(parts), Err: takenAway(err)}
	case len(members) == 0:
		c.Crowd()
		return nil
	}
	c.add(members...)
	return nil
}

// add notes that the acquire stands in some queues.
func (c *collecting) add(members ...*seqqueue.Member) {
	for k, m := range members {
		c.seen.queued(c.parts[c.rest[k]].path, m)
	}
	c.members, c.since = members, time.Now()
	c.Join(len(members))
}

// turn takes the turn in the first queue. With wait it waits for it. It returns a context
// that descends from the hold.
func (c *collecting) turn(ctx context.Context, wait bool) (context.Context, error) {
	p, m := c.first(), c.members[0]
	if !c.Blocked() && time.Since(c.since) > watchAfter {
		m.Forget() // its node may have been deleted meanwhile
	}
	granted, err := p.turn(ctx, m, wait)
	if c.wait && !wait && errors.Is(err, ErrBusy) {
		c.Block()
		return ctx, nil
	}
	if c.None() && c.wait {
		c.crowd.note(c.Blocked() || m.HadToWait())
	}
	if err != nil {
		return ctx, &LockError{Path: p.path, Err: err}
	}
	c.members = c.members[1:] // take deletes the node if it fails
	h, err := take(ctx, granted, c.outer)
	if err != nil {
		return ctx, &LockError{Path: p.path, Err: err}
	}
	i := c.rest[0]
	c.rest = c.rest[1:]
	c.Grant(c.together() == 1)
	return c.hold.add(ctx, i, h), nil
}

// withdraw deletes the nodes behind the first, and waits for that. While the acquire waits, a
// place there would be a lock that is held out of order. If a node may still stand, the
// acquire must not wait: withdraw returns why, and the node is deleted in the background.
func (c *collecting) withdraw(ctx context.Context) error {
	nodes := make([]seqqueue.Placed, len(c.members)-1)
	for k, m := range c.members[1:] {
		nodes[k] = seqqueue.Placed{Own: m.Own, In: c.parts[c.rest[k+1]].gate.c}
	}
	c.members = c.members[:1]
	errs := seqqueue.VacateTogether(ctx, nodes)
	for k, err := range errs {
		if errors.Is(err, seqqueue.ErrGone) {
			errs[k] = nil
		} else if err != nil {
			errs[k] = fmt.Errorf("its node %s could not be withdrawn before the wait, and is deleted in the background: %w", nodes[k].Paths[0], err)
		}
	}
	if err := joined(errs...); err != nil {
		return &LockError{Path: c.first().path, Err: err}
	}
	c.Withdrawn()
	return nil
}
