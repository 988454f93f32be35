package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
)

// Database is a database whose table docent_fence ([Dialect.CreateTable])
// holds the tokens of resources. It is a value and safe for concurrent use.
type Database struct {
	DB      *sql.DB
	Dialect Dialect
	// Options are the options of Tx's transactions; nil leaves them to the
	// database.
	Options *sql.TxOptions
}

var errNoDB = errors.New("fence: Database.DB is nil; open one with sql.Open")

// Tx takes the lock, runs fn in a transaction of db, and releases the lock. The
// transaction commits only while the lock is held and no newer holder has been
// seen at the resource. No connection is in use while Tx waits for the lock.
//
// fn must read what it decides by inside of fn. Work that reads and then takes
// its time belongs into [Do], which raises the token before it.
//
// fn's context carries the token. When the lock is lost or ctx ends, it ends
// and the transaction is rolled back. fn must neither commit nor roll back.
//
// Inside another transaction Tx may be refused with [ErrTxOpen], before it takes the
// lock; see [Database.Tx]. If the lock was not obtained, no transaction was opened, fn did not run and
// the error is that of the lock. A hold that is not exclusive is refused with
// [ErrShared]. Any other error is that of [Database.Tx], joined with that of
// the release, which says if the lock was lost. When Tx returns nil the
// transaction is committed. It returns no error for a lock that was lost
// afterwards, or for a release that failed and goes on in the background.
func Tx[H Hold](ctx context.Context, lock Lock[H], db Database, resource string, fn func(ctx context.Context, tx *sql.Tx) error) error {
	if fn == nil {
		return errNoFunction
	}
	if err := db.notInside(ctx, resource); err != nil {
		return err
	}
	committed := false
	err := lock.Do(ctx, func(ctx context.Context, hold H) error {
		if err := exclusive(hold, resource); err != nil {
			return err
		}
		// Raised by the transaction itself: all that fn reads comes after.
		err := db.Tx(under(ctx, hold, resource, db.DB), resource, fn)
		committed = err == nil
		return err
	})
	if committed {
		return nil
	}
	return err
}

// Do raises the token of the resource by a statement of its own, and then runs
// fn. No write of an older holder is accepted after fn has begun. So what fn
// reads in this database stays true until a write with this token or a newer
// one. fn's context carries the token; fn writes by [Database.Tx], as often as
// it likes.
//
// Use it through [Do] or [Under] where the lock is taken. A service that was
// handed a token calls it with that token.
//
// The error is fn's. If fn did not run, it is a [*StaleError] if the token is
// too old, [ErrNoToken] if it is not positive, [ErrTxOpen] as from [Database.Tx], or
// the database's. In the last
// case the token may have been raised, which harms no newer holder: repeat the
// call.
func (d Database) Do(ctx context.Context, resource string, token int64, fn func(ctx context.Context) error) error {
	if fn == nil {
		return errNoFunction
	}
	if d.DB == nil {
		return errNoDB
	}
	if err := d.notInside(ctx, resource); err != nil {
		return err
	}
	if err := d.Dialect.check(ctx, d.DB, resource, token); err != nil {
		return because(ctx, err)
	}
	return fn(carry(ctx, resource, token, d.DB))
}

// Tx runs fn in a transaction with the token that ctx carries for resource. The
// context must come from [Database.Do] with the same DB, directly or through
// [Do], [Under] or [Handler]. The token is checked again before fn runs. The
// transaction commits if fn returned nil, ctx has not ended and the hold, if
// ctx knows it, still stands. Otherwise, and when fn panics, it is rolled back.
//
// An error that matches [ErrCommit] leaves open whether the transaction was
// committed. With every other error nothing was written. Such an error is one
// of these:
//   - a [*StaleError], if the token is too old; fn did not run
//   - [ErrNoToken], if ctx carries no token that was raised for resource in
//     this database; fn did not run
//   - [ErrTxOpen], if ctx is inside a transaction of the same DB that is open for
//     resource, with SQLite for any resource; fn did not run
//   - fn's error
//   - the reason for which ctx or the hold ended
//   - the database's error
//
// From the check to the end of the transaction, newer holders that write to the
// resource wait; with SQLite all writers wait. Keep fn short, and let the
// database end transactions that are idle for long. A process that is stopped
// inside fn keeps the row locked until its connection is closed.
func (d Database) Tx(ctx context.Context, resource string, fn func(ctx context.Context, tx *sql.Tx) error) (err error) {
	if fn == nil {
		return errNoFunction
	}
	if d.DB == nil {
		return errNoDB
	}
	b, err := d.raised(ctx, resource)
	if err != nil {
		return err
	}
	if err := d.notInside(ctx, resource); err != nil { // the token may have been raised before the other one began
		return err
	}
	tx, err := d.DB.BeginTx(ctx, d.Options)
	if err != nil {
		return fmt.Errorf("fence: begin: %w", because(ctx, err))
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the end of the transaction
	if err := d.Dialect.Check(ctx, tx, resource, b.token); err != nil {
		return because(ctx, err)
	}
	open := &openTx{db: d.DB, resource: resource}
	open.outer, _ = ctx.Value(openTxKey{}).(*openTx)
	defer open.over.Store(true)
	if err := fn(context.WithValue(ctx, openTxKey{}, open), tx); err != nil {
		return because(ctx, err)
	}
	if err := b.ended(ctx); err != nil {
		return fmt.Errorf("fence: not committed: %w", err)
	}
	switch err := tx.Commit(); {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil: // it was rolled back first
		return fmt.Errorf("fence: not committed: %w", because(ctx, err))
	default:
		return fmt.Errorf("fence: %w: %w", ErrCommit, because(ctx, err))
	}
}

// openTx is in the context of a transaction's function.
type openTx struct {
	db       *sql.DB
	resource string
	over     atomic.Bool // the transaction has ended, and somebody kept the context
	outer    *openTx
}

type openTxKey struct{}

// notInside refuses what would wait for a transaction that ctx is inside of.
func (d Database) notInside(ctx context.Context, resource string) error {
	open, _ := ctx.Value(openTxKey{}).(*openTx)
	for ; open != nil; open = open.outer {
		if open.db == d.DB && !open.over.Load() && (open.resource == resource || d.Dialect == SQLite) {
			return fmt.Errorf("fence: %w, for %q, and one for %q would wait for its end: pass its *sql.Tx on", ErrTxOpen, open.resource, resource)
		}
	}
	return nil
}

// raised returns the token that ctx carries for resource, if it was raised in
// this database before what the caller has read.
func (d Database) raised(ctx context.Context, resource string) (*bearer, error) {
	b := find(ctx, resource)
	if at := b.at(d.DB); at != nil {
		return at, nil
	}
	switch {
	case b != nil:
		return nil, fmt.Errorf("fence: %w for %q that was raised in this database; begin with its Do", ErrNoToken, resource)
	case carried(ctx) != nil:
		return nil, fmt.Errorf("fence: %w in the context for %q, only for %q", ErrNoToken, resource, carried(ctx).resource)
	}
	return nil, fmt.Errorf("fence: %w in the context for %q; take the lock with Do or Tx of package fence", ErrNoToken, resource)
}

// because adds why ctx has ended. Drivers do not tell: their errors say that
// the context was cancelled or the connection closed.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
