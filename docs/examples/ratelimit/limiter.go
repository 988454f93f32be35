package main

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// limiter lets all processes together begin at most a number of calls within any time
// of window. A call takes a permit and keeps it for a window, so that the next call of
// that permit is a window later. It is safe for concurrent use.
type limiter struct {
	permits *recipes.InterProcessSemaphoreV2
	window  time.Duration
	kept    sync.WaitGroup // permits whose window has not passed
}

// newLimiter allows calls within window. Every process of a path passes the same numbers.
func newLimiter(c *client.Client, path string, calls int, window time.Duration) (*limiter, error) {
	permits, err := recipes.NewInterProcessSemaphoreV2(c, path, calls)
	return &limiter{permits: permits, window: window}, err
}

// do waits for its turn and runs call. ctx bounds the waiting and the call. If the
// session ends, call's context ends, too: the permit is free then, before its time.
func (l *limiter) do(ctx context.Context, call func(context.Context) error) error {
	lease, err := l.permits.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	began := time.Now()
	working, cancel := context.WithCancelCause(lease.Context())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	err = call(working)
	stop()
	cancel(nil)
	l.kept.Go(func() {
		select {
		case <-time.After(l.window - time.Since(began)):
		case <-lease.Context().Done():
		}
		_ = lease.Close() // what cannot be released now is removed in the background
	})
	return err
}

// wait returns when no window lasts any more. A process that ends before gives its
// permits back early.
func (l *limiter) wait() { l.kept.Wait() }
