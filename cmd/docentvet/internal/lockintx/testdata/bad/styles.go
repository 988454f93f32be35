package bad

import (
	"context"
	"database/sql"

	"github.com/docent-go/docent/recipes"
)

// transaction is that of another library, which nests.
type transaction interface {
	Begin(ctx context.Context) (transaction, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

type pool interface {
	Begin(ctx context.Context) (transaction, error)
}

func library(ctx context.Context, db pool, lock *recipes.InterProcessMutex) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if err := lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil }); err != nil { // want `lock.Do takes a lock while the transaction tx is open`
		return err
	}
	return tx.Commit(ctx)
}

func branches(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex, dry bool) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if dry {
		_ = tx.Rollback()
	}
	hold, err := lock.Acquire(ctx) // want `lock.Acquire takes a lock while`
	if err != nil {
		return err
	}
	defer hold.Close()
	return tx.Commit()
}

func conditions(ctx context.Context, tx *sql.Tx, s *recipes.InterProcessSemaphoreV2) error {
	if lease, err := s.Acquire(ctx, 1); err == nil { // want `s.Acquire takes a lock while`
		defer lease.Close()
	}
	return nil
}

func later(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex, atEnd func(func() error)) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	atEnd(tx.Rollback)
	rows, err := tx.Query("SELECT 1")
	if err != nil {
		return err
	}
	rows.Close()
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return tx.Commit() }) // want `lock.Do takes a lock`
}
