// Package ctxerr says why a context ended, and refuses one that is missing.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
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
