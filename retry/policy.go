package retry

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// shortest is the least interval of a policy that could otherwise retry
// without any pause and without end.
const shortest = time.Millisecond

const (
	defaultBase = 50 * time.Millisecond
	defaultMax  = 2 * time.Second
)

type kind int

const (
	kindNone kind = iota // the zero Policy never retries
	kindExponential
	kindBoundedExponential
	kindNTimes
	kindUntilElapsed
	kindForever
)

// Policy says how often to retry and how long to pause before each retry. It is
// an immutable value without state, safe for concurrent use; the With methods
// return changed copies. The zero Policy is [None].
type Policy struct {
	kind     kind
	interval time.Duration // base of an exponential policy, else the pause
	max      time.Duration // exponential: upper bound of a pause
	retries  uint64
	total    time.Duration
	ceiling  time.Duration  // from WithCap; 0 when there is none
	rand     func() float64 // from WithRand; nil is math/rand/v2
}

// Default returns Exponential(50ms, 2s): it retries until ctx ends.
func Default() Policy { return Exponential(defaultBase, defaultMax) }

// Exponential retries without limit of attempts, so only ctx or a permanent
// error ends it. Before retry r, from 0, it pauses for a random time, uniform in
// [0, min(max, base*2^r)). This "full jitter" spreads clients that failed
// together better than a jitter around the middle. A base below one
// millisecond counts as one, a max below that as base.
//
// Curator has no unlimited exponential policy; see [BoundedExponential].
func Exponential(base, max time.Duration) Policy {
	base = atLeastShortest(base)
	if max < shortest {
		max = base
	}
	return Policy{kind: kindExponential, interval: base, max: max}
}

// BoundedExponential is [Exponential] with at most attempts retries, which is
// attempts+1 tries. With attempts <= 0 it is [None].
//
// It replaces two of Curator's policies. BoundedExponentialBackoffRetry(base,
// max, n) sleeps min(max, base * max(1, random integer in [0, 2^(r+1)))) and
// retries while r < n, n cut to 29. ExponentialBackoffRetry(base, n[, max])
// is the same with max = 2^31-1 ms unless given. There the first pause is
// never shorter than base and the mean is about twice ours, so 2*base is the
// nearest equivalent: BoundedExponential(2*base, max, n).
func BoundedExponential(base, max time.Duration, attempts int) Policy {
	if attempts <= 0 {
		return None()
	}
	p := Exponential(base, max)
	p.kind, p.retries = kindBoundedExponential, uint64(attempts)
	return p
}

// NTimes retries at most n times, and makes the same pause before each retry.
// A pause of 0 is allowed, because n bounds it; a negative one counts as 0.
// With n <= 0 it is [None].
//
// It replaces Curator's RetryNTimes(n, sleep): retry while r < n.
func NTimes(n int, pause time.Duration) Policy {
	if n <= 0 {
		return None()
	}
	return Policy{kind: kindNTimes, interval: max(pause, 0), retries: uint64(n)}
}

// Once retries one time, after pause: NTimes(1, pause).
//
// It replaces Curator's RetryOneTime(sleep): retry while r < 1.
func Once(pause time.Duration) Policy { return NTimes(1, pause) }

// UntilElapsed retries after pause as long as less than total has passed since
// the first try began; the time spent in tries counts. The last pause is cut
// so that no retry begins later than total. A pause below one millisecond
// counts as one. With total <= 0 it is [None].
//
// It replaces Curator's RetryUntilElapsed(total, sleep), which retries when
// elapsed < total and then sleeps in full: its last retry may begin as late as
// total+sleep.
func UntilElapsed(total, pause time.Duration) Policy {
	if total <= 0 {
		return None()
	}
	return Policy{kind: kindUntilElapsed, interval: atLeastShortest(pause), total: total}
}

