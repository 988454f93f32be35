package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// ErrTooManyPermits says that an acquire asked for more permits than its
// semaphore has, and would have waited until another client raised their number.
var ErrTooManyPermits = errors.New("more permits than the semaphore has")

// InterProcessSemaphoreV2 is Curator's InterProcessSemaphoreV2, and not Curator's
// InterProcessSemaphore (V1). V1 has another, incompatible layout: the two on one path
// share nothing. It hands out a number of permits across processes and hosts. The
// acquire that asked first is served first, also if it asked for more than one behind
// it. Java and Go processes share the permits.
//
// An acquire makes a node in the queue "<path>/locks", which is a mutex like
// [InterProcessMutex]. The first in the queue counts the children of
// "<path>/leases" and waits there until there is room. Then it makes its leases,
// ephemeral nodes named "_c_<uuid>-lease-<number>", one for each permit. One
// transaction makes all of them and deletes the node in the queue. So there are all
// or none, and only if the acquire was still the first. Two acquires that ask for
// several permits cannot each hold half, as two of Curator's acquire(2) can.
//
// All clients of the path must give the same number of permits, which nothing checks, or
// the same count; see [PermitCount]. It is not re-entrant: each acquire takes permits of
// its own. With a context that descends from a lease of the semaphore an acquire never
// waits for permits. If they are not free at once it is refused with [ErrWouldDeadlock].
// It is safe for concurrent use and needs no Close.
type InterProcessSemaphoreV2 struct {
	settings

	c      *client.Client
	recipe string // its name, for the observer
	alone  bool   // it is a mutex: its only permit is all that there is
	path   string
	key    heldKey
	gate   *lockInternals // the queue
	leases *leases
	max    int
	count  PermitCount // instead of max, if not nil

	waiting *clientWaiters
	guard   pathGuard

	unmixed atomic.Bool  // no other lock was found on the path
	crowded atomic.Bool  // the last acquire that waited was not the first in the queue
	calm    atomic.Int32 // acquires in a row that did not have to wait; see atOnce
}

// NewInterProcessSemaphoreV2 returns the semaphore on path with max permits. It
// does no I/O. kazoo's Semaphore cannot be mixed with it: there is no option for
// that.
func NewInterProcessSemaphoreV2(c *client.Client, path string, max int, opts ...SemaphoreOption) (*InterProcessSemaphoreV2, error) {
	if max < 1 {
		return nil, fmt.Errorf("recipes: a semaphore with %d permits; it needs at least one", max)
	}
	return newSemaphore(c, path, max, nil, opts)
}

// PermitCount says how many permits a semaphore has, as Curator's
// SharedCountReader does. [github.com/docent-go/docent/recipes/shared.SharedCount]
// is one. Several goroutines call its methods at once. An acquire returns their
// errors.
type PermitCount interface {
	// Value returns the number of permits now.
	Value(ctx context.Context) (int32, error)

	// ValueW returns the number of permits, and a watch that fires when it may
	// have changed. After an error there is no watch.
	ValueW(ctx context.Context) (int32, *client.OneShotWatch, error)
}

// NewInterProcessSemaphoreV2FromCount returns the semaphore on path that has as
// many permits as count says. Raising the count wakes the acquires that wait for
// it. Lowering it takes nothing from holders. It binds the acquires that read it
// afterwards. An acquire that asks for more permits than there are then fails
// with [ErrTooManyPermits]. count may be of another client.
func NewInterProcessSemaphoreV2FromCount(c *client.Client, path string, count PermitCount, opts ...SemaphoreOption) (*InterProcessSemaphoreV2, error) {
	if count == nil {
		return nil, errors.New("recipes: the count of a semaphore is nil; make one with shared.NewSharedCount")
	}
	return newSemaphore(c, path, 0, count, opts)
}

