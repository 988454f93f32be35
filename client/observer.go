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
// Cache and the function that it returns have a goroutine for each cache, Node and its function
// one for each node, Service and its function one for each directory. A hook that blocks there
// delays none of them. Its next call has the counts of all that the cache has done meanwhile, and
// what is newest of the node and of the directory.
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
	// Node is called when a registered node of package recipes/nodes starts. The function
	// that it returns is called with the status at once and with each newer one, unless it is
	// nil: in order, on a goroutine of its own, the last time with [NodeEnded]. A
	// Start that fails ends it too; the next Start is told to Node again.
	Node func(NodeInfo) func(NodeUpdate)
	// Service is called when a directory of package recipes/discovery starts. The function that it
	// returns is called with the counts at once and whenever they change, unless it is nil: in
	// order, on a goroutine of its own, the last time with Ended. A directory is also told to
	// Cache, which says whether it is synced.
	Service func(ServiceInfo) func(ServiceUpdate)
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

// AtomicInfo describes an operation that begins on an atomic value of package
// recipes/shared.
type AtomicInfo struct {
	Recipe string // the type: "DistributedAtomicLong", "Sequence", ...
	Op     string // "add", "subtract", "try to set", "compare and set", "reserve"
	Path   string // of the value, as the caller gave it
}

// AtomicResult describes an operation on an atomic value that has ended. Operations of
// one process that come together go in one write. They have the same tries.
type AtomicResult struct {
	Duration        time.Duration
	OptimisticTries int           // without a lock
	OptimisticTime  time.Duration // that they took
	PromotedTries   int           // under the lock
	PromotedTime    time.Duration // that they took, with the wait for the lock
	Merged          int           // how many operations the write carried, with this one
	Succeeded       bool          // false without an error: a compare and set found another value
	Err             error         // nil unless it failed
}

// RemovalState says what has become of the removal of a node.
type RemovalState int

// The states of a removal. RemovalOwed comes once and first. RemovalFailed comes
// after every try that failed. One of the others comes once, at the end.
const (
	RemovalOwed        RemovalState = iota // the client has taken it on
	RemovalFailed                          // a try failed, and another follows
	RemovalDone                            // the node is gone, or never was
	RemovalWithSession                     // the session is over, and the server deletes the node with it
	RemovalGivenUp                         // the client is closed, or no server accepts it
)

// String returns the state in words.
func (s RemovalState) String() string {
	switch s {
	case RemovalOwed:
		return "owed"
	case RemovalFailed:
		return "failed"
	case RemovalDone:
		return "done"
	case RemovalWithSession:
		return "with session"
	default:
		return "given up"
	}
}

// RemovalInfo is news of a node that the client removes in the background. Either its
// release failed, or it may have been made by a create that got no answer.
type RemovalInfo struct {
	// Path is the path of the node, with the chroot and the namespace. For a create
	// that got no answer, it is the directory in which the client looks for the node.
	Path  string
	State RemovalState
	Begun time.Time // when it was taken on
	Tries int       // so far
	Err   error     // why the newest try failed, or why the removal was given up
}

// HeartbeatInfo describes a heartbeat: a transaction that checks held nodes and
// proves the session for all holds in it.
type HeartbeatInfo struct {
	Session  int64
	Nodes    int // that were checked
	Begun    time.Time
	Duration time.Duration
	// Left is how much time is left then until holds end: until the deadline less the
	// safety margin. It is negative once they are lost.
	Left time.Duration
	// Full is the most that Left can be, by the session timeout and the [LeasePolicy].
	Full time.Duration
	Err  error // why there was no useful answer; nil if there was one
}

// DialInfo describes a dial and the handshake that followed. A phase that was not
// reached took no time.
type DialInfo struct {
	Server    string // of the connect string, "host:port"
	Begun     time.Time
	Duration  time.Duration // all of it
	Transport time.Duration // until the server's port answered
	TLS       time.Duration // after that, with [WithTLS]
	Handshake time.Duration // after that; 0 unless the server accepted the session
	Session   int64         // that the server accepted, or 0
	Restored  bool          // the session was there before
	Err       error         // nil if the server accepted the session
}

// CacheInfo describes a cache of package recipes/cache that starts.
type CacheInfo struct {
	Recipe string // the type: "Tree", "LooseTree", "Children", "Value" or "ServiceCache"
	Path   string // that it follows, as the caller gave it
}

