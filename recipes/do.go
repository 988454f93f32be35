package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// releaseGrace is how long Do waits for the release after its context has ended.
// What is not removed by then is removed in the background.
const releaseGrace = time.Second

// do runs fn while acquire's hold lasts.
func do[H AnyHold](ctx context.Context, acquire func(context.Context) (H, error), fn func(ctx context.Context, hold H) error) (err error) {
	if fn == nil {
		return errNoFunction
	}
	hold, err := acquire(ctx)
	if err != nil {
		return err
	}
	within := hold.Context()
	if deadline, ok := ctx.Deadline(); ok { // for functions that pass deadlines on
		var end context.CancelFunc
		within, end = context.WithDeadline(within, deadline)
		defer end()
	}
	work, cancel := context.WithCancelCause(within)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer func() {
		ended := !stop()
		if err != nil && ended && errors.Is(err, work.Err()) && !errors.Is(err, ctx.Err()) { // work's deadline and ctx's are two timers
			err = fmt.Errorf("%w: %w", ctx.Err(), &uncancelled{err})
		}
		cancel(ErrReleased)
		err = summed(err, leave(ctx, hold, ended))
	}()
	return fn(work, hold)
}

// leave releases the hold of a do with ctx. Once ctx has ended, the caller does
// not wait for long.
func leave(ctx context.Context, hold AnyHold, ended bool) error {
	if deadline, ok := ctx.Deadline(); !ended && (!ok || time.Now().Before(deadline)) {
		return hold.Close()
	}
	short, done := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
	defer done()
	return hold.Release(short)
}

// summed joins what fn returned with the error of the release. After a loss the
// error does not match the error of any context. The loss cancelled fn's context.
// A caller that tests for context.Canceled first would take the loss for its own
// cancellation.
func summed(err, released error) error {
	switch {
	case released == nil: // fn's error stays itself
		return err
	case err == nil, errors.Is(released, err): // fn returned the cause of its context, which need not be said twice
		return released
	case errors.Is(released, ErrLost):
		return fmt.Errorf("%w; the function returned: %w", released, &uncancelled{err}) // one line for a log
	default:
		return joined(err, released)
	}
}

// uncancelled matches all that its error does but the end of a context.
type uncancelled struct{ err error }

func (e *uncancelled) Error() string { return e.err.Error() }

// Is reports whether the error matches target, unless that is the end of a
// context.
func (e *uncancelled) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}

// As finds what the error wraps.
func (e *uncancelled) As(target any) bool { return errors.As(e.err, target) }