// Forever retries after pause without end, so only ctx or a permanent error
// ends it. A pause below one millisecond counts as one.
//
// It replaces Curator's RetryForever(sleep), which refuses a sleep of 0. All
// clients that failed together retry together; prefer [Exponential].
func Forever(pause time.Duration) Policy {
	return Policy{kind: kindForever, interval: atLeastShortest(pause)}
}

// None never retries: one try and its error. It is the zero [Policy].
func None() Policy { return Policy{} }

// WithRand returns a copy of p that draws its jitter from f, so that a
// simulation can replay a run. f returns numbers in [0, 1) and must be safe
// for concurrent use. A number outside, or NaN, is moved to the nearer end, so
// no pause exceeds its bound. The default is [rand.Float64]. A nil f panics.
func (p Policy) WithRand(f func() float64) Policy {
	if f == nil {
		panic("retry: WithRand: nil function")
	}
	p.rand = f
	return p
}

// WithCap returns a copy of p none of whose pauses is longer than d. It bounds
// the range that jitter is drawn from, not the drawn value: capped clients
// stay spread. Of several caps the shortest holds. A d below one millisecond
// counts as one. The number of retries does not change.
func (p Policy) WithCap(d time.Duration) Policy {
	d = atLeastShortest(d)
	if p.ceiling == 0 || d < p.ceiling {
		p.ceiling = d
	}
	return p
}

// BackOff returns a new BackOff in its initial state; the clock of
// [UntilElapsed] starts now and again on Reset. It holds the state of one
// call: do not share it between goroutines or calls. To stop a loop of package
// backoff with a context, wrap it in [backoff.WithContext]; [Do] needs no wrapping.
func (p Policy) BackOff() backoff.BackOff {
	switch p.kind {
	case kindExponential:
		return p.jittered()
	case kindBoundedExponential:
		return backoff.WithMaxRetries(p.jittered(), p.retries)
	case kindNTimes:
		return backoff.WithMaxRetries(backoff.NewConstantBackOff(p.capped(p.interval)), p.retries)
	case kindUntilElapsed:
		return newUntil(p.total, p.capped(p.interval))
	case kindForever:
		return backoff.NewConstantBackOff(p.capped(p.interval))
	default:
		return &backoff.StopBackOff{}
	}
}

// Bounded reports whether p gives up by itself. [Exponential] and [Forever] do
// not: only ctx or a permanent error ends their retries.
func (p Policy) Bounded() bool {
	return p.kind != kindExponential && p.kind != kindForever
}

// String returns p as the calls that make it, with the values in force after
// clamping, for example "Exponential(50ms, 2s).WithCap(1s)". A source given to
// [Policy.WithRand] is not shown.
func (p Policy) String() string {
	var b strings.Builder
	switch p.kind {
	case kindExponential:
		fmt.Fprintf(&b, "Exponential(%v, %v)", p.interval, p.max)
	case kindBoundedExponential:
		fmt.Fprintf(&b, "BoundedExponential(%v, %v, %d)", p.interval, p.max, p.retries)
	case kindNTimes:
		fmt.Fprintf(&b, "NTimes(%d, %v)", p.retries, p.interval)
	case kindUntilElapsed:
		fmt.Fprintf(&b, "UntilElapsed(%v, %v)", p.total, p.interval)
	case kindForever:
		fmt.Fprintf(&b, "Forever(%v)", p.interval)
	default:
		return "None()" // nothing to cap
	}
	if p.ceiling > 0 {
		fmt.Fprintf(&b, ".WithCap(%v)", p.ceiling)
	}
	return b.String()
}

func (p Policy) jittered() *jittered {
	f := p.rand
	if f == nil {
		f = rand.Float64
	}
	limit := p.capped(p.max)
	first := min(p.interval, limit)
	return &jittered{first: first, limit: limit, next: first, rand: f}
}

func (p Policy) capped(d time.Duration) time.Duration {
	if p.ceiling > 0 {
		return min(d, p.ceiling)
	}
	return d
}

func atLeastShortest(d time.Duration) time.Duration { return max(d, shortest) }
