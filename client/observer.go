package client

import (
	"context"
	"time"

	"github.com/docent-go/docent/retry"
)

// Observer is a set of hooks for metrics and traces. A nil field is skipped and
// costs nothing. It is a struct of functions, like [net/http/httptrace.ClientTrace],
// so that hooks can be added without breaking anybody. docs/hooks.md has what
// each tells, docs/observability.md the names and labels of metrics.
//
// All hooks must be safe for concurrent use, and no lock of the client is held while
// one runs. There are two kinds.
//
// Operation, Retry, Lock and Atomic, and the functions that Operation, Lock and Atomic
// return, run on the goroutine of the caller. A hook that blocks there delays its own caller only. A
// panic of such a hook is the caller's; the hook for the end may then be left out.
// Operation, Lock and Atomic may put values, such as a span, into the context that they
// return. That context must descend from the given one; nil means the given one.
//
// StateChange, Heartbeat, Dial, Removal and the Ended of a hold that is lost run on
// goroutines of the client that do nothing else. A hook that blocks, even for ever,
// delays no heartbeat, no dial, and no holder's news of a loss. It delays only hooks
// of its own kind. StateChange misses nothing. For the others together, 1000 calls
// wait; calls beyond that are dropped, and the log says so. A panic of such a hook
// ends the process, like that of any goroutine.
//
// Cache and the function that it returns have a goroutine for each cache. A hook that blocks
// there delays no cache. Its next call has the counts of all that it has missed.
//
// A hook may call [Client.Close]. Close does not wait for the hook that called it,
// and waits only a moment for others. So a hook may be told of the end after Close
// has returned.
type Observer struct {
	// Operation is called when an operation of [Client] or [Session] begins. The
	// function that it returns is called when the operation has ended, unless it is
	// nil. The operation and its retries run with the returned context. An operation
	// whose arguments are refused counts as well.
	Operation func(ctx context.Context, op OperationInfo) (context.Context, func(OperationResult))
	// Retry is called before the client pauses and tries an operation again, with the
	// context that Operation returned.
	Retry func(ctx context.Context, again RetryInfo)
	// StateChange is called for every change of the client's state, in order.
	StateChange func(StateChange)
	// Heartbeat is called after every heartbeat. There are heartbeats only while
	// something is held, and under [HeartbeatPings] none.
	Heartbeat func(HeartbeatInfo)
	// Dial is called after every dial and its handshake. It is not called for a dial
	// that is cut short by the end of its session or of the client.
	Dial func(DialInfo)
	// Removal is called whenever there is news of a node that the client removes in
	// the background.
	Removal func(RemovalInfo)
	// Lock is called when an acquire or TryAcquire begins. The hooks that it returns
	// hear how the acquire goes on. The operations of the acquire run with the
	// returned context. See [LockInfo] for what counts as an acquire.
	Lock func(ctx context.Context, lock LockInfo) (context.Context, LockHooks)
	// Atomic is called when an operation on an atomic value begins, other than a Get,
	// an Initialize and a ForceSet. The function that
	// it returns is called when the operation has ended, unless it is nil. The
	// requests run with the context of the operation that came first of those that go
	// together in one write.
	Atomic func(ctx context.Context, op AtomicInfo) (context.Context, func(AtomicResult))
	// Cache is called when a cache starts. The function that it returns is called with all
	// news of the cache, unless it is nil: in order, on a goroutine of its own, the last time
	// with [CacheEnded]. A Start that fails ends it too; the next Start is told to Cache again.
	Cache func(CacheInfo) func(CacheUpdate)
}

// OperationInfo describes an operation that begins.
type OperationInfo struct {
	Op   string // "create", "get", ...
	Path string // as the caller gave it
}

// OperationResult describes an operation that has ended.
type OperationResult struct {
	Op       string
	Path     string
	Duration time.Duration
	// Attempts is how often the operation was tried on a connection. It is 0 if there
	// was no connection in time, or if the arguments were refused.
	Attempts int
	Outcome  Outcome // OutcomeDone if it succeeded
	Session  int64   // in which it was tried last, 0 if it was not
	// Sent and Received count the bytes of all requests of the operation and of those
	// answers that came in time. They count them as they are on the wire, below TLS.
	Sent, Received int64
	Err            error // nil if it succeeded
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

// Observer returns the hooks of [WithObserver]. A program with recipes of its own can
// have the hooks told of those as well.
func (c *Client) Observer() Observer { return c.core.cfg.observer }
