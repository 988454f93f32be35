package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

var (
	errFlaky   = errors.New("connection closed")
	errRefused = errors.New("node exists")
	errWhy     = errors.New("shutting down")
)

func TestDoCountsTries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		p         retry.Policy
		failures  int // op fails that often, then succeeds
		wantTries int
		wantText  string
	}{
		{"success at once", retry.Default(), 0, 1, ""},
		{"success after failures", retry.NTimes(3, ms), 3, 4, ""},
		{"none", retry.None(), 1, 1, "connection closed"},
		{"n times", retry.NTimes(3, ms), 9, 4, "retry: gave up after 4 tries: connection closed"},
		{"once", retry.Once(0), 9, 2, "retry: gave up after 2 tries: connection closed"},
		{"bounded", retry.BoundedExponential(ms, ms, 5), 9, 6, "retry: gave up after 6 tries: connection closed"},
		{"until elapsed", retry.UntilElapsed(100*ms, 40*ms), 9, 4, "retry: gave up after 4 tries: connection closed"},
		{"default outlasts many", retry.Default(), 1000, 1001, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				err := retry.Do(t.Context(), tt.p, func(context.Context) error {
					n++
					if n <= tt.failures {
						return errFlaky
					}
					return nil
				})
				if n != tt.wantTries {
					t.Errorf("op ran %d times, want %d", n, tt.wantTries)
				}
				switch {
				case tt.wantText == "" && err != nil:
					t.Errorf("Do() = %v, want nil", err)
				case tt.wantText != "" && (!errors.Is(err, errFlaky) || err.Error() != tt.wantText):
					t.Errorf("Do() = %v, want %q", err, tt.wantText)
				}
			})
		})
	}
}

func TestDoPausesAndReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := retry.BoundedExponential(100*ms, 300*ms, 3).WithRand(half)
		var got []retry.Attempt
		order := ""
		start := time.Now()
		err := retry.Do(t.Context(), p, func(context.Context) error { return errFlaky },
			retry.OnRetry(func(a retry.Attempt) { got = append(got, a); order += "a" }),
			retry.OnRetry(func(retry.Attempt) { order += "b" }),
		)
		if !errors.Is(err, errFlaky) {
			t.Errorf("Do() = %v, want %v", err, errFlaky)
		}
		want := []retry.Attempt{{1, errFlaky, 50 * ms}, {2, errFlaky, 100 * ms}, {3, errFlaky, 150 * ms}}
		if !slices.Equal(got, want) {
			t.Errorf("attempts %v, want %v (the last failure is returned, not reported)", got, want)
		}
		if order != "ababab" {
			t.Errorf("hooks ran in order %q, want ababab", order)
		}
		if passed := time.Since(start); passed != 300*ms {
			t.Errorf("Do took %v, want the announced 300ms", passed)
		}
	})
}

func TestDoDoesNotRunWhenContextHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errWhy)
	err := retry.Do(ctx, retry.Default(), func(context.Context) error {
		t.Error("op ran")
		return nil
	})
	wantErr(t, err, "context canceled: shutting down", context.Canceled, errWhy)
}

func TestDoStopsDuringPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errWhy)
		defer cancel()
		start, n := time.Now(), 0
		err := retry.Do(ctx, retry.Forever(time.Hour), func(context.Context) error { n++; return errFlaky })
		wantErr(t, err, "context deadline exceeded: shutting down; last error: connection closed",
			context.DeadlineExceeded, errWhy, errFlaky)
		if passed := time.Since(start); passed != 10*time.Second || n != 1 {
			t.Errorf("%d tries in %v, want 1 in 10s", n, passed)
		}
	})
}

// The end of the pause and the end of ctx at one instant: no further try.
func TestDoPrefersTheEndOfContext(t *testing.T) {
	t.Parallel()
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			n := 0
			err := retry.Do(ctx, retry.Forever(time.Second), func(context.Context) error { n++; return errFlaky })
			if n > 2 {
				t.Errorf("%d tries, want at most 2", n)
			}
			wantErr(t, err, "", context.DeadlineExceeded, errFlaky)
		})
	}
}

