// Package ctxerr says why a context ended, refuses one that is missing, and sleeps until one ends.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Ended returns nil while ctx lives. Afterwards the error matches ctx.Err() and the
// cause, if ctx has a cause of its own.
func Ended(ctx context.Context) error {
	Require(ctx)
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// Require panics if ctx is nil, as the functions of package context do with a nil
// parent: only a change of the caller's code can help.
func Require(ctx context.Context) {
	if ctx == nil {
		panic("docent: the context is nil; pass that of the caller, or context.Background() to wait without an end")
	}
}

// Sleep returns nil when d has passed. If ctx ends first, it returns why.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
