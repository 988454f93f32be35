package recipes

import (
	"context"

	"github.com/docent-go/docent/client"
)

// InterProcessMutex is a fair, re-entrant lock across processes and hosts:
// who asked first gets it first. It is Curator's InterProcessMutex: same
// nodes, same order, so Java and Go processes exclude each other.
//
// Its nodes are "<path>/_c_<uuid>-lock-<number>", ephemeral and sequential;
// the lowest number holds. Each waiter watches the one before it.
//
// It is safe for concurrent use, holds no state and needs no Close. Any
// number of values may stand for the same path.
type InterProcessMutex struct{ *lockInternals }

// NewInterProcessMutex returns the lock on path. It does no I/O: the path and
// what is missing above it are made, as containers, by the first Acquire.
func NewInterProcessMutex(c *client.Client, path string, opts ...LockOption) (*InterProcessMutex, error) {
	l, err := newLockInternals(c, path, newSettings(opts), lockTag)
	if err != nil {
		return nil, err
	}
	return &InterProcessMutex{l}, nil
}

// Acquire waits until the lock is held. ctx bounds the waiting and nothing
// after it; the hold lasts until it is released or lost.
//
// On error the lock is not held and no node remains, or its removal goes on
// in the background until it succeeds or the session is over. The error is a
// [*LockError] and matches what happened: ctx's error, client.ErrSessionLost
// if the session was lost during the wait and the place in the queue with it,
// [ErrNodeDeleted] if somebody deleted the waiting node, client.ErrClosed,
// client.ErrNoAuth, [ErrSequenceExhausted], [ErrForeignLock]. With a context of a
// hold that was lost it matches [ErrLost], and with one of a hold of the same
// lock by another client [ErrWouldDeadlock].
//
// Acquire may be called again after any error, also after one that matches
// client.UnknownOutcome: the new call waits behind a node that is still being
// removed. A call that was misused fails the same way again.
func (m *InterProcessMutex) Acquire(ctx context.Context) (*Hold, error) { return m.acquire(ctx) }

// TryAcquire takes the lock if nobody holds it or waits for it. It never
// waits for others, only for the servers' answers, within ctx. If somebody is
// ahead it returns a [*BusyError] that names the holder, and makes no node
// unless they came in the same moment. Otherwise it is like Acquire.
func (m *InterProcessMutex) TryAcquire(ctx context.Context) (*Hold, error) { return m.tryAcquire(ctx) }

// Do runs fn while the lock is held. fn's context ends when the lock is lost
// or ctx ends; fn must return then, and the lock is released when it has.
//
// The error is fn's, joined with one that matches [ErrLost] if the lock was
// lost before fn returned, or with that of the release. If the lock was not
// obtained, fn is not run and the error is that of [InterProcessMutex.Acquire].
// A panic of fn releases the lock. The release may take one session timeout
// while no server is reachable, but a second at most if ctx has ended.
func (m *InterProcessMutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return do(ctx, m.acquire, fn)
}

// Queue lists who holds the lock and who waits for it, in order. A path that
// nobody uses is an empty queue. Those who leave while it reads are left out.
func (m *InterProcessMutex) Queue(ctx context.Context) ([]Contender, error) {
	return m.contenders(ctx)
}

// Path is the path of the lock.
func (m *InterProcessMutex) Path() string { return m.path }
