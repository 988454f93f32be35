package ctxerr_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
)

func TestEnded(t *testing.T) {
	t.Parallel()
	if err := ctxerr.Ended(t.Context()); err != nil {
		t.Errorf("a context that lives: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	past, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	own := errors.New("my reason")
	caused, cause := context.WithCancelCause(t.Context())
	cause(own)
	late, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), own)
	defer cancel()
	for _, tt := range []struct {
		ctx  context.Context
		want []error
		text string
	}{
		{cancelled, []error{context.Canceled}, "context canceled"},
		{past, []error{context.DeadlineExceeded}, "context deadline exceeded"},
		{caused, []error{context.Canceled, own}, "context canceled: my reason"},
		{late, []error{context.DeadlineExceeded, own}, "context deadline exceeded: my reason"},
	} {
		err := ctxerr.Ended(tt.ctx)
		for _, want := range tt.want {
			if !errors.Is(err, want) {
				t.Errorf("%v does not match %v", err, want)
			}
		}
		if err == nil || err.Error() != tt.text {
			t.Errorf("text %v, want %q", err, tt.text)
		}
	}
}
