// Package good guards with a hold.
package good

import (
	"context"
	"database/sql"
	"errors"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func work(context.Context) error { return nil }

func update(context.Context, *sql.Tx) error { return nil }

func guarded(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	_, err = hold.Guard(ctx, client.SetOp("/mark", nil, -1))
	return errors.Join(err, hold.Release(ctx))
}

func rounds(ctx context.Context, lock *recipes.InterProcessMutex) error {
	for {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		if _, err = hold.Guard(ctx, client.SetOp("/mark", nil, -1)); err != nil {
			hold.Close()
			return err
		}
		hold.Close()
	}
}

func tokens(ctx context.Context, gate *fence.Gate, hold *recipes.Hold, token int64) error {
	if err := gate.Check("stock", token); err != nil {
		return err
	}
	return gate.Do(ctx, "stock", hold.FencingToken(), work)
}

func fenced(ctx context.Context, rw *recipes.InterProcessReadWriteLock, at fence.Database) error {
	return fence.Do(ctx, rw.WriteLock(), at, "stock", func(ctx context.Context) error { return at.Tx(ctx, "stock", update) })
}

func under(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database) error {
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return fence.Under(ctx, hold, at, "stock", func(ctx context.Context) error { return at.Tx(ctx, "stock", update) })
	})
}

// Its caller may have fenced ctx for another resource.
func within(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return at.Tx(ctx, "orders", update)
}
