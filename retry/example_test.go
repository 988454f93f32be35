package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/retry"
)

func ExampleDo() {
	tries := 0
	err := retry.Do(context.Background(), retry.NTimes(3, time.Millisecond), func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("connection closed")
		}
		return nil
	}, retry.OnRetry(func(a retry.Attempt) {
		fmt.Printf("try %d: %v, next in %v\n", a.N, a.Err, a.Pause)
	}))
	fmt.Println(tries, err)
	// Output:
	// try 1: connection closed, next in 1ms
	// try 2: connection closed, next in 1ms
	// 3 <nil>
}

// When the context ends, the error says so and still says what was wrong.
func ExampleDo_canceled() {
	errClosed := errors.New("connection closed")
	errShutdown := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(context.Background())
	err := retry.Do(ctx, retry.Forever(time.Hour), func(context.Context) error {
		return errClosed
	}, retry.OnRetry(func(retry.Attempt) {
		cancel(errShutdown) // as a signal handler would, during the pause
	}))
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.Canceled), errors.Is(err, errShutdown), errors.Is(err, errClosed))
	// Output:
	// context canceled: shutting down; last error: connection closed
	// true true true
}

// An error that another try cannot cure ends the loop at once.
func ExampleDo_permanent() {
	err := retry.Do(context.Background(), retry.Default(), func(context.Context) error {
		return retry.Permanent(errors.New("node exists"))
	})
	fmt.Println(err)
	// Output: node exists
}

// A cap keeps every pause well inside the session time-out.
func ExamplePolicy_WithCap() {
	sessionTimeout := 3 * time.Second
	p := retry.Exponential(100*time.Millisecond, time.Minute).WithCap(sessionTimeout / 3)
	fmt.Println(p)
	// Output: Exponential(100ms, 1m0s).WithCap(1s)
}

// A source that always draws the middle shows how the range grows.
func ExamplePolicy_WithRand() {
	b := retry.Exponential(50*time.Millisecond, 300*time.Millisecond).
		WithRand(func() float64 { return 0.5 }).
		BackOff()
	for range 5 {
		fmt.Println(b.NextBackOff())
	}
	// Output:
	// 25ms
	// 50ms
	// 100ms
	// 150ms
	// 150ms
}

// The policies by what they say of themselves. Bounded ones give up by themselves.
func ExamplePolicy() {
	for _, p := range []retry.Policy{
		retry.Default(),
		retry.Exponential(100*time.Millisecond, 10*time.Second),
		retry.Forever(time.Second),
		retry.BoundedExponential(100*time.Millisecond, 10*time.Second, 3),
		retry.NTimes(3, time.Second),
		retry.UntilElapsed(time.Minute, time.Second),
		retry.Once(time.Second),
		retry.None(),
	} {
		fmt.Println(p, p.Bounded())
	}
	// Output:
	// Exponential(50ms, 2s) false
	// Exponential(100ms, 10s) false
	// Forever(1s) false
	// BoundedExponential(100ms, 10s, 3) true
	// NTimes(3, 1s) true
	// UntilElapsed(1m0s, 1s) true
	// NTimes(1, 1s) true
	// None() true
}
