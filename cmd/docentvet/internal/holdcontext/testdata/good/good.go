// Package good stops its work when the lock is lost, or works outside of it.
package good

import (
	"context"
	"errors"
	"log/slog"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func sell(ctx context.Context, token int64) error { return ctx.Err() }

func own(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	work, cancel := context.WithCancel(hold.Context())
	defer context.AfterFunc(ctx, cancel)()
	return errors.Join(sell(work, hold.FencingToken()), sell(ctx, 0))
}

func around(ctx context.Context, lock *recipes.InterProcessMutex) error {
	if err := sell(ctx, 1); err != nil {
		return err
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return errors.Join(err, sell(ctx, 2))
	}
	slog.InfoContext(ctx, "held", "lock", hold.LockPath())
	if err := hold.Release(ctx); err != nil {
		return err
	}
	return sell(ctx, 3)
}

func guarded(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	if err := sell(ctx, 1); err != nil {
		return err
	}
	_, err = hold.Guard(ctx, client.SetOp("/mark", nil, -1))
	return err
}

func fenced(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return fence.Under(ctx, hold, at, "stock", func(ctx context.Context) error { return sell(ctx, 1) })
}

func passed(ctx context.Context, lock *recipes.InterProcessMutex, serve func(context.Context, *recipes.Hold) error) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return serve(ctx, hold)
}
