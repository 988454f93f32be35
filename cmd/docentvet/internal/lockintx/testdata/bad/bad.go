// Package bad takes locks inside transactions.
package bad

import (
	"context"
	"database/sql"

	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func acquire(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	hold, err := lock.Acquire(ctx) // want `lock.Acquire takes a lock while the transaction tx is open`
	if err != nil {
		return err
	}
	defer hold.Close()
	return tx.Commit()
}

func do(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil }); err != nil { // want `lock.Do takes a lock while the transaction tx is open`
		return tx.Rollback()
	}
	return tx.Commit()
}

func param(ctx context.Context, tx *sql.Tx, latch *recipes.LeaderLatch) error {
	term, err := latch.Campaign(ctx) // want `latch.Campaign takes a lock while`
	if err != nil {
		return err
	}
	return term.Close()
}

func fenced(ctx context.Context, at fence.Database, lock *recipes.InterProcessMutex) error {
	return at.Tx(ctx, "stock", func(ctx context.Context, tx *sql.Tx) error {
		return fence.Do(ctx, lock, at, "price", func(context.Context) error { return nil }) // want `fence.Do takes a lock while the transaction tx is open`
	})
}
