package recipes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
