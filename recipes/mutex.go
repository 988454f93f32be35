// The protocol of a lock with one queue, the mutex and both halves of the
// read/write lock (Curator: LockInternals, StandardLockInternalsDriver):
//
//  1. reenter: if the context descends from a hold of the lock, the acquire returns
//     one more hold of the same node, without a request.
//  2. join: the acquire makes an ephemeral sequential node in the lock's directory.
//     The number that the server puts behind the name is its place in the queue. The
//     list of the directory comes with the answer. A client has at most 64 nodes in
//     the directory. Further acquires wait in the process.
//  3. turn: the acquire holds the lock when no contender with a lower number blocks
//     it. Every contender blocks a mutex or a writer, writers alone block a reader.
//     Otherwise the acquire watches the nearest contender that blocks it. If that was
//     the only one and is deleted, the acquire has its turn. If there were more, it
//     lists again: the contender may only have given up. A writer behind a writer
//     lists too, as a downgrade may have left a reader. Behind a contender of the
//     same session it needs no watch: that one hands over in the process, just before
//     its node is deleted. Package seqqueue says why that is safe (chain.go).
//  4. take, in acquire.go: the session is proved, and the hold begins. From then on its
//     own node is watched, and a heartbeat proves the session.
//  5. Release deletes the node, and the watch on it wakes the next contender.
//
// TryAcquire looks by free before it joins, and at its turn it does not wait.

package recipes

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// InterProcessMutex is a fair, re-entrant lock across processes and hosts:
// the contender that asked first gets it first. It is Curator's InterProcessMutex: same
// nodes, same order, so Java and Go processes exclude each other.
//
// Its nodes are "<path>/_c_<uuid>-lock-<number>", ephemeral and sequential;
// the lowest number holds. Each waiter watches the one before it.
//
// It is safe for concurrent use, holds no state and needs no Close. Any
// number of values may have the same path.
type InterProcessMutex struct{ *lockInternals }

// NewInterProcessMutex returns the lock on path. It does no I/O: the path and
// what is missing above it are made, as containers, by the first Acquire.
func NewInterProcessMutex(c *client.Client, path string, opts ...LockOption) (*InterProcessMutex, error) {
	l, err := newChained(c, path, newSettings(opts), lockTag)
	if err != nil {
		return nil, err
	}
	return &InterProcessMutex{l}, nil
}

// Acquire waits until the lock is held. ctx bounds the waiting and nothing
// after it; the hold lasts until it is released or lost.
//
// On error the lock is not held. No node remains, or its removal goes on in the
// background until it succeeds or the session is over. The error is a [*LockError]
// and matches what happened:
//
//   - ctx's error;
//   - client.ErrSessionLost, if the session was lost during the wait, and the place in
//     the queue with it;
//   - [ErrNodeDeleted], if another client deleted the waiting node;
//   - client.ErrClosed, client.ErrNoAuth, [ErrSequenceExhausted], [ErrForeignLock];
//   - [ErrLost], if ctx descends from a hold that was lost;
//   - [ErrWouldDeadlock], if ctx descends from a hold of the same lock by another
//     client.
//
// Acquire may be called again after any error, also after one that matches
// client.UnknownOutcome. The new call waits behind a node that is still being removed.
// An error of misuse, such as [ErrWouldDeadlock], comes again.
func (m *InterProcessMutex) Acquire(ctx context.Context) (*Hold, error) { return m.acquire(ctx, true) }

// TryAcquire takes the lock if no other contender holds it or waits for it. It never
// waits for others, only for the servers' answers, within ctx. If a contender is
// ahead, TryAcquire returns a [*BusyError] that names the holder. It makes a node
// then only if both came in the same moment. In all else it is like Acquire.
func (m *InterProcessMutex) TryAcquire(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, false)
}

