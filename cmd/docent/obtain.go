//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/retry"
)

// interruptible calls f with a context that ends when a signal comes. It returns when f
// has returned; after a signal the error is that, whatever f returned.
func (j *job) interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }() // ends with ctx at the latest
	var stop signalled
	select {
	case err := <-done:
		if !errors.As(context.Cause(ctx), &stop) {
			return err
		}
	case s := <-j.signals:
		stop = signalled{s.(syscall.Signal)} //nolint:forcetypeassert,errcheck // on Unix it is one
		cancel(stop)
		<-done
	}
	return &exitError{exitSignalled + int(stop.Signal), fmt.Errorf("%w while waiting; the queue was left", stop)}
}

// obtain waits for the hold. If it had to wait for another client, it lets that one's
// command end.
func (j *job) obtain(ctx context.Context, take taker) (*recipes.Hold, error) {
	var hold *recipes.Hold
	err := j.interruptible(ctx, func(ctx context.Context) (err error) {
		if j.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, j.timeout, errTimeUp)
			defer cancel()
		}
		var waited bool
		hold, waited, err = j.take(ctx, take)
		if err == nil && waited {
			err = j.settled(ctx, hold)
		}
		if err != nil && errors.Is(context.Cause(ctx), errTimeUp) || errors.Is(err, recipes.ErrBusy) {
			err = &exitError{j.conflict, behind(err)}
		}
		return err
	})
	if err == nil {
		return hold, nil
	}
	if hold != nil {
		_ = hold.Close()
	}
	return nil, ownFailure(err)
}

// behind is the error of a wait. If that was behind another waiter, it says how to see who holds.
func behind(err error) error {
	var lock *recipes.LockError
	var wait *recipes.WaitError
	if errors.As(err, &lock) && errors.As(err, &wait) && !wait.Ahead.Holder {
		return fmt.Errorf("%w; docent who %s says who holds", err, lock.Path)
	}
	return err
}

// errTimeUp is the cause of the context that --timeout has ended.
var errTimeUp = errors.New("the time of --timeout is over")

// take takes at once if that is possible. Otherwise it waits, if it may.
func (j *job) take(ctx context.Context, take taker) (hold *recipes.Hold, waited bool, err error) {
	hold, err = take(ctx, false)
	if err == nil || j.try {
		return hold, false, err
	}
	if j.to.verbose && errors.Is(err, recipes.ErrBusy) {
		say(j.io.err, "waiting: %v", err)
	}
	// Another failure may be that of one try alone, such as one sent behind others.
	hold, err = take(ctx, true)
	if err == nil || !j.again {
		return hold, true, err
	}
	err = retry.Do(ctx, retry.Default(), func(ctx context.Context) error {
		if hold, err = take(ctx, true); err != nil && hopeless(err) {
			return retry.Permanent(err)
		}
		return err
	}, retry.OnRetry(func(a retry.Attempt) { say(j.io.err, "%v; trying again", a.Err) }))
	return hold, true, err
}

// hopeless reports whether another try to take fails as well.
func hopeless(err error) bool {
	for _, final := range []error{
		client.ErrClosed, client.ErrNoAuth, client.ErrInvalidACL, client.ErrInvalidPath, client.ErrUnsafeTimeout,
		recipes.ErrForeignLock, recipes.ErrSequenceExhausted,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// settled lets the time of --settle pass while the hold lasts.
func (j *job) settled(ctx context.Context, hold *recipes.Hold) error {
	select {
	case <-time.After(j.settle):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-hold.Context().Done():
		return &exitError{exitLost, fmt.Errorf("the lock was lost before the command began: %w", context.Cause(hold.Context()))}
	}
}
