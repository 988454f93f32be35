package bad

import (
	"context"

	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func inLoop(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	for range jobs {
		if _, err := hold.Guard(ctx); err != nil { // want `hold was released in line 19, so this Guard is always refused`
			return err
		}
		hold.Close()
	}
	return nil
}

func branches(ctx context.Context, lock *recipes.InterProcessMutex, early bool) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	switch {
	case early:
		if err := hold.Release(ctx); err != nil {
			break
		}
	default:
		defer hold.Close()
	}
	_, err = hold.Guard(ctx) // want `hold was released in line 31`
	return err
}

const first = 1

func constants(ctx context.Context, at fence.Database, remote fence.Remote) error {
	if err := remote.Do(ctx, "stock", int64(first), work); err != nil { // want `is a constant`
		return err
	}
	return at.Do(ctx, "stock", (first + 1), work) // want `is a constant`
}

func leads(ctx context.Context, latch *recipes.LeaderLatch, at fence.Database) error {
	return latch.Run(ctx, func(leading context.Context, term *recipes.Term) error {
		if err := at.Tx(leading, "stock", update); err != nil { // want `carries no fencing token`
			return err
		}
		return at.Tx(term.Context(), "stock", update) // want `carries no fencing token`
	})
}