// Do runs fn while the lock is held. fn's context ends when the lock is lost
// or ctx ends; fn must return then, and the lock is released when it has. fn
// also gets the hold, for its token, deadline and [Hold.Guard]. Do releases it.
//
// The error is fn's, joined with that of the release. If the lock was lost
// before that, the error matches [ErrLost] and never context.Canceled or
// context.DeadlineExceeded, also if fn returned its context's error. If ctx
// ended and the lock was not lost, fn's error for that matches ctx.Err() and
// not ErrLost. So a loss cannot be mistaken for a cancellation.
//
// If the lock was not obtained, fn is not run and the error is that of
// [InterProcessMutex.Acquire]. A panic of fn releases the lock. While no server
// is reachable the release may take one session timeout. Once ctx has ended it
// takes a second at most.
func (m *InterProcessMutex) Do(ctx context.Context, fn func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, m.Acquire, fn)
}

// TryDo is Do for a lock that is free. It runs fn if [InterProcessMutex.TryAcquire]
// obtains the lock, and otherwise returns its error at once. That is a [*BusyError]
// if another contender is ahead.
func (m *InterProcessMutex) TryDo(ctx context.Context, fn func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, m.TryAcquire, fn)
}

// Queue lists the holder of the lock and its waiters, in order. A path that no
// contender uses is an empty queue. A contender that leaves while Queue reads is left
// out.
func (m *InterProcessMutex) Queue(ctx context.Context) ([]Contender, error) {
	return m.contenders(ctx)
}

// Path is the path of the lock.
func (m *InterProcessMutex) Path() string { return m.path }

func (l *lockInternals) part() part { return part{l, l.path, l} }

// queueKey is the same for all locks that wait in one queue.
func (l *lockInternals) queueKey() queueKey { return queueKey{l.key.root, l.key.path} }

// acquire re-enters a hold that ctx descends from, or goes through the protocol. A
// re-entry is not told to the observer, so it is tried first.
func (l *lockInternals) acquire(ctx context.Context, wait bool) (*Hold, error) {
	ctxerr.Require(ctx)
	if g := heldBy(ctx, l.key); l.shares(g) {
		if h, ok, err := g.reenter(ctx); ok && err == nil {
			return h, nil
		}
	}
	if !wait {
		return acquire(ctx, l.c, l.info(true), tries{l})
	}
	return acquire(ctx, l.c, l.info(false), l)
}

// tries is the protocol of a lock for an acquire that does not wait.
type tries struct{ *lockInternals }

// mostLooks bounds how often an acquire that does not wait lists the queue before it
// joins.
const mostLooks = 8

// join makes a node, unless others wait for room in the process. Their nodes are in the
// list that free makes. If it shows none, they come in a moment. It never shows any if
// another client has deleted the node of a holder that may not read its own node. The
// holder does not know that yet. Then join goes past the waiting acquires.
func (t tries) join(ctx context.Context) (*seqqueue.Member, error) {
	if err := met(ctx, t.c); err != nil {
		return nil, err
	}
	for looks := 0; looks < mostLooks && t.queue.Crowded(); looks++ {
		if err := t.free(ctx); err != nil {
			return nil, err
		}
	}
	return t.queue.JoinPast(ctx, t.node())
}

// reenter returns one more hold of the lock if ctx descends from one.
func (l *lockInternals) reenter(ctx context.Context) (h *Hold, ok bool, err error) {
	g := heldBy(ctx, l.key)
	if l.shares(g) {
		if h, ok, err = g.reenter(ctx); ok || err != nil {
			return h, ok, err
		}
	}
	if l.otherHalf != nil {
		if h, ok, err = l.otherHalf(ctx); ok || err != nil {
			return h, ok, err
		}
	}
	if g != nil && !l.shares(g) && !isRead(l.tag) {
		return nil, false, waitsFor(g, "the lock was made WithoutReentry, so that the caller would wait for its own hold: release that first, or leave the option out")
	}
	return nil, false, nil
}

// shares reports whether g, which may be nil, is re-entered by the lock.
func (l *lockInternals) shares(g *grant) bool {
	return g != nil && !l.noReentry && !g.set.noReentry
}

// waitsFor refuses an acquire that would wait for g, a hold of its own context.
func waitsFor(g *grant, why string) error {
	return cmp.Or(g.err(), fmt.Errorf("%w: %s (%s)", ErrWouldDeadlock, why, g.Paths[0]))
}

