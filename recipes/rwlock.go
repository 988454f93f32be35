// The protocol of the read/write lock (Curator: InterProcessReadWriteLock) is that
// of the mutex, in mutex.go, with two tags in one queue, "__READ__" and "__WRIT__":
//
//   - rule: a writer waits for every contender ahead, a reader for the writers ahead.
//   - A reader in the context of a write hold does not queue. underWrite makes a
//     node with the number of the write node. The same transaction checks that the
//     write node still exists.
//   - A writer in the context of a read hold is refused: it would wait for itself.

package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

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

// WriteHold is a hold of a [WriteLock].
type WriteHold struct {
	*Hold

	read *ReadLock
}

// Downgrade turns the write hold into a read hold. It takes the read lock in the
// write hold's place and then releases the write hold. No writer holds the lock
// in between, however long it has been waiting. Readers that stand before the
// first waiting writer are let in. The read hold has the write hold's fencing
// token. ctx bounds both requests, and the read hold carries its values.
//
// If the write lock was re-entered, this hold of it ends and the others stay. The
// read hold counts beside them from now on, and outlasts them.
//
// On error there is no read hold, and the write hold is as it was. It is held,
// and to be released, unless the error matches [ErrLost] or [ErrReleased].
// Without error the write hold is over. If ctx ended in between, the write node
// is still being removed in the background, and [Hold.Release] of the write hold
// says so. Until the node is gone, other readers wait.
//
// There is no way back: see [WriteLock.Acquire].
func (h *WriteHold) Downgrade(ctx context.Context) (*Hold, error) {
	read, err := h.downgrade(ctx)
	if err != nil {
		if h.Err() == nil {
			err = notOver(err)
		}
		return nil, h.read.fail("downgrade", err)
	}
	_ = h.Release(ctx) // the caller can ask again
	return read, nil
}

func (h *WriteHold) downgrade(ctx context.Context) (*Hold, error) {
	if err := h.Err(); err != nil {
		if errors.Is(err, ErrReleased) {
			err = fmt.Errorf("%w: this write hold was downgraded or released before", err)
		}
		return nil, err
	}
	if g := heldBy(ctx, h.read.key); h.read.shares(g) {
		if read, ok, _ := g.reenter(ctx); ok {
			return read, nil // otherwise it was lost, which says nothing of the write hold
		}
	}
	ctx, seen := observe(ctx, h.read.c, h.read.info(false))
	read, ok, err := h.read.underWrite(ctx, h.grant, slices.DeleteFunc(around(ctx), func(o *grant) bool { return o == h.grant }))
	if !ok {
		err = cmp.Or(err, ErrReleased) // by another goroutine, just now
	}
	seen.given(ctx, read, err)
	return read, err
}

// underWrite takes the read lock in the place of a write hold, if there is one.
// The read node is plain, ephemeral and protected. It has the number of the write
// node, so that it stands before the contenders behind the write node (Curator's
// ReadLock since 5.5, CURATOR-621). With a number of its own the read node would
// stand behind a writer that waits. The transaction checks the write node: had another client
// deleted it, another writer might hold already.
func (l *ReadLock) underWrite(ctx context.Context, w *grant, around []*grant) (h *Hold, ok bool, err error) {
	if w == nil {
		return nil, false, nil
	}
	stays, ok, err := w.reenter(ctx) // no release deletes the write node meanwhile
	if !ok {
		return nil, false, err
	}
	defer func() { _ = stays.Release(ctx) }() // of the write hold, should it be the last
	// This call keeps the write hold from being released, also after its loss, and
	// for that the client would give up the session.
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(stays.Context(), func() { cancel(context.Cause(stays.Context())) })()
	w.Break() // its end makes no room for a writer any more
	node := w.Paths[0]
	slash := strings.LastIndexByte(node, '/')
	number := node[strings.LastIndex(node, writeTag)+len(writeTag):]
	made, err := inner.CreateGroup(bounded, w.Session, []newNode{{
		Dir: node[:slash], Prefix: readTag + number, Plain: true,
		Data: l.nodeData(l.c), ACL: l.acl,
	}}, client.CheckOp(node, client.AnyVersion))
	if err != nil {
		var refused *client.MultiError
		if errors.As(err, &refused) && errors.Is(err, zk.ErrNoNode) {
			w.lose(ErrNodeDeleted)
		}
		return nil, false, cmp.Or(w.err(), takenAway(err))
	}
	h, err = take(bounded, place{
		Own:  seqqueue.Own{Session: w.Session, Paths: []string{made[0].Path}},
		lock: l.path, key: l.key, c: l.c, set: &l.settings, token: w.token, shared: true,
	}, around)
	if err != nil {
		return nil, false, cmp.Or(w.err(), err) // with the session both are lost
	}
	return h, true, nil
}
