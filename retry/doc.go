// Package retry says how often, and after which pauses, an operation that
// failed is tried again, and runs it that way.
//
// A [Policy] is an immutable value: share it, copy it, keep it in a
// configuration. [Do] asks it for a fresh [backoff.BackOff] on every call, so
// calls never use up each other's tries. The policy does not decide which errors are
// worth another try: an operation ends the loop by returning [Permanent].
//
//	err := retry.Do(ctx, retry.Default(), func(ctx context.Context) error {
//		err := put(ctx)
//		if errors.Is(err, errRefused) {
//			return retry.Permanent(err) // another try cannot help
//		}
//		return err
//	})
//
// # Errors
//
// Do never hides why the operation failed. When ctx ends, the error matches,
// by errors.Is, ctx.Err(), context.Cause(ctx) and the last error of the
// operation. When the policy gives up, the error wraps the last one. Either says
// how many tries there were, if there were several.
//
// # Invalid arguments
//
// Durations and counts come from configuration files, and a policy is often
// built where no error can be returned. So the package moves them into range
// and nothing panics. A negative pause is no pause, and a negative count is
// no retry. A pause that could make an unlimited policy spin (base, max, cap,
// and the pause of [Forever] and [UntilElapsed]) is at least one millisecond.
// That also softens the usual slip when porting from Java, Exponential(50,
// 2000), which means nanoseconds. [Policy.String] prints what is in force. A
// nil function cannot come from configuration: it panics where it is passed
// in.
//
// # Concurrency
//
// Policies and options may be used by any number of goroutines at once. The
// BackOff that [Policy.BackOff] returns may not. Do starts no goroutine.
//
// # Coming from Curator
//
// The constructors name the Curator class that they replace, with its formula.
// There r is the number of the retry, from 0. Two differences hold everywhere.
// ctx takes the place of the thread's interruption. Nested calls do not share
// a counter: a Do inside a Do multiplies tries, so let only one layer retry.
package retry
