package client

import "time"

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