func newSemaphore(c *client.Client, path string, most int, count PermitCount, opts []SemaphoreOption) (*InterProcessSemaphoreV2, error) {
	full, err := lockPath(c, path)
	if err != nil {
		return nil, err
	}
	s := newSemaphoreSettings(opts)
	gate, err := newLockInternals(c, path+"/locks", settings{acl: s.acl, stays: s.stays}, lockTag)
	if err != nil {
		return nil, err
	}
	leases := newLeases(c, path+"/leases")
	gate.queue.ListOther(leases.dir).Gate(gate.key.path, seqqueue.MostMembers)
	return &InterProcessSemaphoreV2{
		settings: s,
		c:        c, path: path, recipe: "InterProcessSemaphoreV2",
		key:  newHeldKey(c, full, leaseTag),
		gate: gate, leases: leases,
		max: most, count: count, waiting: clientWaitersOf(c),
	}, nil
}

// Acquire waits until n permits are held. ctx bounds the waiting and nothing
// after it; the lease lasts until it is released or lost.
//
// On error none is held and no node remains, or its removal goes on in the background
// until it succeeds or the session is over. The error is a [*LockError] and matches what
// happened. It matches [ErrTooManyPermits] at once. Say ctx descends from a lease of the
// semaphore. If n permits are not free now, or others wait, who may wait for that lease,
// the error matches [ErrWouldDeadlock]. It matches client.ErrTooLarge if one request
// cannot make n nodes, which may show only when there is room. If the session was lost
// during the wait, and the place in the queue with it, it matches client.ErrSessionLost.
// If another client deleted the waiting node, it matches [ErrNodeDeleted]. Otherwise it
// matches ctx's error, client.ErrClosed, client.ErrNoAuth, [ErrSequenceExhausted],
// [ErrForeignLock], or the error of the [PermitCount].
func (s *InterProcessSemaphoreV2) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.acquire(ctx, n, true)
}

// TryAcquire takes n permits if they are free and no acquire waits. It never waits
// for other contenders, only for the servers' answers, within ctx. If there is no room
// it returns a [*BusyError] that names one of the holders, and if an acquire waits, the
// first of the waiters. It makes no node unless the other contender came in the same
// moment. If ctx descends from leases of the semaphore that leave fewer than n permits,
// it returns [ErrWouldDeadlock] instead. Otherwise it is like Acquire.
func (s *InterProcessSemaphoreV2) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return s.acquire(ctx, n, false)
}

// Do runs fn while n permits are held, as [InterProcessMutex.Do].
func (s *InterProcessSemaphoreV2) Do(ctx context.Context, n int, fn func(ctx context.Context, lease *Lease) error) error {
	return do(ctx, func(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, n) }, fn)
}

// TryDo runs fn if n permits are free, as [InterProcessMutex.TryDo].
func (s *InterProcessSemaphoreV2) TryDo(ctx context.Context, n int, fn func(ctx context.Context, lease *Lease) error) error {
	return do(ctx, func(ctx context.Context) (*Lease, error) { return s.TryAcquire(ctx, n) }, fn)
}

// Path is the path of the semaphore.
func (s *InterProcessSemaphoreV2) Path() string { return s.path }

