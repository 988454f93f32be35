package retry

import (
	"context"
	"errors"
	"fmt"
)

// interruptedError reports that ctx ended before op had succeeded. It keeps
// every error that a caller may ask for. What the last try said about the end
// may tell whether the request was sent. The error before that may tell why
// there were several tries.
type interruptedError struct {
	tries int
	ended error // ctx.Err()
	cause error // context.Cause(ctx)
	final error // of the last try, when it is itself about the end of ctx; or nil
	last  error // last error about something else; or nil
}

func interrupted(ctx context.Context, tries int, final, last error) error {
	return &interruptedError{
		tries: tries,
		ended: ctx.Err(),
		cause: context.Cause(ctx),
		final: final,
		last:  last,
	}
}

// aboutEnd reports whether err says that ctx, which has ended, ended.
func aboutEnd(ctx context.Context, err error) bool {
	return errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))
}

func (e *interruptedError) Error() string {
	text := ""
	if e.tries > 1 {
		text = fmt.Sprintf("retry: stopped after %d tries: ", e.tries)
	}
	switch {
	case e.final != nil:
		text += e.final.Error()
	case errors.Is(e.cause, e.ended):
		text += e.cause.Error()
	default:
		text += e.ended.Error() + ": " + e.cause.Error()
	}
	if e.last != nil {
		text += "; last error: " + e.last.Error()
	}
	return text
}

func (e *interruptedError) Unwrap() []error {
	errs := []error{e.ended, e.cause}
	if e.final != nil {
		errs = append(errs, e.final)
	}
	if e.last != nil {
		errs = append(errs, e.last)
	}
	return errs
}
