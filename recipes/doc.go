// Package recipes holds distributed locks on ZooKeeper that are compatible on
// the wire with Apache Curator's: Java and Go processes may contend on the
// same paths at the same time. Types keep Curator's names.
//
// Acquiring returns a value, the [Hold]:
//
//	lock, err := recipes.NewInterProcessMutex(c, "/locks/orders")
//	...
//	err = lock.Do(ctx, func(ctx context.Context) error {
//		return sellOne(ctx, db) // ctx ends when the lock is lost
//	})
//
// or, where the work does not fit in a function:
//
//	hold, err := lock.Acquire(ctx) // ctx bounds the waiting and nothing after it
//	if err != nil {
//		return err
//	}
//	defer hold.Close()
//	err = sellOne(hold.Context(), db)
//
// # Losing the lock
//
// A hold ends when it is released, when the client's session is over, and
// when somebody deletes its node. Its context ends then, and
// [context.Cause] says why. The session is over at the latest when its
// timeout has passed since the send time of the newest request that a server
// answered, also in a partition in which nobody tells. Work must stop then.
// What is already on its way to another system when that happens cannot be
// called back: hand [Hold.FencingToken] to that system, and let it refuse a
// token older than the newest it has seen.
//
// # Re-entry
//
// Curator's locks are re-entrant per thread. Here the call tree is the
// thread: an Acquire whose context descends from [Hold.Context] of a hold of
// the same lock returns another counted hold at once, without I/O. Goroutines
// that share such a context share the lock. The lock is free when every hold
// of it is released.
//
// # Errors
//
// Failures are [*LockError]; see [ErrBusy], [ErrLost], [ErrReleased],
// [ErrNodeDeleted], [ErrSequenceExhausted] and the errors of package client.
// When the session is lost during a wait, the place in the queue is lost with
// it and Acquire says so instead of queueing anew in silence.
package recipes
