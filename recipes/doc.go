// Package recipes holds distributed locks and elections on ZooKeeper, compatible on the
// wire with Apache Curator's: Java and Go processes may contend on the same paths.
//
//	c, err := client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181") // package client
//	...
//	lock, err := recipes.NewInterProcessMutex(c, "/locks/orders")
//	...
//	err = lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return sellOne(ctx, db, hold.FencingToken()) // ctx ends when the lock is lost
//	})
//
// Where to go on:
//
//   - Locks: [InterProcessMutex], [InterProcessReadWriteLock],
//     [InterProcessSemaphoreV2], [InterProcessSemaphoreMutex], [InterProcessMultiLock].
//   - Elections: [LeaderLatch], [LeaderSelector].
//   - Counts: package shared. Members: nodes. Barriers: barrier. Caches: cache.
//   - Which recipe: docs/choosing.md. Whole programs: docs/cookbook.md.
//   - Errors: docs/troubleshooting.md. Late writes: package fence.
//   - Tests of what you do under a lock: package zktest.
//
// # Work that does not fit in a function
//
//	hold, err := lock.Acquire(ctx) // ctx bounds the waiting and nothing after it
//	if err != nil {
//		return err
//	}
//	defer hold.Close()
//	work, cancel := context.WithCancel(hold.Context()) // ends with the hold
//	defer context.AfterFunc(ctx, cancel)()             // or with ctx, as in Do
//	err = sellOne(work, db, hold.FencingToken())
//
// An election gives a [Term], which is a [Hold].
//
// # Losing the lock
//
// A hold ends when it is released, when the client's session is over, and when another
// client deletes its node. It also ends if the ensemble has not confirmed the session
// for too long, a safety margin before another client could hold the lock. Then the
// hold's context ends, in a partition too, and [context.Cause] says why. Work must stop
// then; docs/losing-a-lock.md says what that rests on. See [Hold.Deadline],
// [Hold.Confirm] and [Hold.Guard]. A write that is on its way to another system cannot
// be called back. Hand [Hold.FencingToken] to that system, and let it refuse a token
// older than the newest it has seen.
//
// # Re-entry
//
// Curator's locks are re-entrant per thread. Here the call tree is the thread. An
// Acquire whose context descends from [Hold.Context] of a hold of the same lock returns
// another counted hold at once, without I/O. Goroutines that share such a context share
// the lock. The lock is free when every hold of it is released. If an Acquire would wait
// for a hold that its context descends from, it is refused with [ErrWouldDeadlock].
// Examples are a write lock within a read hold, and the same lock by another client.
//
// # Errors
//
// Failures are [*LockError]; see [ErrBusy], [ErrLost], [ErrReleased],
// [ErrNodeDeleted], [ErrSequenceExhausted] and the errors of package client.
// If the session is lost during a wait, the place in the queue is lost with it.
// Acquire then returns an error, and does not queue again in silence.
package recipes
