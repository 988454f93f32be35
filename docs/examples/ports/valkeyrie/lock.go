package valkeyrie

import (
	"context"
	"errors"
	"sync"

	"github.com/kvtools/valkeyrie/store"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// NewLock returns a lock, also against locks of Valkeyrie's own store. There is no TTL: the
// lock ends with the session.
func (s *Store) NewLock(_ context.Context, key string, opts *store.LockOptions) (store.Locker, error) {
	mutex, err := recipes.NewInterProcessMutex(s.c, node(key), recipes.WithPersistentParents())
	if err != nil {
		return nil, err
	}
	l := &locker{mutex: mutex}
	if opts != nil {
		l.value = opts.Value
	}
	return l, nil
}

// locker is safe for concurrent use.
type locker struct {
	mutex *recipes.InterProcessMutex
	value []byte

	mu   sync.Mutex
	hold *recipes.Hold
}

// Lock waits until the lock is held or ctx ends, and writes the value. The channel is closed
// when the lock is lost, a safety margin before another client can hold it. When ctx ends the
// lock is released.
func (l *locker) Lock(ctx context.Context) (<-chan struct{}, error) {
	hold, err := l.mutex.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := hold.Guard(ctx, client.SetOp(l.mutex.Path(), l.value, client.AnyVersion)); err != nil {
		return nil, errors.Join(err, hold.Close())
	}
	release := context.AfterFunc(ctx, func() { _ = hold.Close() })
	context.AfterFunc(hold.Context(), func() { release() })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = hold
	return hold.Context().Done(), nil
}

// Unlock releases the lock. A lock that is not held, or not any more, is an error.
func (l *locker) Unlock(ctx context.Context) error {
	l.mu.Lock()
	hold := l.hold
	l.hold = nil
	l.mu.Unlock()
	if hold == nil {
		return errors.New("the lock is not held")
	}
	return hold.Release(ctx)
}
