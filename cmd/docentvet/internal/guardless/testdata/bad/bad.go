// Package bad guards without a hold.
package bad

import (
	"context"
	"database/sql"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func work(context.Context) error { return nil }

func update(context.Context, *sql.Tx) error { return nil }

func late(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	if err := hold.Release(ctx); err != nil {
		return err
	}
	_, err = hold.Guard(ctx, client.SetOp("/mark", nil, -1)) // want `hold was released in line 23, so this Guard is always refused`
	return err
}

func tokens(ctx context.Context, gate *fence.Gate, at fence.Database, who recipes.Contender) error {
	if err := gate.Check("stock", 1); err != nil { // want `1 is a constant and no fencing token, so a late write of an older holder is let through: use the hold's FencingToken\(\)`
		return err
	}
	if err := gate.Do(ctx, "stock", time.Now().UnixNano(), work); err != nil { // want `is a time and no fencing token`
		return err
	}
	return at.Do(ctx, "stock", int64(who.Sequence), work) // want `is a sequence number, which starts again, and no fencing token`
}

func shared(ctx context.Context, rw *recipes.InterProcessReadWriteLock, lease *recipes.Lease, at fence.Database) error {
	if err := fence.Do(ctx, rw.ReadLock(), at, "stock", work); err != nil { // want `rw.ReadLock\(\) is shared by readers, so package fence always refuses it`
		return err
	}
	return fence.Under(ctx, lease, at, "stock", work) // want `lease is a permit`
}

func untaken(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return at.Tx(hold.Context(), "stock", update) // want `the context of this Tx carries no fencing token, so it is always refused: call it in the function of fence.Under\(ctx, hold, ...\)`
}

func unfenced(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database) error {
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return at.Tx(ctx, "stock", update) // want `carries no fencing token`
	})
}
