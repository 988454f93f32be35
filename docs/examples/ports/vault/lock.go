package vault

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// patience bounds the calls for which Vault gives no context.
const patience = 10 * time.Second

// Lock is the lock of the active server. It waits for zk.Lock of go-zookeeper on the same key.
type Lock struct {
	b     *Backend
	mutex *recipes.InterProcessMutex
	value []byte

	mu   sync.Mutex
	held bool          // from Lock to Unlock
	hold *recipes.Hold // the newest, also when it is over
}

var _ physical.Lock = (*Lock)(nil)

// Lock waits until the lock is held, or until stop is closed, which returns nil. The channel
// is closed when the lock is lost: a safety margin before another server can hold it.
func (l *Lock) Lock(stop <-chan struct{}) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return nil, errors.New("lock already held")
	}
	ctx, cancel := context.WithCancel(background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	hold, err := l.mutex.Acquire(ctx)
	if err != nil {
		return nil, unlessStopped(ctx, err)
	}
	if _, err := hold.Guard(ctx, client.SetOp(l.mutex.Path(), l.value, client.AnyVersion)); err != nil {
		return nil, unlessStopped(ctx, errors.Join(err, hold.Close()))
	}
	l.held, l.hold = true, hold
	return hold.Context().Done(), nil
}

// unlessStopped returns err, or nil if Vault has stopped the wait.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// Unlock releases the lock. After an error its node is removed in the background.
func (l *Lock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		return nil
	}
	l.held = false
	err := l.hold.Close()
	if errors.Is(err, recipes.ErrLost) {
		return nil // it is free, which is all that the caller wants
	}
	return err
}

// Value tells whether any server holds or waits, and what the last holder wrote.
func (l *Lock) Value() (bool, string, error) {
	ctx, cancel := context.WithTimeout(background(), patience)
	defer cancel()
	value, stat, err := l.b.c.Get(ctx, l.mutex.Path())
	switch {
	case errors.Is(err, client.ErrNoNode):
		return false, "", nil
	case err != nil:
		return false, "", err
	}
	return stat.NumChildren > 0, string(value), nil
}

// background is for calls to which Vault gives no context.
func background() context.Context {
	return context.Background()
}
