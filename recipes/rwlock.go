// The protocol of the read/write lock (Curator: InterProcessReadWriteLock) is that
// of the mutex, in mutex.go, with two tags in one queue, "__READ__" and "__WRIT__":
//
//   - rule: a writer waits for every contender ahead, a reader for the writers ahead.
//   - A reader in the context of a write hold does not queue: underWrite, in
//     downgrade.go, makes a node with the number of the write node, in a transaction
//     that checks that the write node still exists.
//   - A writer in the context of a read hold is refused: it would wait for itself.

package recipes

import (
	"context"
	"slices"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// InterProcessReadWriteLock is a fair, re-entrant lock across processes and
// hosts that many may read-lock together, or one may write-lock alone. It is
// Curator's InterProcessReadWriteLock: same nodes, same order, so Java and Go
// processes share and exclude each other.
//
// Its nodes are "<path>/_c_<uuid>-__READ__<number>" and
// "<path>/_c_<uuid>-__WRIT__<number>", ephemeral and sequential, in one queue.
// A writer holds when it is first, and watches the one before it. A reader
// holds when no writer is before it, and watches the nearest one that is: a
// writer that waits lets no later reader pass, so readers cannot starve it.
//
// It is safe for concurrent use, holds no state and needs no Close. Any
// number of values may stand for the same path.
type InterProcessReadWriteLock struct {
	read  *ReadLock
	write *WriteLock
}

// ReadLock is the half of an [InterProcessReadWriteLock] that is shared.
type ReadLock struct{ *lockInternals }

// WriteLock is the half of an [InterProcessReadWriteLock] that is exclusive.
type WriteLock struct {
	*lockInternals

	read *ReadLock
}

// NewInterProcessReadWriteLock returns the lock on path. It does no I/O: the
// path and what is missing above it are made, as containers, by the first
// Acquire.
func NewInterProcessReadWriteLock(c *client.Client, path string, opts ...LockOption) (*InterProcessReadWriteLock, error) {
	r, err := newLockInternals(c, path, newSettings(opts), readTag, writeTag)
	if err != nil {
		return nil, err
	}
	w, err := newLockInternals(c, path, newSettings(opts), writeTag, readTag)
	if err != nil {
		return nil, err
	}
	read := &ReadLock{r}
	r.other = func(ctx context.Context) (*Hold, bool, error) {
		written := heldBy(ctx, w.key)
		if written != nil && !w.shares(written) {
			return nil, false, waitsFor(written, "the lock was made WithoutReentry, so that the reader would wait for its own write hold: release that first, or leave the option out")
		}
		return read.underWrite(ctx, written, around(ctx))
	}
	w.other = func(ctx context.Context) (*Hold, bool, error) {
		if reading := heldBy(ctx, r.key); reading != nil {
			return nil, false, waitsFor(reading, "a read hold is not upgraded: release it first")
		}
		return nil, false, nil
	}
	return &InterProcessReadWriteLock{read, &WriteLock{w, read}}, nil
}

// ReadLock returns the shared half.
func (l *InterProcessReadWriteLock) ReadLock() *ReadLock { return l.read }

// WriteLock returns the exclusive half.
func (l *InterProcessReadWriteLock) WriteLock() *WriteLock { return l.write }

// Queue lists readers and writers, those who hold the lock and those who wait,
// in order. Otherwise it is like [InterProcessMutex.Queue].
func (l *InterProcessReadWriteLock) Queue(ctx context.Context) ([]Contender, error) {
	return l.read.contenders(ctx)
}

// Path is the path of the lock.
func (l *InterProcessReadWriteLock) Path() string { return l.read.path }

// Acquire waits until no writer holds the lock or waits for it before this
// call. Like [InterProcessMutex.Acquire] it is bounded by ctx and nothing
// remains after an error, which matches the same.
//
// With a context of a read hold of this lock it re-enters that hold at once,
// past contenders that wait. With one of a write hold it is granted at once as well, in the
// write hold's place, and outlasts it, as in Curator and as [WriteHold.Downgrade]
// does. With one of a hold of another client, or of one in between, which it
// would wait for, it fails with [ErrWouldDeadlock].
func (l *ReadLock) Acquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, true) }

