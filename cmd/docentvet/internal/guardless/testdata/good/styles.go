package good

import (
	"context"
	"database/sql"
	"errors"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

var mark = client.SetOp("/mark", nil, -1)

func ranged(ctx context.Context, holds []*recipes.Hold) error {
	for _, hold := range holds {
		if _, err := hold.Guard(ctx, mark); err != nil {
			return err
		}
		hold.Close()
	}
	return nil
}

func received(ctx context.Context, holds <-chan *recipes.Hold) {
	for {
		select {
		case hold := <-holds:
			_, _ = hold.Guard(ctx, mark)
			hold.Close()
		case <-ctx.Done():
			return
		}
	}
}

func declared(ctx context.Context, next func() *recipes.Hold) {
	for {
		var hold = next()
		_, _ = hold.Guard(ctx, mark)
		hold.Close()
	}
}

// The function takes the lock again.
func renewed(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	again := func() (err error) {
		hold, err = lock.Acquire(ctx)
		return err
	}
	hold.Close()
	if err := again(); err != nil {
		return err
	}
	defer hold.Close()
	_, err = hold.Guard(ctx, mark)
	return err
}

func renew(ctx context.Context, lock *recipes.InterProcessMutex, hold **recipes.Hold) (err error) {
	*hold, err = lock.Acquire(ctx)
	return err
}

func byAddress(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	hold.Close()
	if err := renew(ctx, lock, &hold); err != nil {
		return err
	}
	_, err = hold.Guard(ctx, mark)
	return errors.Join(err, hold.Close())
}

func later(ctx context.Context, lock *recipes.InterProcessMutex, failed bool) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	if failed {
		return hold.Release(ctx)
	}
	_, err = hold.Guard(ctx, mark)
	return err
}

// fenced runs the function with a context that has the token.
func fencedRun(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database, fn func(context.Context, *recipes.Hold) error) error {
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return fence.Under(ctx, hold, at, "stock", func(ctx context.Context) error { return fn(ctx, hold) })
	})
}

func ownRun(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database) error {
	return fencedRun(ctx, lock, at, func(ctx context.Context, hold *recipes.Hold) error {
		return at.Tx(ctx, "stock", update)
	})
}

// The context has the token of the lock outside.
func inside(ctx context.Context, lock, other *recipes.InterProcessMutex, at fence.Database) error {
	return fence.Do(ctx, lock, at, "stock", func(ctx context.Context) error {
		return other.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
			return at.Tx(ctx, "stock", update)
		})
	})
}

func exclusive(ctx context.Context, rw *recipes.InterProcessReadWriteLock, latch *recipes.LeaderLatch, at fence.Database) error {
	err := fence.Tx(ctx, rw.WriteLock(), at, "stock", func(context.Context, *sql.Tx) error { return nil })
	return errors.Join(err, latch.Run(ctx, func(ctx context.Context, term *recipes.Term) error {
		return fence.Under(ctx, term, at, "stock", func(ctx context.Context) error { return at.Tx(ctx, "stock", update) })
	}))
}

type gate struct{}

func (gate) Check(resource string, token int64) error { return nil }

func (gate) Tx(ctx context.Context, resource string, fn func(context.Context, *sql.Tx) error) error {
	return nil
}

func others(ctx context.Context, g gate, lock *recipes.InterProcessMutex) error {
	if err := g.Check("stock", 1); err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { return g.Tx(ctx, "stock", update) })
}
