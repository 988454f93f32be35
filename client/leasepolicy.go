package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/client/internal/session"
)

// ErrUnsafeTimeout says that no lock can be held safely with the session timeout that
// the servers granted, under the [LeasePolicy] in force. The error says which number
// to change.
var ErrUnsafeTimeout = lease.ErrUnsafeTimeout

// Heartbeat says what proves that the ensemble keeps the session while
// something is held.
type Heartbeat int

const (
	// HeartbeatWrites commits a transaction that checks the held nodes. The client
	// sends one for all holds of a session, every [LeasePolicy.HeartbeatPeriod] if
	// the session commits nothing else. It is the default, and the only kind for which the
	// promise of a hold's Deadline is kept.
	HeartbeatWrites Heartbeat = iota
	// HeartbeatPings sends no requests of its own and takes any answer of any server
	// as proof. A server that is cut off from its leader goes on answering, and so
	// does a leader that was deposed. Two clients may then hold one lock for as long
	// as [LeasePolicy.Exposure] says. It is for holders whose every effect is fenced.
	HeartbeatPings
)

// LeasePolicy says what is assumed about servers and clocks, and how early a
// hold ends. The zero value is safe for ZooKeeper's default configuration;
// a field that is zero has its default. T means the least session
// timeout negotiated so far.
type LeasePolicy struct {
	// SafetyMargin is how long before its deadline a hold ends: the time that the
	// holder's work needs to stop. The default is T/10, but 1 s for T from 4 to 10 s,
	// and T/4 below.
	SafetyMargin time.Duration
	// TickTime is the servers' tickTime, or more. A server that is not the leader
	// keeps signs of life to itself for up to half of it. Behind an observer master
	// it is twice that: double TickTime there. The default is 2 s, or T/2 if that is
	// less, because servers grant no less than two ticks unless configured otherwise.
	TickTime time.Duration
	// SyncLimit is the servers' syncLimit in ticks, or more: how long a server
	// may be cut off before it notices. It bounds the risk of
	// [HeartbeatPings], see [LeasePolicy.Exposure]; HeartbeatWrites does not
	// rely on it. The default is 5.
	SyncLimit int
	// ClockRateError is how much faster the leader's clock may run than
	// ours, relatively. The default is 0.001.
	ClockRateError float64
	// SchedulingSlack is how late timers may be, the leader's and ours. The
	// default is T/50.
	SchedulingSlack time.Duration
	// HeartbeatPeriod is how long after a proof a session that holds something sends the
	// next heartbeat, at most. The default is T/6, but no more than 5 s. A longer
	// period costs the servers fewer writes. Each second of it takes two seconds from
	// the outage that a hold survives for sure. One, because a proof may be older by
	// that much when the connection breaks. The other, because the leader may have
	// heard of the client by that much earlier. A deleted node or a silent connection
	// may also be noticed later by as much. Deadline, Jeopardy and the margin are as
	// exact as ever: they follow from proofs, whenever those come.
	//
	// A period is at most a third of what T leaves beside the margin and half a tick.
	// With more, a heartbeat without an answer would leave no time for another server.
	// But it is never less than T/30, even if a large margin leaves no third of that
	// length. [LeasePolicy.Period] says what is in force.
	HeartbeatPeriod time.Duration
	// Heartbeat is what counts as proof.
	Heartbeat Heartbeat
	// Standalone says that the servers are one server without an ensemble:
	// then every answer is proof.
	Standalone bool
}

// lease is the policy as the lease has it.
func (p LeasePolicy) lease() lease.Policy {
	return lease.Policy{
		SafetyMargin: p.SafetyMargin, TickTime: p.TickTime, ClockRateError: p.ClockRateError, SchedulingSlack: p.SchedulingSlack,
		HeartbeatPeriod: p.HeartbeatPeriod, Pings: p.Heartbeat == HeartbeatPings, Standalone: p.Standalone,
	}
}

// relay is what wire needs to know of the servers. It is nil if any answer is proof.
func (p LeasePolicy) relay() func(timeout time.Duration) time.Duration {
	if p.lease().Trusting() {
		return nil
	}
	return func(timeout time.Duration) time.Duration { return p.lease().Terms(timeout).Relay }
}

// Period is how long after a proof the next heartbeat is sent, at most, in a session of
// that timeout that holds something. Under [HeartbeatPings] it says nothing.
func (p LeasePolicy) Period(timeout time.Duration) time.Duration {
	return p.lease().Terms(timeout).Beat
}

// Exposure is how long, under [HeartbeatPings], a client may believe that it holds a
// lock which another client has got. The server it talks to may have been cut off for
// SyncLimit ticks without noticing. Or it may be a deposed leader, which notices one
// tick later. Exposure does not depend on the safety margin; subtract the margin from
// it.
func (p LeasePolicy) Exposure(timeout time.Duration) time.Duration {
	limit := p.SyncLimit
	if limit == 0 {
		limit = 5 // ZooKeeper's default
	}
	tick, relay := p.lease().Tick(timeout), p.lease().Terms(timeout).Relay
	return time.Duration(limit)*tick + max(tick, relay+timeout/3)
}

// ErrLeaseExpired says that the ensemble has not confirmed the session for a long
// time, so that other clients may soon see it end. The error that matches it is a
// [*LeaseExpiredError].
var ErrLeaseExpired = errors.New("client: lease expired")

// LeaseExpiredError says what was known when a lease expired. It matches
// [ErrLeaseExpired].
type LeaseExpiredError struct {
	Session  int64
	Proof    string        // the kind of the newest proof: "committed write", ...
	SentAt   time.Time     // when the request of that proof was sent
	AliveAt  time.Time     // the leader's timer was running since then, or since later
	Timeout  time.Duration // least session timeout negotiated
	Deadline time.Time     // no other client could hold before, by the clock that shows most
	Promised time.Time     // the client lets no node go before; by Go's monotonic clock
	Margin   time.Duration // how long before the deadline the lease ended
	// Reason is why there was no newer proof, nil if no heartbeat had failed. The
	// LeaseExpiredError does not match it. It may be the context.DeadlineExceeded of
	// a dial, and a caller that tests for that means its own context.
	Reason error
}

// Error says what was known and when.
func (e *LeaseExpiredError) Error() string {
	text := fmt.Sprintf("%v: session %s (timeout %v) was last proved by a %s sent at %s; its nodes are safe until %s, and the margin is %v",
		ErrLeaseExpired, session.ID(e.Session), e.Timeout, e.Proof,
		e.SentAt.Format(clockFormat), e.Promised.Format(clockFormat), e.Margin)
	if more := e.Promised.Sub(e.Deadline).Round(skew); more > 0 {
		text += fmt.Sprintf("; another clock shows %v more than Go's: the time of day was set forward, or the machine slept", more)
	}
	if e.Reason != nil {
		text += ": " + e.Reason.Error()
	}
	return text
}

const (
	clockFormat = "15:04:05.000"
	skew        = 100 * time.Millisecond // less than half of it between clocks is not worth a word
)

// Is reports whether target is [ErrLeaseExpired].
func (e *LeaseExpiredError) Is(target error) bool { return target == ErrLeaseExpired }