func TestDoStopsWhenAHookCancels(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := retry.Do(ctx, retry.NTimes(5, 0), func(context.Context) error { n++; return errFlaky },
		retry.OnRetry(func(retry.Attempt) { cancel() }))
	wantErr(t, err, "context canceled; last error: connection closed", context.Canceled, errFlaky)
	if n != 1 {
		t.Errorf("op ran %d times, want 1", n)
	}
}

func TestDoSuccessBeatsAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := retry.Do(ctx, retry.Default(), func(context.Context) error { cancel(); return nil })
	if err != nil {
		t.Errorf("Do() = %v, want nil: the operation was done", err)
	}
}

// A try's own time-out looks like the end of ctx but is an error to retry.
func TestDoRetriesATryTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := retry.Do(t.Context(), retry.NTimes(3, ms), func(ctx context.Context) error {
			if n++; n == 3 {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil || n != 3 {
			t.Errorf("Do() = %v after %d tries, want nil after 3", err, n)
		}
	})
}

func TestDoPermanent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		text string
		is   error
	}{
		{"marked", retry.Permanent(errRefused), "node exists", errRefused},
		{"marked by backoff", backoff.Permanent(errRefused), "node exists", errRefused},
		{"mark inside a wrap", fmt.Errorf("try: %w", retry.Permanent(errRefused)), "node exists", errRefused},
		{"wrap inside the mark", retry.Permanent(fmt.Errorf("try: %w", errRefused)), "try: node exists", errRefused},
		{"empty mark is no success", &backoff.PermanentError{}, "retry: permanent error without a cause", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			err := retry.Do(t.Context(), retry.Forever(ms), func(context.Context) error { n++; return tt.err },
				retry.OnRetry(func(a retry.Attempt) { t.Errorf("a retry was announced: %+v", a) }))
			if n != 1 {
				t.Errorf("op ran %d times, want 1", n)
			}
			if tt.is == nil {
				wantErr(t, err, tt.text)
			} else {
				wantErr(t, err, tt.text, tt.is)
			}
		})
	}
}

// An op that marks whatever it has, no error included, can still succeed.
func TestPermanentOfNothing(t *testing.T) {
	t.Parallel()
	err := retry.Do(t.Context(), retry.None(), func(context.Context) error { return retry.Permanent(nil) })
	if err != nil {
		t.Errorf("Do = %v", err)
	}
}

// Package backoff's own loop must be able to use our BackOffs with a context.
func TestBackOffWorksInBackoffRetry(t *testing.T) {
	t.Parallel()
	n := 0
	b := backoff.WithContext(retry.NTimes(2, 0).BackOff(), t.Context())
	err := backoff.Retry(func() error { n++; return errFlaky }, b)
	if !errors.Is(err, errFlaky) || n != 3 {
		t.Errorf("backoff.Retry() = %v after %d tries, want %v after 3", err, n, errFlaky)
	}
}

// wantErr checks the text, unless empty, and that err matches each of is.
func wantErr(t *testing.T, err error, text string, is ...error) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", text)
	}
	if text != "" && err.Error() != text {
		t.Errorf("error %q, want %q", err, text)
	}
	for _, target := range is {
		if !errors.Is(err, target) {
			t.Errorf("error %q does not match %q", err, target)
		}
	}
}

// The time of the first try counts.
func TestDoCountsTheFirstTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := retry.Do(t.Context(), retry.UntilElapsed(10*time.Second, time.Second), func(context.Context) error {
			tries++
			time.Sleep(6 * time.Second)
			return errFlaky
		})
		if tries != 2 || !errors.Is(err, errFlaky) {
			t.Errorf("%d tries of 6s in 10s, %v; want 2", tries, err)
		}
	})
}
