package recipes

import (
	"context"

	"github.com/docent-go/docent/client"
)

// InterProcessSemaphoreMutex is a fair lock across processes and hosts that is
// not re-entrant. It is Curator's InterProcessSemaphoreMutex, an
// [InterProcessSemaphore] of one permit, and does not exclude an
// [InterProcessMutex] on the same path.
//
// It is safe for concurrent use, holds no state of the lock and needs no Close.
type InterProcessSemaphoreMutex struct{ semaphore *InterProcessSemaphore }

// NewInterProcessSemaphoreMutex returns the lock on path. It does no I/O.
func NewInterProcessSemaphoreMutex(c *client.Client, path string, opts ...LockOption) (*InterProcessSemaphoreMutex, error) {
	s, err := NewInterProcessSemaphore(c, path, 1, opts...)
	if err != nil {
		return nil, err
	}
	s.recipe = "InterProcessSemaphoreMutex"
	return &InterProcessSemaphoreMutex{s}, nil
}

// Acquire waits until the lock is held; see [InterProcessSemaphore.Acquire].
// Any goroutine may release the hold. With a context that descends from a hold
// of the lock it returns [ErrWouldDeadlock] at once, where Curator's waits for
// ever.
func (m *InterProcessSemaphoreMutex) Acquire(ctx context.Context) (*Hold, error) {
	return only(m.semaphore.Acquire(ctx, 1))
}

// TryAcquire takes the lock if nobody holds it or waits for it; see
// [InterProcessSemaphore.TryAcquire].
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
func (m *InterProcessSemaphoreMutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return do(ctx, m.Acquire, fn)
}

// Queue lists who holds the lock and who waits for it, in order; see
// [InterProcessSemaphore.Queue].
func (m *InterProcessSemaphoreMutex) Queue(ctx context.Context) ([]Contender, error) {
	return m.semaphore.Queue(ctx)
}

// Path is the path of the lock.
func (m *InterProcessSemaphoreMutex) Path() string { return m.semaphore.Path() }