// Queue lists the leases, one for each permit, in the order in which they were
// made, and behind them the waiters. A waiter that gets its permits while Queue
// reads may be listed twice, and a contender that leaves is left out. See
// [InterProcessMutex.Queue].
func (s *InterProcessSemaphoreV2) Queue(ctx context.Context) ([]Contender, error) {
	waiting, err := s.gate.contenders(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.leases.contenders(ctx)
	if err != nil {
		return nil, &LockError{Op: "list", Path: s.path, Err: err}
	}
	for _, w := range waiting {
		all = append(all, asWaiter(w))
	}
	return all, nil
}

// waiterAhead says of a contender ahead in the queue that it waits for permits.
func waiterAhead(err error) error {
	var busy *BusyError
	if errors.As(err, &busy) {
		busy.Holder = asWaiter(busy.Holder)
	}
	var wait *WaitError
	if errors.As(err, &wait) {
		wait.Ahead, wait.hint = asWaiter(wait.Ahead), false
	}
	return err
}

// asWaiter is a contender of the queue as one for permits: its lock is not the
// semaphore.
func asWaiter(c Contender) Contender {
	c.Holder, c.HeldSince, c.Held, c.Mode = false, time.Time{}, Since{}, ModeLease
	return c
}

// Permits is n permits of the semaphore as one of the locks of an
// [InterProcessMultiLock].
func (s *InterProcessSemaphoreV2) Permits(n int) Lock { return s.permits(n, false) }

func (s *InterProcessSemaphoreV2) permits(n int, try bool) permits { return permits{s, n, try} }

// permits is the protocol of the semaphore for n permits.
type permits struct {
	*InterProcessSemaphoreV2

	n   int
	try bool // the acquire waits for no other
}

func (s *InterProcessSemaphoreV2) acquire(ctx context.Context, n int, wait bool) (*Lease, error) {
	h, err := acquire(ctx, s.c, client.LockInfo{
		Recipe: s.recipe, Mode: ModeLease.String(), Path: s.path, Permits: n, Try: !wait,
	}, s.permits(n, !wait))
	if err != nil {
		return nil, err
	}
	return &Lease{h}, nil
}

// Lease is one or several permits of an [InterProcessSemaphoreV2] that are held.
// They were granted together and are released together, and the loss of one of
// their nodes ends the hold of all.
type Lease struct{ *Hold }

// Permits is how many permits are held.
func (l *Lease) Permits() int { return len(l.grant.Paths) }

// Paths are the paths of the leases' nodes, one for each permit.
func (l *Lease) Paths() []string { return slices.Clone(l.grant.Paths) }

// Data reads what the leases' nodes say, [WithNodeData] or the client's
// default, unless another client has replaced it (Curator: Lease.getData). It asks
// the server, in the session of the lease.
func (l *Lease) Data(ctx context.Context) ([]byte, error) {
	data, _, err := l.grant.Session.Get(ctx, l.Path())
	data, _ = cutRevocation(data)
	return data, err
}

// InterProcessSemaphoreMutex is a fair lock across processes and hosts that is
// not re-entrant. It is Curator's InterProcessSemaphoreMutex, an
// [InterProcessSemaphoreV2] of one permit, and does not exclude an
// [InterProcessMutex] on the same path.
//
// It is safe for concurrent use, holds no state of the lock and needs no Close.
type InterProcessSemaphoreMutex struct{ semaphore *InterProcessSemaphoreV2 }

// NewInterProcessSemaphoreMutex returns the lock on path. It does no I/O.
func NewInterProcessSemaphoreMutex(c *client.Client, path string, opts ...SemaphoreOption) (*InterProcessSemaphoreMutex, error) {
	s, err := NewInterProcessSemaphoreV2(c, path, 1, opts...)
	if err != nil {
		return nil, err
	}
	s.recipe, s.alone = "InterProcessSemaphoreMutex", true
	return &InterProcessSemaphoreMutex{s}, nil
}

// Acquire waits until the lock is held; see [InterProcessSemaphoreV2.Acquire].
// Any goroutine may release the hold. With a context that descends from a hold
// of the lock it returns [ErrWouldDeadlock] at once, where Curator's waits for
// ever.
func (m *InterProcessSemaphoreMutex) Acquire(ctx context.Context) (*Hold, error) {
	return only(m.semaphore.Acquire(ctx, 1))
}

// TryAcquire takes the lock if no other contender holds it or waits for it; see
// [InterProcessSemaphoreV2.TryAcquire].
func (m *InterProcessSemaphoreMutex) TryAcquire(ctx context.Context) (*Hold, error) {
	return only(m.semaphore.TryAcquire(ctx, 1))
}

// only is the hold of a lease of one permit.
func only(l *Lease, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	return l.Hold, nil
}

// Do runs fn while the lock is held, as [InterProcessMutex.Do].
func (m *InterProcessSemaphoreMutex) Do(ctx context.Context, fn func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, m.Acquire, fn)
}

// TryDo runs fn if the lock is free, as [InterProcessMutex.TryDo].
func (m *InterProcessSemaphoreMutex) TryDo(ctx context.Context, fn func(ctx context.Context, hold *Hold) error) error {
	return do(ctx, m.TryAcquire, fn)
}

// Queue lists the holder of the lock and its waiters, in order; see
// [InterProcessSemaphoreV2.Queue].
func (m *InterProcessSemaphoreMutex) Queue(ctx context.Context) ([]Contender, error) {
	return m.semaphore.Queue(ctx)
}

// Path is the path of the lock.
func (m *InterProcessSemaphoreMutex) Path() string { return m.semaphore.Path() }
