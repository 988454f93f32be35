package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// ErrTooManyPermits says that an acquire asked for more permits than its
// semaphore has, and would have waited until somebody raised their number.
var ErrTooManyPermits = errors.New("more permits than the semaphore has")

// InterProcessSemaphore hands out a number of permits across processes and
// hosts: who asked first gets theirs first, also behind somebody who asked for
// more and still waits. It is Curator's InterProcessSemaphoreV2: same nodes,
// same rule, so Java and Go processes share the permits.
//
// Who acquires stands in the queue "<path>/locks", a mutex like
// [InterProcessMutex]. Its holder counts the children of "<path>/leases",
// waits there until there is room, and makes its leases, ephemeral nodes named
// "_c_<uuid>-lease-<number>", in one transaction with its leaving the queue:
// all of them or none, and only while it was first. Two who ask for several
// permits cannot each hold half, as two of Curator's acquire(2) can.
//
// Everybody must give the same number of permits, which nothing checks, or
// the same [SharedCount]. It is not re-entrant: each acquire takes permits of
// its own. It is safe for concurrent use and needs no Close.
type InterProcessSemaphore struct {
	settings

	c      *client.Client
	recipe string // its name, for the observer
	path   string
	key    heldKey
	gate   *lockInternals // the queue
	leases *leases
	max    int
	count  *SharedCount // instead of max, if not nil

	unmixed atomic.Bool // kazoo was not found on the path
}

// NewInterProcessSemaphore returns the semaphore on path with max permits. It
// does no I/O. [WithNodeData] is about the leases. [WithKazoo] has no effect:
// kazoo's Semaphore cannot be mixed with it.
func NewInterProcessSemaphore(c *client.Client, path string, max int, opts ...LockOption) (*InterProcessSemaphore, error) {
	if max < 1 {
		return nil, fmt.Errorf("recipes: a semaphore with %d permits; it needs at least one", max)
	}
	return newSemaphore(c, path, max, nil, opts)
}

// NewInterProcessSemaphoreFromCount returns the semaphore on path that has as
// many permits as count says. Raising the count wakes who waits for it.
// Lowering it takes nothing from those who hold. It binds the acquires that read
// it afterwards: one that asks for more permits than there are then fails with
// [ErrTooManyPermits]. count may be of another client.
func NewInterProcessSemaphoreFromCount(c *client.Client, path string, count *SharedCount, opts ...LockOption) (*InterProcessSemaphore, error) {
	if count == nil {
		return nil, errors.New("recipes: the count of a semaphore is nil; make one with NewSharedCount")
	}
	return newSemaphore(c, path, 0, count, opts)
}

func newSemaphore(c *client.Client, path string, most int, count *SharedCount, opts []LockOption) (*InterProcessSemaphore, error) {
	full, err := lockPath(c, path)
	if err != nil {
		return nil, err
	}
	s := newSettings(opts)
	gate, err := newLockInternals(c, path+"/locks", settings{acl: s.acl}, lockTag)
	if err != nil {
		return nil, err
	}
	leases := newLeases(c, path+"/leases")
	gate.queue.Beside(leases.dir)
	return &InterProcessSemaphore{
		settings: s,
		c:        c, path: path, recipe: "InterProcessSemaphore",
		key:  newHeldKey(c, full, leaseTag),
		gate: gate, leases: leases,
		max: most, count: count,
	}, nil
}

// Acquire waits until n permits are held. ctx bounds the waiting and nothing
// after it; the lease lasts until it is released or lost.
//
// On error none is held and no node remains, or its removal goes on in the
// background until it succeeds or the session is over. The error is a
// [*LockError] and matches what happened: [ErrTooManyPermits], at once;
// [ErrWouldDeadlock], at once, if ctx descends from leases of so many permits
// that there can never be n more; client.ErrTooLarge, if one request cannot make
// n nodes, which may show only when there is room; ctx's error,
// client.ErrSessionLost if the session was lost during the wait and the place
// in the queue with it, [ErrNodeDeleted] if somebody deleted the waiting node,
// client.ErrClosed, client.ErrNoAuth, [ErrSequenceExhausted], [ErrForeignLock],
// [ErrCountData].
func (s *InterProcessSemaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	nothing := func(context.Context, int) error { return nil }
	return s.enter(ctx, acquiring, n, nothing, s.await)
}

// TryAcquire takes n permits if they are free and nobody waits. It never waits
// for others, only for the servers' answers, within ctx. If there is no room
// it returns a [*BusyError] that names one of the holders, and if somebody
// waits, the first of them; it makes no node unless they came in the same
// moment. Otherwise it is like Acquire.
func (s *InterProcessSemaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return s.enter(ctx, trying, n, s.free, s.try)
}

// Do runs fn while n permits are held, as [InterProcessMutex.Do].
func (s *InterProcessSemaphore) Do(ctx context.Context, n int, fn func(ctx context.Context) error) error {
	return do(ctx, func(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, n) }, fn)
}

// Path is the path of the semaphore.
func (s *InterProcessSemaphore) Path() string { return s.path }

