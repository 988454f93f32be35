// The protocol of the read/write lock (Curator: InterProcessReadWriteLock) is that
// of the mutex, in mutex.go, with two tags in one queue, "__READ__" and "__WRIT__":
//
//   - rule: a writer waits for every contender ahead, a reader for the writers ahead.
//   - A reader in the context of a write hold does not queue. underWrite, in
//     downgrade.go, makes a node with the number of the write node. The same
//     transaction checks that the write node still exists.
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
// A writer holds when it is first, and otherwise watches the contender before it. A
// reader holds when no writer is before it, and otherwise watches the nearest such
// writer. A writer that waits lets no later reader pass, so readers cannot starve it.
//
// It is safe for concurrent use, holds no state and needs no Close. Any
// number of values may have the same path.
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
	r, err := newChained(c, path, newSettings(opts), readTag, writeTag)
	if err != nil {
		return nil, err
	}
	w, err := newChained(c, path, newSettings(opts), writeTag, readTag)
	if err != nil {
		return nil, err
	}
	read := &ReadLock{r}
	r.otherHalf = func(ctx context.Context) (*Hold, bool, error) {
		written := heldBy(ctx, w.key)
		if written != nil && !w.shares(written) {
			return nil, false, waitsFor(written, "the lock was made WithoutReentry, so that the reader would wait for its own write hold: release that first, or leave the option out")
		}
		return read.underWrite(ctx, written, around(ctx))
	}
	w.otherHalf = func(ctx context.Context) (*Hold, bool, error) {
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

// Queue lists readers and writers, holders and waiters, in order. In all else it is
// like [InterProcessMutex.Queue].
func (l *InterProcessReadWriteLock) Queue(ctx context.Context) ([]Contender, error) {
	return l.read.contenders(ctx)
}

// Path is the path of the lock.
func (l *InterProcessReadWriteLock) Path() string { return l.read.path }

// Acquire waits until every writer that asked before this call has left. As with
// [InterProcessMutex.Acquire], ctx bounds the waiting, nothing remains after an
// error, and the error matches the same.
//
// If ctx descends from a read hold of this lock, Acquire re-enters that hold at once,
// past contenders that wait. If ctx descends from a write hold, the read hold is
// granted at once as well, in the write hold's place. It outlasts the write hold, as
// in Curator and after [WriteHold.Downgrade]. If ctx descends from a hold that
// Acquire would wait for, such as a write hold of another client, Acquire fails with
// [ErrWouldDeadlock].
func (l *ReadLock) Acquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, true) }

// TryAcquire takes the lock if no writer holds it or waits for it. It never
// waits for others, only for the servers' answers, within ctx. If a writer is
// ahead, TryAcquire returns a [*BusyError] that names the first writer. It makes a
// node then only if both came in the same moment. In all else it is like Acquire.
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

// Acquire waits until every contender that asked before has left. As with
// [InterProcessMutex.Acquire], ctx bounds the waiting, nothing remains after an
// error, and the error matches the same.
//
// If ctx descends from a write hold of this lock, Acquire re-enters that hold at once.
// If ctx descends from a read hold only, Acquire fails at once with [ErrWouldDeadlock]
// and makes no node. The writer would wait for that read hold, and two readers that
// asked to write would wait for each other. Release the read hold first. A hold of
// another client is refused as well. It is found in the queue only, so the acquire
// makes a node and deletes it.
func (l *WriteLock) Acquire(ctx context.Context) (*WriteHold, error) {
	return l.held(l.acquire(ctx, true))
}

// TryAcquire takes the lock if no contender holds it or waits for it, as
// [InterProcessMutex.TryAcquire]. If ctx descends from a read hold, TryAcquire fails
// with [ErrWouldDeadlock], like Acquire.
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

// half lists the readers or the writers. Whether one holds depends on both.
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
	return seqqueue.AllBlock
}

func isRead(tag string) bool { return tag == readTag || tag == kazooRead }
