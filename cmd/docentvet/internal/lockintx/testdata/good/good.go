// Package good takes locks before and after transactions.
package good

import (
	"context"
	"database/sql"

	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func first(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return tx.Commit()
	})
}

func after(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil })
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	return hold.Close()
}

func fenced(ctx context.Context, at fence.Database, lock *recipes.InterProcessMutex) error {
	return fence.Tx(ctx, lock, at, "stock", func(context.Context, *sql.Tx) error { return nil })
}
