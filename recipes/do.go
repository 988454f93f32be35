package recipes

import (
	"context"
	"errors"
	"time"
)

// releaseGrace is how long Do waits for the release after its context has ended.
// What is not removed by then is removed in the background.
const releaseGrace = time.Second

// do runs fn while acquire's hold lasts.
func do[H interface {
	Context() context.Context
	Release(ctx context.Context) error
	Close() error
}](ctx context.Context, acquire func(context.Context) (H, error), fn func(ctx context.Context) error) (err error) {
	hold, err := acquire(ctx)
	if err != nil {
		return err
	}
	within := hold.Context()
	if deadline, ok := ctx.Deadline(); ok { // for those who pass deadlines on
		var end context.CancelFunc
		within, end = context.WithDeadline(within, deadline)
		defer end()
	}
	work, cancel := context.WithCancelCause(within)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer func() {
		ended := !stop()
		cancel(ErrReleased)
		release := hold.Close
		if deadline, ok := ctx.Deadline(); ended || ok && !time.Now().Before(deadline) { // the caller waits no longer
			release = func() error {
				short, done := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
				defer done()
				return hold.Release(short)
			}
		}
		switch failed := release(); {
		case failed == nil: // alone, fn's error stays itself
		case err == nil, errors.Is(failed, err): // fn returned the cause of its context, which need not be said twice
			err = failed
		default:
			err = errors.Join(err, failed)
		}
	}()
	return fn(work)
}
