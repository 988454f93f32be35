package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// errNoCause stands in for a permanent error that wraps nothing. Unwrapping it
// would yield nil and report a failed operation as done.
var errNoCause = errors.New("retry: permanent error without a cause")

// Attempt describes a failed try that will be followed by another one.
type Attempt struct {
	N     int           // number of the try that failed, from 1
	Err   error         // its error
	Pause time.Duration // before the next try
}

// Option changes how [Do] runs.
type Option interface{ apply(*config) }

type config struct{ onRetry []func(Attempt) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// OnRetry calls f after a failed try, before the pause that precedes the next
// one. f is not called for the last failure, which Do returns. f runs in Do's
// goroutine and delays it; when f cancels ctx, Do does not try again. If the option
// is given several times, all functions run, in order. A nil f panics.
func OnRetry(f func(Attempt)) Option {
	if f == nil {
		panic("retry: OnRetry: nil function")
	}
	return optionFunc(func(c *config) { c.onRetry = append(c.onRetry, f) })
}

// Do runs op until it returns nil, returns a permanent error, p allows no
// further retry, or ctx ends. It runs op in the caller's goroutine, never when
// ctx has ended already, and returns at once when ctx ends during a pause. A
// try that is running is not interrupted: op gets ctx and must obey it.
//
//   - op returned nil: Do returns nil, even when ctx has ended meanwhile.
//   - op returned an error of [Permanent], wrapped or not: Do returns the error
//     inside it, without what was wrapped around it. A Do around this one would
//     retry the returned error again.
//   - p gave up: the error wraps the last one and says how many tries ran, if
//     there were several.
//   - ctx ended: the error matches ctx.Err(), context.Cause(ctx) and the last
//     error of op that is not itself about the end of ctx, if there was one.
//
// An operation may have taken effect although Do returned its error. Only op's
// error can say whether it did.
func Do(ctx context.Context, p Policy, op func(ctx context.Context) error, opts ...Option) error {
	onRetry := hooks(opts)
	var b backoff.BackOff // nil until a try has failed: most do not
	if p.kind == kindUntilElapsed {
		b = p.BackOff() // it counts the first try
	}
	var last error
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return interrupted(ctx, n-1, nil, last)
		}
		err := op(ctx)
		if err == nil {
			return nil
		}
		err, final := unwrap(err)
		if ctx.Err() != nil {
			if aboutEnd(ctx, err) {
				return interrupted(ctx, n, err, last)
			}
			if !final {
				return interrupted(ctx, n, nil, err)
			}
		}
		if final {
			return err
		}
		last = err
		if b == nil {
			b = p.BackOff()
		}
		d := b.NextBackOff()
		if d == backoff.Stop {
			return gaveUp(n, err)
		}
		for _, f := range onRetry {
			f(Attempt{N: n, Err: err, Pause: d})
		}
		pause(ctx, d)
	}
}

// gaveUp is the error of the last of n tries, with their number if it says more
// than the error alone.
func gaveUp(n int, err error) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("retry: gave up after %d tries: %w", n, err)
}

// hooks are the functions that opts ask to be called.
func hooks(opts []Option) []func(Attempt) {
	if len(opts) == 0 {
		return nil
	}
	var c config
	for _, o := range opts {
		o.apply(&c)
	}
	return c.onRetry
}

// Permanent says that another try cannot help against err: [Do] returns err
// instead of trying again. The result is a [backoff.PermanentError], which
// functions of package backoff obey too. Permanent(nil) is nil.
func Permanent(err error) error { return backoff.Permanent(err) }

// unwrap returns the error inside a permanent one, and reports whether err
// was one.
func unwrap(err error) (error, bool) {
	var permanent *backoff.PermanentError
	if !errors.As(err, &permanent) {
		return err, false
	}
	if permanent.Err == nil {
		return errNoCause, true
	}
	return permanent.Err, true
}

// pause returns after d or when ctx ends. The caller finds out which.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
