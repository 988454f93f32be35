package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// ctx ends inside the second try; the error of the first must survive whatever
// the second returns.
func TestDoContextEndsDuringATry(t *testing.T) {
	t.Parallel()
	errUnknown := errors.New("unknown outcome")
	tests := []struct {
		name   string
		second func(ctx context.Context) error
		text   string
		is     []error
	}{
		{
			"bare ctx error",
			func(ctx context.Context) error { return ctx.Err() },
			"retry: stopped after 2 tries: context canceled; last error: connection closed",
			[]error{context.Canceled, errWhy, errFlaky},
		},
		{
			"cause only",
			func(ctx context.Context) error { return fmt.Errorf("get: %w", context.Cause(ctx)) },
			"retry: stopped after 2 tries: get: shutting down; last error: connection closed",
			[]error{context.Canceled, errWhy, errFlaky},
		},
		{
			"classified ctx error",
			func(ctx context.Context) error { return fmt.Errorf("get: %w: %w", errUnknown, ctx.Err()) },
			"retry: stopped after 2 tries: get: unknown outcome: context canceled; last error: connection closed",
			[]error{context.Canceled, errWhy, errFlaky, errUnknown},
		},
		{
			"permanent ctx error",
			func(ctx context.Context) error { return backoff.Permanent(ctx.Err()) },
			"retry: stopped after 2 tries: context canceled; last error: connection closed",
			[]error{context.Canceled, errWhy, errFlaky},
		},
		{
			"newer error",
			func(context.Context) error { return errUnknown },
			"retry: stopped after 2 tries: context canceled: shutting down; last error: unknown outcome",
			[]error{context.Canceled, errWhy, errUnknown},
		},
		{
			"permanent answer",
			func(context.Context) error { return backoff.Permanent(errRefused) },
			"node exists",
			[]error{errRefused},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			n := 0
			err := retry.Do(ctx, retry.NTimes(5, 0), func(ctx context.Context) error {
				if n++; n == 1 {
					return errFlaky
				}
				cancel(errWhy)
				return tt.second(ctx)
			})
			wantErr(t, err, tt.text, tt.is...)
			var permanent *backoff.PermanentError
			if errors.As(err, &permanent) {
				t.Errorf("the permanent mark is still in %v", err)
			}
		})
	}
}
