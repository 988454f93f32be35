package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/seqqueue"
)

// lockPrefix names the nodes of a mutex, as Curator's InterProcessMutex and
// LeaderSelector, the old InterProcessSemaphore and go-zookeeper's Lock do.
const lockPrefix = "lock-"

// InterProcessMutex is a fair, re-entrant lock across processes and hosts:
// who asked first gets it first. It is Curator's InterProcessMutex: same
// nodes, same order, so Java and Go processes exclude each other.
//
// Its nodes are "<path>/_c_<uuid>-lock-<number>", ephemeral and sequential;
// the lowest number holds. Each waiter watches the one before it.
//
// It is safe for concurrent use, holds no state and needs no Close. Any
// number of values may stand for the same path.
type InterProcessMutex struct {
	c     *client.Client
	path  string
	queue *seqqueue.Queue
	data  []byte
	named bool // data was given
	acl   client.CreateOption
	key   heldKey
}

// heldKey finds a hold in a context. Locks of one client on one path are the
// same lock, in whatever namespace they are named.
type heldKey struct {
	root *client.Client
	path string // on the server
}

// NewInterProcessMutex returns the lock on path. It does no I/O: the path and
// what is missing above it are made, as containers, by the first Acquire.
func NewInterProcessMutex(c *client.Client, path string, opts ...MutexOption) (*InterProcessMutex, error) {
	if c == nil {
		return nil, errors.New("recipes: the client is nil; make one with client.Connect")
	}
	if path == "/" {
		return nil, errors.New("recipes: the lock path is \"/\"; give the lock a directory of its own, like \"/locks/orders\"")
	}
	full, err := c.ServerPath(path)
	if err != nil {
		return nil, fmt.Errorf("recipes: lock path: %w", err)
	}
	m := &InterProcessMutex{
		c: c, path: path,
		queue: seqqueue.New(c, path, lockPrefix),
		key:   heldKey{c.Root(), full},
	}
	for _, o := range opts {
		if o != nil {
			o.applyMutex(m)
		}
	}
	return m, nil
}

// Acquire waits until the lock is held. ctx bounds the waiting and nothing
// after it; the hold lasts until it is released or lost.
//
// On error the lock is not held and no node remains, or its removal goes on
// in the background until it succeeds or the session is over. The error is a
// [*LockError] and matches what happened: ctx's error, client.ErrSessionLost
// if the session was lost during the wait and the place in the queue with it,
// [ErrNodeDeleted] if somebody deleted the waiting node, client.ErrClosed,
// zk.ErrNoAuth, [ErrSequenceExhausted]. With a context of a hold that was
// lost it matches [ErrLost].
func (m *InterProcessMutex) Acquire(ctx context.Context) (*Hold, error) {
	straight := func() error { return nil }
	return m.enter(ctx, "acquire", straight, func(member *seqqueue.Member) error {
		return member.Await(ctx, seqqueue.Everybody)
	})
}

// TryAcquire takes the lock if nobody holds it or waits for it. It never
// waits for others, only for the servers' answers, within ctx. If somebody is
// ahead it returns a [*BusyError] that names the holder, and makes no node
// unless they came in the same moment. Otherwise it is like Acquire.
func (m *InterProcessMutex) TryAcquire(ctx context.Context) (*Hold, error) {
	look := func() error {
		line, err := m.queue.Line(ctx)
		if err != nil {
			return err
		}
		return m.busy(ctx, line)
	}
	return m.enter(ctx, "try to acquire", look, func(member *seqqueue.Member) error {
		for {
			ahead, err := member.Ahead(ctx, seqqueue.Everybody)
			if err != nil || ahead == nil {
				return err
			}
			line, err := m.queue.Line(ctx)
			if err != nil {
				return err
			}
			own := slices.Index(line, member.Node)
			if err := m.busy(ctx, line[:max(own, 0)]); err != nil {
				return err
			}
			// Those ahead have left meanwhile: look again.
		}
	})
}

// busy returns a BusyError with the first of line that is still there.
func (m *InterProcessMutex) busy(ctx context.Context, line []seqqueue.Node) error {
	for _, n := range line {
		holder, err := lookUp(ctx, m.c, m.queue.Path(n), n)
		if err != nil {
			return err
		}
		if holder != nil {
			holder.Holder = true
			return &BusyError{Holder: *holder}
		}
	}
	return nil
}

// enter re-enters a hold of ctx; or, unless before objects, it joins the queue
// and waits by await.
func (m *InterProcessMutex) enter(ctx context.Context, op string, before func() error, await func(*seqqueue.Member) error) (*Hold, error) {
	fail := func(err error) (*Hold, error) { return nil, &LockError{Op: op, Path: m.path, Err: err} }
	if n, ok := ctx.Value(m.key).(*heldNode); ok {
		h, err := n.enter(ctx, m.key)
		if !errors.Is(err, ErrReleased) { // a hold of the past does not stand in the way
			if err != nil {
				return fail(err)
			}
			return h, nil
		}
	}
	if err := before(); err != nil {
		return fail(err)
	}
	data := m.data
	if !m.named {
		data = m.c.DefaultData()
	}
	member, err := m.queue.Join(ctx, data, m.acl)
	if err != nil {
		return fail(err)
	}
	if err := await(member); err != nil {
		member.LeaveInBackground()
		return fail(err)
	}
	h, err := newHeldNode(ctx, m.path, member).enter(ctx, m.key)
	if err != nil {
		return fail(err)
	}
	return h, nil
}

// Do runs fn while the lock is held. fn's context ends when the lock is lost
// or ctx ends; fn must return then, and the lock is released when it has.
//
// The error is fn's, joined with one that matches [ErrLost] if the lock was
// lost before fn returned, or with that of the release. If the lock was not
// obtained, fn is not run and the error is that of [InterProcessMutex.Acquire].
// A panic of fn releases the lock.
func (m *InterProcessMutex) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	hold, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	within := hold.Context()
	if deadline, ok := ctx.Deadline(); ok { // for those who pass deadlines on
		var end context.CancelFunc
		within, end = context.WithDeadline(within, deadline)
		defer end()
	}
	work, cancel := context.WithCancelCause(within)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer func() {
		stop()
		cancel(ErrReleased)
		err = errors.Join(err, hold.Close())
	}()
	return fn(work)
}

// Queue lists who holds the lock and who waits for it, in order. A path that
// nobody uses is an empty queue. Those who leave while it reads are left out.
func (m *InterProcessMutex) Queue(ctx context.Context) ([]Contender, error) {
	line, err := m.queue.Line(ctx)
	if err != nil {
		return nil, &LockError{Op: "list", Path: m.path, Err: err}
	}
	all, err := contenders(ctx, m.c, m.queue, line)
	if err != nil {
		return nil, &LockError{Op: "list", Path: m.path, Err: err}
	}
	if len(all) > 0 && all[0].Sequence == line[0].Sequence() {
		all[0].Holder = true
	}
	return all, nil
}

// Path is the path of the lock.
func (m *InterProcessMutex) Path() string { return m.path }