// CacheState is how a cache stands.
type CacheState int

// The states of a cache.
const (
	CacheSyncing CacheState = iota // it has no snapshot yet
	CacheSynced                    // it hears of each change
	CacheStale                     // it has a snapshot, and does not hear of changes
	CacheEnded                     // by Close, with its client, or as its Start failed; the last update
)

// String returns the state in lower case.
func (s CacheState) String() string {
	if s < CacheSyncing || s > CacheEnded {
		return "unknown"
	}
	return [...]string{"syncing", "synced", "stale", "ended"}[s]
}

// CacheCause is what led to a snapshot.
type CacheCause int

// The causes of snapshots.
const (
	CacheChanged CacheCause = iota // the servers have told of changes
	CacheStarted                   // it is the first one
	CacheResync                    // the cache has read everything again, after a reconnection or a fault
)

// String returns the cause in lower case.
func (c CacheCause) String() string {
	if c < CacheChanged || c > CacheResync {
		return "unknown"
	}
	return [...]string{"changed", "started", "resync"}[c]
}

// CacheUpdate is news of a cache. If the hook is slower than the cache, one update stands for
// several snapshots: it describes the newest, and its counts have all of them.
type CacheUpdate struct {
	State CacheState
	Err   error // why it is not synced, or why its Start failed; nil if that is not known
	Zxid  int64 // of the newest snapshot, 0 if there is none
	Nodes int   // in the newest snapshot

	// Snapshots is how many snapshots there were since the update before. If it is 0, Cause
	// and Delay mean nothing.
	Snapshots int64
	// Cause is what led to the newest of them.
	Cause CacheCause
	// Delay is how long the oldest change that the newest snapshot shows has waited for it, from
	// when the cache heard of it. Of a first snapshot and of a resync it is how long the reading
	// took.
	Delay time.Duration

	// Resyncs, Gaps and Limits say how often, since the update before, the cache has read
	// everything again, has found servers that had gone back, and has found that the nodes
	// exceed a limit of the cache or of the client.
	Resyncs, Gaps, Limits int64
}

// NodeInfo describes a registered node of package recipes/nodes that starts.
type NodeInfo struct {
	Recipe string // the type: "PersistentNode" or "GroupMember"
	Path   string // as the caller gave it
}

// NodeState is how a registered node stands.
type NodeState int

// The states of a registered node.
const (
	NodeAbsent  NodeState = iota // it does not stand yet, or no more, and is being made
	NodeStands                   // it stands, made by this client
	NodeForeign                  // another client's node stands in its place
	NodeRefused                  // a server refuses it
	NodeEnded                    // by Close, with its client, as its Start failed, or removed for good; the last update
)

// String returns the state in lower case.
func (s NodeState) String() string {
	if s < NodeAbsent || s > NodeEnded {
		return "unknown"
	}
	return [...]string{"absent", "stands", "foreign", "refused", "ended"}[s]
}

// NodeUpdate is news of a registered node.
type NodeUpdate struct {
	State NodeState
	Err   error // why it does not stand, or why the newest try failed; nil if there is no reason
}

// LockInfo describes an acquire of a lock of package recipes that begins.
//
// An acquire that re-enters a hold does not count as one, and the hold that it
// returns is part of the first hold. That hold ends, for LockHooks, with the release
// of the last of them. A downgrade of a write hold is an acquire of the read lock.
// So is an acquire of the read lock within a write hold. A multi-lock is one acquire
// and one hold; its locks do not count.
type LockInfo struct {
	Recipe  string // the type: "InterProcessMutex", "InterProcessReadWriteLock", ...
	Mode    string // "exclusive", "read", "write" or "lease", as recipes.Mode; "multi" for a multi-lock
	Path    string // of the lock, as the caller gave it; those of a multi-lock joined by plus signs
	Permits int    // of a semaphore, 0 otherwise
	Try     bool   // it does not wait for other holders
}

