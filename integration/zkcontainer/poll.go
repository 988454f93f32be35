package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	pollInterval = 25 * time.Millisecond
	pollFirst    = 250 * time.Millisecond // for an attempt; the one after a silent one gets twice the time
	pollAttempt  = 2 * time.Second        // for every attempt
)

// hopeless is an error after which it is no use to ask again.
type hopeless struct{ error }

func (h hopeless) Unwrap() error { return h.error }

// poll calls ask until it returns nil or something hopeless, or ctx ends. A server outside the
// process cannot signal, so asking again is the only way to wait for it. ZooKeeper may take a
// question while it starts and never answer it, so attempts are short until some were silent.
// The error of a wait that fails holds both ctx's cause and the last answer.
func poll(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last error
	limit := pollFirst
	for {
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := ask(attempt)
		if attempt.Err() != nil {
			limit = min(2*limit, pollAttempt)
		}
		cancel()
		if err == nil || errors.As(err, new(hopeless)) {
			return err
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// Await calls ask until it returns no error or ctx ends, and returns what it returned
// last. A call gets a quarter of a second, and each one after a call that ran into that twice
// the time, up to two seconds. The error when ctx ends holds its cause and the last error of ask.
func Await[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	var got T
	err := poll(ctx, func(ctx context.Context) (err error) {
		got, err = ask(ctx)
		return err
	})
	return got, err
}
