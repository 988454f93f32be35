package shared

import (
	"context"
	"time"

	"github.com/docent-go/docent/client"
)

// observe tells the observer, if it asked for that, that an operation begins. The
// function that it returns tells of the end.
func (a *atom[T]) observe(ctx context.Context, op string) (context.Context, func(AtomicStats, bool, error)) {
	hook := a.c.Observer().Atomic
	if hook == nil {
		return ctx, func(AtomicStats, bool, error) {}
	}
	begun := time.Now()
	within, ended := hook(ctx, client.AtomicInfo{Recipe: a.recipe, Op: op, Path: a.path})
	if within == nil {
		within = ctx
	}
	if ended == nil {
		return within, func(AtomicStats, bool, error) {}
	}
	return within, func(stats AtomicStats, succeeded bool, err error) {
		ended(client.AtomicResult{
			Duration: time.Since(begun), Succeeded: succeeded, Err: err, Merged: stats.Merged,
			OptimisticTries: stats.OptimisticTries, OptimisticTime: stats.OptimisticTime,
			PromotedTries: stats.PromotedTries, PromotedTime: stats.PromotedTime,
		})
	}
}
