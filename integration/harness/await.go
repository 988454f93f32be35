package harness

import (
	"context"
	"fmt"
	"time"
)

const (
	pollInterval = 50 * time.Millisecond
	pollAttempt  = 2 * time.Second
)

// poll calls ask until it returns nil or ctx ends. A server outside the process
// cannot signal, so asking again is the only way to wait for it. The error of a wait
// that fails holds both ctx's cause and the last answer.
func poll(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, pollAttempt)
		err := ask(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