// Queue lists the leases, one for each permit, in the order in which they were
// made, and behind them who waits. Who gets its permits while it reads may be
// listed twice, and who leaves is left out. See [InterProcessMutex.Queue].
func (s *InterProcessSemaphore) Queue(ctx context.Context) ([]Contender, error) {
	waiting, err := s.gate.contenders(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.leases.contenders(ctx)
	if err != nil {
		return nil, s.fail("list", err)
	}
	for _, w := range waiting {
		all = append(all, waiter(w))
	}
	return all, nil
}

// waiter is a contender of the queue as one for permits: its lock is not the
// semaphore.
func waiter(c Contender) Contender {
	c.Holder, c.Mode = false, ModeLease
	return c
}

func (s *InterProcessSemaphore) fail(op string, err error) error {
	return &LockError{Op: op, Path: s.path, Err: err}
}

// enter makes a lease that is observed.
func (s *InterProcessSemaphore) enter(ctx context.Context, op string, n int,
	before func(context.Context, int) error, turn func(context.Context, *seqqueue.Member, int) (place, error),
) (*Lease, error) {
	ctxerr.Require(ctx)
	ctx, seen := observe(ctx, s.c, client.LockInfo{
		Recipe: s.recipe, Mode: ModeLease.String(), Path: s.path, Permits: n, Try: op == trying,
	})
	hold, err := s.join(ctx, seen, op, n, before, turn)
	seen.given(ctx, hold, err)
	if err != nil {
		return nil, err
	}
	return &Lease{hold}, nil
}

// join joins the queue, unless before objects, and takes its turn.
func (s *InterProcessSemaphore) join(ctx context.Context, seen *sight, op string, n int,
	before func(context.Context, int) error, turn func(context.Context, *seqqueue.Member, int) (place, error),
) (*Hold, error) {
	if err := s.admit(ctx, n); err != nil {
		return nil, s.fail(op, err)
	}
	if err := before(ctx, n); err != nil {
		return nil, s.fail(op, err)
	}
	member, err := s.gate.queue.Join(ctx, lockTag, s.gate.nodeData(s.c), s.gate.acl)
	if err != nil {
		return nil, s.fail(op, err)
	}
	seen.queued(s.path, member)
	p, err := turn(ctx, member, n)
	if err != nil {
		return nil, s.fail(op, err)
	}
	hold, err := take(ctx, p)
	if err != nil {
		return nil, s.fail(op, err)
	}
	return hold, nil
}

// admit refuses what would be waited for in vain.
func (s *InterProcessSemaphore) admit(ctx context.Context, n int) error {
	if n < 1 {
		return fmt.Errorf("%d permits; ask for at least one", n)
	}
	if !s.unmixed.Load() {
		if err := s.leases.refuseKazoo(ctx, s.path); err != nil {
			return err
		}
		s.unmixed.Store(true)
	}
	most, _, err := s.permits(ctx, false)
	if err != nil {
		return err
	}
	if err := atMost(n, most); err != nil {
		return err
	}
	if n > mostAtOnce {
		return fmt.Errorf("%w: asked for %d permits, and %d at the most are taken in one transaction", client.ErrTooLarge, n, mostAtOnce)
	}
	return s.beside(ctx, n, most)
}

// mostAtOnce bounds the memory that a number out of a configuration can take.
// By default a server's limit is reached with some 8000.
const mostAtOnce = 1 << 16

// beside refuses what can never be had beside the permits that ctx holds.
func (s *InterProcessSemaphore) beside(ctx context.Context, n, most int) error {
	own, err := s.heldBy(ctx)
	if err != nil {
		return err
	}
	if n > most-own {
		return fmt.Errorf("%w: asked for %d of %d, and the caller holds %d", ErrWouldDeadlock, n, most, own)
	}
	return nil
}

// heldBy is how many permits ctx descends from. Leases of another client may be
// of another ensemble for all that their paths tell, until they are seen here.
func (s *InterProcessSemaphore) heldBy(ctx context.Context) (n int, err error) {
	var others []string
	h, _ := ctx.Value(s.key.on).(*held)
	for ; h != nil; h = h.outer {
		switch {
		case h.key.tag != s.key.tag || h.err() != nil:
		case h.key == s.key:
			n += len(h.nodes)
		default:
			for _, node := range h.nodes {
				others = append(others, node[strings.LastIndexByte(node, '/')+1:])
			}
		}
	}
	if others == nil {
		return n, nil
	}
	children, _, err := s.c.Children(ctx, s.leases.dir)
	for _, name := range children {
		if slices.Contains(others, name) {
			n++
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return n, err
}

// permits is how many there are, with a watch on a shared count if watch is
// set.
func (s *InterProcessSemaphore) permits(ctx context.Context, watch bool) (int, *client.Watch, error) {
	if s.count == nil {
		return s.max, nil, nil
	}
	now, w, err := s.count.read(ctx, watch)
	return int(now.Value), w, err
}

func atMost(n, most int) error {
	if n > most {
		return fmt.Errorf("%w: asked for %d of %d", ErrTooManyPermits, n, most)
	}
	return nil
}
