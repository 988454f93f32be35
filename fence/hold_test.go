package fence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/fence"
)

func TestDo(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	err := fence.Do(ctx, l, func(ctx context.Context) error {
		l.add("work")
		if token, ok := fence.Token(ctx); !ok || token != 7 {
			t.Errorf("Token = %d, %v", token, ok)
		}
		if d, ok := ctx.Deadline(); !ok || !d.Equal(deadline) {
			t.Errorf("Deadline = %v, %v", d, ok)
		}
		l.hold.end(errLost)
		<-ctx.Done()
		wantErr(t, context.Cause(ctx), errLost)
		l.hold.release = errLost
		return errBody
	})
	wantErr(t, err, errBody, errLost)
	l.want(t, "acquire", "work", "release")
}

func TestDoNotObtained(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	l.refuse = errBusy
	err := fence.Do(t.Context(), l, func(context.Context) error { l.add("work"); return nil })
	wantErr(t, err, errBusy)
	l.want(t)
}

func TestToken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if token, ok := fence.Token(ctx); ok {
		t.Errorf("Token = %d of an empty context", token)
	}
	l := newLock(ctx)
	within := fence.Context(l.hold)
	if token, ok := fence.Token(fence.WithToken(within, 8)); !ok || token != 8 {
		t.Errorf("Token = %d, %v; the innermost counts", token, ok)
	}
	l.hold.end(errLost)
	if !errors.Is(context.Cause(within), errLost) {
		t.Error("the context outlives the hold")
	}
}
