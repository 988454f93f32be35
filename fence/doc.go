// Package fence is the resource's side of a fencing token. It refuses a write
// that comes from a hold older than the newest hold that the resource has
// seen.
//
// A lock tells its holder when it is lost. A holder that was paused after it
// looked still writes, and so does a holder whose write was on its way
// already. Only the resource can tell such a write from a good one, by the
// token that came with it (recipes.Hold.FencingToken, which grows with every
// hold).
//
// Work that reads, takes its time and then writes raises the token first:
//
//	shop := fence.Database{DB: db, Dialect: fence.PostgreSQL}
//	err := fence.Do(ctx, lock, shop, "stock", func(ctx context.Context) error {
//		items, err := readStock(ctx, db) // no older holder can change it any more
//		...
//		return shop.Tx(ctx, "stock", func(ctx context.Context, tx *sql.Tx) error {
//			_, err := tx.ExecContext(ctx, "UPDATE stock SET items = $1 WHERE id = 7", items-1)
//			return err
//		})
//	})
//
// Work that fits in one transaction, reads included, takes [Tx], which needs one
// statement less. What compares the tokens is a [Checker]: a [Database], a
// [Gate] in memory, or a [Remote] at the holder. A Remote asks a [Handler] at
// the service by HTTP, and [Transport] sends the token. docs/fencing.md shows
// which to take, and docs/fencing-by-hand.md how to fence what this package does not cover.
//
// # One resource, one lock
//
// Tokens can be compared only if one exclusive lock gave them. A resource has a
// name here. All writers to it must take the same lock, and send the token of
// that lock, not of another lock that they hold as well. A context carries each
// token with the name of its resource, and so does a request. Several readers,
// and several permits of a semaphore, are held at once. This package refuses
// their holds with [ErrShared].
//
// # What is not promised
//
// This package does not see a write by a path that checks nothing. What is
// read from a replica or a cache may be older than the raise. Tokens go back
// when an ensemble is restored from a backup or replaced; then the stored
// tokens have to be lowered by hand.
//
// # Errors
//
// A refused write is a [*StaleError] and matches [ErrStale]: nothing was
// written, and the holder should stop. A missing token is [ErrNoToken]. A
// failed commit matches [ErrCommit].
//
// The package uses the standard library alone, so that a service that guards a
// resource does not depend on ZooKeeper.
package fence
