package client

import (
	"errors"
	"fmt"
	"time"
)

// ErrLeaseExpired says that the ensemble has not confirmed the session for so
// long that others may soon see it end. The error that matches it is a
// [*LeaseExpiredError].
var ErrLeaseExpired = errors.New("client: lease expired")

// LeaseExpiredError says what was known when a lease expired. It matches
// [ErrLeaseExpired].
type LeaseExpiredError struct {
	Session  int64
	Proof    string        // what the newest proof was: "committed write", ...
	SentAt   time.Time     // when its request was sent
	AliveAt  time.Time     // since when, at least, the leader's timer was running
	Timeout  time.Duration // least session timeout negotiated
	Deadline time.Time     // nobody else could hold before
	Margin   time.Duration // how long before the deadline the lease ended
	// Reason is why there was no newer proof, nil if none was asked for. The
	// error does not match it: it may be the end of a dial's own context, and
	// who tests for that asks whether its own has ended.
	Reason error
}

// Error says what was known and when.
func (e *LeaseExpiredError) Error() string {
	text := fmt.Sprintf("%v: session %s (timeout %v) was last proved by a %s sent at %s; its nodes are safe until %s, and the margin is %v",
		ErrLeaseExpired, sessionID(e.Session), e.Timeout, e.Proof,
		e.SentAt.Format(clockFormat), e.Deadline.Format(clockFormat), e.Margin)
	if e.Reason != nil {
		text += ": " + e.Reason.Error()
	}
	return text
}

const clockFormat = "15:04:05.000"

// Is reports whether target is [ErrLeaseExpired].
func (e *LeaseExpiredError) Is(target error) bool { return target == ErrLeaseExpired }
