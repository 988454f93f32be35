// Package ctxerr says why a context ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
)

// Ended returns nil while ctx lives. Afterwards the error matches ctx.Err()
// and, where there is a cause of its own, the cause.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