// LockHooks hear of one acquire and of the hold that it leads to. A nil hook is
// skipped.
//
// They are called in this order. Queued comes any number of times. Acquired comes
// once, whatever the outcome. If the lock was acquired, Held and Ended follow, once
// each. Ended runs on the goroutine that releases. If the hold is lost before that,
// Ended runs on a goroutine of the client. The others run on the goroutine of the
// acquire. While Acquired and Held run the hold counts already, and it is lost in
// time even if one of them does not return.
type LockHooks struct {
	// Queued is called when the caller has a place in the queue, and when the caller
	// finds that its place has changed. The caller looks again when its predecessor
	// leaves.
	Queued func(QueuePlace)
	// Acquired is called when the acquire has ended.
	Acquired func(AcquireResult)
	// Held is called when the hold begins, with the context that the hold will give
	// to its user. That context carries the values of the caller's context, not those
	// of the context that Observer.Lock returned. The context that Held returns takes
	// its place. It must descend from the given one; nil changes nothing.
	Held func(ctx context.Context, hold HoldInfo) context.Context
	// Ended is called when the hold has ended: after a release when the delete of its
	// nodes was answered. The next hold of the same client may have begun before, so
	// that its Held comes before this Ended.
	Ended func(HoldResult)
}

// QueuePlace is the place of a waiter in the queue of a lock.
type QueuePlace struct {
	Path string // of the lock; for a multi-lock, of one of its locks
	Node string // the waiter's node. It has a UUID: it is for spans and logs, and never a label
	// Ahead is how many waiters have to leave first: 0 if it is the caller's turn.
	// The first waiter in the queue of a semaphore may still have to wait for
	// permits.
	Ahead int
	// Behind is the name of the predecessor's node, for which the caller waits. It is
	// "" if it is the caller's turn.
	Behind string
}

// AcquireOutcome says what came of an acquire.
type AcquireOutcome int

// The outcomes of an acquire.
const (
	AcquireFailed   AcquireOutcome = iota // with another error
	AcquireDone                           // the lock is held
	AcquireBusy                           // another contender is ahead of a TryAcquire
	AcquireTimeout                        // the deadline of its context has passed
	AcquireCanceled                       // its context was canceled
)

// String returns the outcome in a word that is fit for a label.
func (o AcquireOutcome) String() string {
	switch o {
	case AcquireDone:
		return "acquired"
	case AcquireBusy:
		return "busy"
	case AcquireTimeout:
		return "timeout"
	case AcquireCanceled:
		return "canceled"
	default:
		return "error"
	}
}

// AcquireResult describes an acquire that has ended.
type AcquireResult struct {
	HoldInfo // zero unless it is held

	Duration time.Duration
	Outcome  AcquireOutcome
	Err      error // nil if the lock is held
}

// HoldInfo describes a hold.
type HoldInfo struct {
	Node         string // that of the hold, the first of several; "" for a multi-lock
	Session      int64  // 0 for a multi-lock
	FencingToken int64
}

// HoldEnd says how a hold ended.
type HoldEnd int

// The ends of a hold. All but the first are losses.
const (
	HoldReleased    HoldEnd = iota
	HoldLostLease           // the ensemble did not confirm the session in time
	HoldLostSession         // the session was lost
	HoldLostNode            // another client or an operator deleted the node of the hold
	HoldLostClosed          // the client was closed first
)

// Lost reports whether the hold ended before its release.
func (e HoldEnd) Lost() bool { return e != HoldReleased }

// String returns the end in a word that is fit for a label.
func (e HoldEnd) String() string {
	switch e {
	case HoldReleased:
		return "released"
	case HoldLostLease:
		return "lease"
	case HoldLostNode:
		return "deleted"
	case HoldLostClosed:
		return "closed"
	default:
		return "session"
	}
}

// HoldResult describes a hold that has ended.
type HoldResult struct {
	HoldInfo

	Path string // of the lock; for a multi-lock that was lost, of the lock that was
	// Duration is how long the lock was held. A release counts until the server has
	// removed the node, or until the client removes it in the background.
	Duration time.Duration
	End      HoldEnd
	Err      error // why it was lost, or what the release returned
}

// ServiceInfo describes a directory of package recipes/discovery that starts.
type ServiceInfo struct {
	Service string // its name
	Path    string // of its folder, with the base path as the caller gave it
}

// ServiceUpdate is news of a directory: what the newest snapshot has. While the directory is
// stale, it is what was read last.
type ServiceUpdate struct {
	Offered  int // instances that may be called
	Disabled int // instances that stand, and want no calls
	Skipped  int // nodes that are no usable instance
	// Ended: by Close, or with its client; the last update.
	Ended bool
}