// TryAcquire takes the lock if no writer holds it or waits for it. It never
// waits for others, only for the servers' answers, within ctx. If a writer is
// ahead it returns a [*BusyError] that names the first, and makes no node
// unless it came in the same moment. Otherwise it is like Acquire.
func (l *ReadLock) TryAcquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, false) }

// Do runs fn while the read lock is held, as [InterProcessMutex.Do].
func (l *ReadLock) Do(ctx context.Context, fn func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, l.Acquire, fn)
}

// TryDo runs fn if the read lock is free, as [InterProcessMutex.TryDo].
func (l *ReadLock) TryDo(ctx context.Context, fn func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, l.TryAcquire, fn)
}

// Queue lists the readers alone, as Curator's getParticipantNodes; see
// [InterProcessReadWriteLock.Queue].
func (l *ReadLock) Queue(ctx context.Context) ([]Contender, error) {
	return l.half(ctx, true)
}

// Path is the path of the lock.
func (l *ReadLock) Path() string { return l.path }

// Acquire waits until every contender that asked before has released the lock. Like
// [InterProcessMutex.Acquire] it is bounded by ctx and nothing remains after
// an error, which matches the same.
//
// With a context of a write hold of this lock it re-enters that hold at once.
// With one of a read hold, without a write hold, it fails at once with
// [ErrWouldDeadlock] and makes no node: it would wait for that hold, and two
// readers who ask for it would wait for each other. Release the read hold
// first. The same goes for a hold of another client, but that is only found in
// the queue, whose node is then removed.
func (l *WriteLock) Acquire(ctx context.Context) (*WriteHold, error) {
	return l.held(l.acquire(ctx, true))
}

// TryAcquire takes the lock if nobody holds it or waits for it, as
// [InterProcessMutex.TryAcquire]. With a context of a read hold it fails with
// [ErrWouldDeadlock], like Acquire.
func (l *WriteLock) TryAcquire(ctx context.Context) (*WriteHold, error) {
	return l.held(l.acquire(ctx, false))
}

// Do runs fn while the write lock is held, as [InterProcessMutex.Do]. fn may
// downgrade the hold. The read hold is then fn's to release.
func (l *WriteLock) Do(ctx context.Context, fn func(ctx context.Context, hold *WriteHold) error) error {
	return do(ctx, l.Acquire, fn)
}

// TryDo runs fn if the write lock is free, as [InterProcessMutex.TryDo].
func (l *WriteLock) TryDo(ctx context.Context, fn func(ctx context.Context, hold *WriteHold) error) error {
	return do(ctx, l.TryAcquire, fn)
}

// Queue lists the writers alone, as Curator's getParticipantNodes; see
// [InterProcessReadWriteLock.Queue].
func (l *WriteLock) Queue(ctx context.Context) ([]Contender, error) {
	return l.half(ctx, false)
}

// Path is the path of the lock.
func (l *WriteLock) Path() string { return l.path }

func (l *WriteLock) held(h *Hold, err error) (*WriteHold, error) {
	if err != nil {
		return nil, err
	}
	return &WriteHold{h, l.read}, nil
}

// half lists the readers or the writers. Who holds is said in view of all.
func (l *lockInternals) half(ctx context.Context, readers bool) ([]Contender, error) {
	all, err := l.contenders(ctx)
	return slices.DeleteFunc(all, func(c Contender) bool { return (c.Mode == ModeRead) != readers }), err
}

// rule says which contenders ahead block one with the given tag. Readers do not block
// each other; every other pair does.
func rule(tag string) seqqueue.Blocks {
	if isRead(tag) {
		return func(ahead seqqueue.Node) bool { return !isRead(ahead.Tag) }
	}
	return seqqueue.Everybody
}

func isRead(tag string) bool { return tag == readTag || tag == kazooRead }
