package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Database is a database whose table docent_fence ([Dialect.CreateTable])
// holds the tokens of resources. It is a value and safe for concurrent use.
type Database struct {
	DB      *sql.DB
	Dialect Dialect
	// Options of the transactions; nil is what the database does by itself.
	Options *sql.TxOptions
}

var errNoDB = errors.New("fence: Database.DB is nil; open one with sql.Open")

// Tx takes the lock, then runs fn in a transaction of db that commits only
// while the lock is held and no newer holder has written to the resource, and
// then releases the lock. No connection is in use while it waits for the lock.
//
// fn's context carries the token and ends when the lock is lost or ctx ends;
// the transaction is then rolled back. fn must neither commit nor roll back.
//
// If the lock was not obtained, no transaction was opened, fn was not run and
// the error is Acquire's. Any other error is that of [Database.Tx], joined with
// that of the release, which says if the lock was lost. When Tx returns nil the
// transaction is committed: that the lock was lost afterwards, or that its
// release failed and goes on in the background, is no error of the work.
func Tx[H Hold](ctx context.Context, lock Lock[H], db Database, resource string, fn func(ctx context.Context, tx *sql.Tx) error) (err error) {
	h, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if released := h.Close(); err != nil {
			err = errors.Join(err, released)
		}
	}()
	return within(ctx, h, func(ctx context.Context) error { return db.Tx(ctx, resource, fn) })
}

// Tx runs fn in a transaction with the token that ctx carries ([Context],
// [Do], [WithToken]). The token is checked before fn runs. The transaction
// commits if fn returned nil, ctx has not ended and the hold, if ctx knows it,
// still stands; otherwise, and when fn panics, it is rolled back.
//
// An error that matches [ErrCommit] leaves open whether the transaction was
// committed. With every other error nothing was written: a [*StaleError] if the
// token is too old, [ErrNoToken] if ctx carries none, both without running fn;
// fn's error; the reason for which ctx or the hold ended; the database's.
//
// From the check to the end of the transaction newer holders who write to the
// resource wait, with SQLite all writers: keep fn short, and let the database
// end transactions that are idle for long, because a process that is stopped
// in the middle of fn keeps the row locked until its connection is closed.
func (d Database) Tx(ctx context.Context, resource string, fn func(ctx context.Context, tx *sql.Tx) error) (err error) {
	token, ok := Token(ctx)
	if !ok {
		return fmt.Errorf("fence: %w in the context for %q: take the lock with Do or Tx of package fence, or see WithToken", ErrNoToken, resource)
	}
	if d.DB == nil {
		return errNoDB
	}
	tx, err := d.DB.BeginTx(ctx, d.Options)
	if err != nil {
		return fmt.Errorf("fence: begin: %w", because(ctx, err))
	}
	defer func() { _ = tx.Rollback() }() // of a transaction that has ended it does nothing
	if err := d.Dialect.Check(ctx, tx, resource, token); err != nil {
		return because(ctx, err)
	}
	if err := fn(ctx, tx); err != nil {
		return because(ctx, err)
	}
	if err := held(ctx); err != nil {
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

// because adds why ctx has ended, which a driver does not tell: its error says
// that the context was cancelled or the connection closed.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
