package retry

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// jittered draws each pause from [0, next) and doubles next up to limit. This
// package does not use backoff's own exponential type: that draws its jitter
// around the middle of the interval. Its source of random numbers cannot be
// replaced, so a simulation could not replay it.
type jittered struct {
	first, limit time.Duration
	next         time.Duration
	rand         func() float64
}

func (j *jittered) NextBackOff() time.Duration {
	bound := j.next
	if bound > j.limit/2 { // doubling must neither pass limit nor overflow
		j.next = j.limit
	} else {
		j.next = 2 * bound
	}
	return draw(j.rand(), bound)
}

func (j *jittered) Reset() { j.next = j.first }

// draw maps f, meant to be in [0, 1), onto [0, bound).
func draw(f float64, bound time.Duration) time.Duration {
	if !(f > 0) { // not f <= 0, which NaN would pass
		return 0
	}
	if f >= 1 {
		return bound - 1
	}
	// The product rounds up to bound when bound needs more than 53 bits.
	return min(time.Duration(f*float64(bound)), bound-1)
}

// until pauses for a fixed time until total has passed since the last Reset.
type until struct {
	total, pause time.Duration
	start        time.Time
}

func newUntil(total, pause time.Duration) *until {
	return &until{total: total, pause: pause, start: time.Now()}
}

func (u *until) NextBackOff() time.Duration {
	left := u.total - time.Since(u.start)
	if left <= 0 {
		return backoff.Stop
	}
	return min(u.pause, left)
}

func (u *until) Reset() { u.start = time.Now() }