// free returns a BusyError if another contender would be ahead, and refuses a
// queue with a contender that goes by other rules.
func (l *lockInternals) free(ctx context.Context) error {
	line, err := l.queue.Unmixed(ctx)
	if err != nil {
		return err
	}
	return l.busy(ctx, line)
}

// join makes an ephemeral sequential node in the lock's directory.
func (l *lockInternals) join(ctx context.Context) (*seqqueue.Member, error) {
	if err := met(ctx, l.c); err != nil {
		return nil, err
	}
	if within(ctx, l.key) { // acquires that wait in the process may wait for that hold
		return l.queue.JoinPast(ctx, l.node())
	}
	m, err := l.queue.Join(ctx, l.node())
	return m, l.waited(ctx, err)
}

// node is what a contender makes in the queue. The client was connected before.
func (l *lockInternals) node() newNode {
	n := l.queue.Node(l.tag, l.nodeData(l.c), l.acl)
	n.Persistent = l.stays
	return n
}

// turn is that of a member that no contender ahead blocks.
func (l *lockInternals) turn(ctx context.Context, m *seqqueue.Member, wait bool) (place, error) {
	var err error
	if wait {
		if err = l.deadlock(ctx, m); err == nil {
			err = l.waited(ctx, m.Await(ctx, l.blocks))
		}
	} else {
		err = l.unblocked(ctx, m)
	}
	return place{Own: m.Own, lock: l.path, key: l.key, c: l.c, set: &l.settings, token: m.Czxid, shared: isRead(l.tag)}, err
}

// unblocked returns a BusyError if a contender ahead blocks m.
func (l *lockInternals) unblocked(ctx context.Context, m *seqqueue.Member) error {
	for {
		ahead, err := m.Ahead(ctx, l.blocks)
		if err != nil || ahead == nil {
			return err
		}
		line, err := l.queue.Line(ctx)
		if err != nil {
			return err
		}
		own := slices.Index(line, m.Node)
		if err := l.busy(ctx, line[:max(own, 0)]); err != nil {
			return err
		}
		// The contenders ahead have left meanwhile: look again.
	}
}

// busy returns a BusyError with the first contender of line that blocks and is
// still there.
func (l *lockInternals) busy(ctx context.Context, line []seqqueue.Node) error {
	for i, n := range line {
		if !l.blocks(n) {
			continue
		}
		holder, err := lookUp(ctx, l.c, l.queue.Path(n), n)
		if err != nil {
			return err
		}
		if holder != nil {
			// The contenders before it that block have left. Does it wait for others?
			holder.Holder = !slices.ContainsFunc(line[:i], func(o seqqueue.Node) bool { return o.Key < n.Key && !l.blocks(o) })
			return &BusyError{Holder: *holder}
		}
	}
	return nil
}

// deadlock returns [ErrWouldDeadlock] if m would wait for a hold that ctx descends
// from, or for a contender that waits for that hold. reenter has found a hold of this
// client before. The path of another client's hold does not tell its ensemble, so
// deadlock looks for the hold's node in the queue.
func (l *lockInternals) deadlock(ctx context.Context, m *seqqueue.Member) error {
	var own []string
	h, _ := ctx.Value(l.key.on).(*held)
	for ; h != nil; h = h.outer {
		if h.grant.err() == nil {
			for _, node := range h.grant.Paths {
				own = append(own, nameOf(node))
			}
		}
	}
	if own == nil {
		return nil
	}
	ahead, err := m.Ahead(ctx, l.blocks)
	if err != nil || ahead == nil {
		return err
	}
	line, err := l.queue.Line(ctx)
	if err != nil {
		return err
	}
	for _, n := range line {
		// A writer ahead waits for every contender before it.
		if n.Key <= ahead.Key && slices.Contains(own, n.Name) {
			return fmt.Errorf("%w: the caller holds %s", ErrWouldDeadlock, l.queue.Path(n))
		}
	}
	return nil
}
