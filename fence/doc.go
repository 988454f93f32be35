// Package fence is the resource's side of a fencing token: it refuses a write
// that comes from a hold older than the newest one it has seen.
//
// A lock tells its holder when it is lost, but a holder that was paused after
// it looked, or whose write was already under way, writes all the same. Only
// the resource can tell such a write from a good one, by the token that came
// with it ([recipes.Hold.FencingToken], which grows with every hold).
//
// In a database, the check is part of the transaction that writes:
//
//	shop := fence.Database{DB: db, Dialect: fence.PostgreSQL}
//	err = fence.Tx(ctx, lock, shop, "stock", func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE stock SET items = items - 1 WHERE id = 7")
//		return err
//	})
//
// [Tx] takes the lock first, then opens the transaction, checks the token,
// runs the function and commits only while the lock is held. Work that is too
// slow for one transaction takes the lock with [Do] and writes with
// [Database.Tx], or calls [Dialect.Check] in a transaction of its own. Behind
// HTTP, [Transport] sends the token and [Handler] checks it against a [Gate],
// which also serves a resource in memory. docs/fencing.md shows which to take,
// and how to fence what this package does not cover.
//
// # One resource, one lock
//
// Tokens can be compared only if one exclusive lock gave them. A resource has
// a name here; all who write to it must take the same lock, and send the token
// of that lock, not of another one that they hold as well. The permits of a
// semaphore and the readers of a read/write lock are no writers: several hold
// at once, and the one that came first would be refused.
//
// # What is not promised
//
// A token orders holders, not writes: what a holder writes before the next one
// has written is accepted, be it late or not. A write by a path that checks
// nothing is not seen. Tokens go back when an ensemble is restored from a
// backup or replaced; then the stored ones have to be lowered by hand.
//
// # Errors
//
// A refused write is a [*StaleError] and matches [ErrStale]; nothing was
// written, and the holder should stop. A missing token is [ErrNoToken]. A
// failed commit matches [ErrCommit].
//
// The package uses the standard library alone, so that a service that guards a
// resource does not depend on ZooKeeper.
package fence
