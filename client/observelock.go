package client

import (
	"context"
	"time"
)

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
