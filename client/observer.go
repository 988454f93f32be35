package client

import (
	"context"
	"time"

	"github.com/docent-go/docent/retry"
)

// Observer is a set of hooks for metrics and traces. Nil fields are skipped.
// It is a struct of functions, like [net/http/httptrace.ClientTrace], so that
// hooks can be added without breaking anybody.
//
// Operation and Retry run on the goroutine of the caller of the operation,
// StateChange on a goroutine of the client; none of them holds a lock of the
// client, and all must be safe for concurrent use. StateChange sees every
// change in order, and delays nothing if it is slow.
//
// A hook may call [Client.Close], which does not wait for the hook that called
// it, nor longer than a moment for others: StateChange may see its last changes
// after Close has returned.
type Observer struct {
	// Operation is called after every operation of [Client] and [Session],
	// retries included in its duration.
	Operation func(OperationInfo)
	// Retry is called before the client sleeps and tries an operation again.
	Retry func(RetryInfo)
	// StateChange is called for every change of the client's state.
	StateChange func(StateChange)
}

// OperationInfo describes a finished operation.
type OperationInfo struct {
	Op       string // "create", "get", ...
	Path     string // as the caller gave it
	Duration time.Duration
	Err      error // nil if it succeeded
}

// RetryInfo describes a failed try that will be repeated.
type RetryInfo struct {
	Op      string
	Path    string
	Attempt retry.Attempt
}

// observeStates feeds StateChange; it owns the goroutine it runs on and ends
// after Closed.
func (c *core) observeStates(ctx context.Context, first *stateEntry) {
	for ch := range c.states.from(ctx, first) {
		c.cfg.observer.StateChange(ch)
	}
}
