package client

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// The formula of the lease, and its words. T is the session timeout.
//
//	sign of life  a request that a server has answered; wire keeps when it was sent
//	relay         the longest time that a server keeps a sign of life to itself
//	              before it tells the leader
//	proof         a committed write. Each sign of life that is older than relay when the
//	              write is sent has reached the leader. So the leader has started its
//	              timer of the session again when the newest of those signs was sent,
//	              or later: that moment is proof.Alive
//	life          T less what the clocks may differ by: no client sees the session
//	              end before proof.Alive + life, which is the deadline of every hold
//	margin        how long before the deadline holds end
//	beat          the time between two heartbeats, each of which is a new proof: T/6, or
//	              what the policy says, within periodBounds
//	terms         relay, life, margin and beat, which follow from T and the policy
//	state         the terms, the newest proof and the time that is left until holds
//	              end, at one moment: left = life - margin - (now - proof.Alive)
//	spare         what stays of left when a heartbeat is due and all went well before;
//	              a timeout without any is refused
//
// A lease answers two questions, each by the clock that is safe for it:
//
//	when do holds end   as early as any clock says: left, and the deadline that a holder
//	                    is told, take the age of the proof by the clock that shows most
//	when may nodes go   not before the latest deadline that a holder was told: promised is
//	                    proof.Alive + life by the monotonic clock, which nobody sets and
//	                    which never shows more than the clock that shows most
//
// The session itself ends on less: T after wire.Link's evidence, which is when the
// newest answered request was sent.

// Defaults of [LeasePolicy].
const (
	defaultTickTime       = 2 * time.Second
	defaultSyncLimit      = 5
	defaultClockRateError = 0.001
	maxBeat               = 5 * time.Second
	defaultBeats          = 6  // heartbeats in a session timeout
	mostBeats             = 30 // the same, if a policy asks for more
)

// terms are the numbers that follow from a policy and a session timeout.
type terms struct {
	life   time.Duration // from the moment the leader surely heard of us
	margin time.Duration
	relay  time.Duration // signs of life this old are with the leader
	beat   time.Duration // between two heartbeats
}

func (p LeasePolicy) terms(timeout time.Duration) terms {
	slack := p.SchedulingSlack
	if slack == 0 {
		slack = timeout / 50
	}
	rate := p.ClockRateError
	if rate == 0 {
		rate = defaultClockRateError
	}
	margin := p.SafetyMargin
	if margin == 0 {
		margin = max(timeout/10, min(time.Second, timeout/4))
	}
	t := terms{
		life:   timeout - time.Duration(float64(timeout)*rate) - slack,
		margin: margin,
		relay:  p.tick(timeout)/2 + slack,
		beat:   min(timeout/defaultBeats, maxBeat),
	}
	if p.HeartbeatPeriod != 0 {
		least, most := t.periodBounds(timeout)
		t.beat = max(least, min(p.HeartbeatPeriod, most))
	}
	return t
}

// periodBounds are the shortest and the longest period that a policy may ask for. Say a
// proof is worth W = life - margin - relay if the leader heard of the client just in
// time. If it last heard a period before, W less a period is left. A period later the
// next heartbeat is due, and as much again is to be left: half of it for its answer,
// and half for another server. So three periods fit into W. A W of less than T/10 has no
// such period: then it is the shortest one, and check refuses a W of less than two.
func (t terms) periodBounds(timeout time.Duration) (least, most time.Duration) {
	return timeout / mostBeats, (t.life - t.margin - t.relay) / 3
}

func (p LeasePolicy) tick(timeout time.Duration) time.Duration {
	if p.TickTime != 0 {
		return p.TickTime
	}
	return min(defaultTickTime, timeout/2)
}

// trusting reports whether any answer is proof.
func (p LeasePolicy) trusting() bool { return p.Standalone || p.Heartbeat == HeartbeatPings }

// spare is the time that is left for a late answer to a heartbeat, if nothing else
// goes wrong.
func (p LeasePolicy) spare(timeout time.Duration) time.Duration {
	t := p.terms(timeout)
	if p.trusting() {
		return t.life - t.margin - timeout/3 // go-zookeeper pings that often
	}
	// A heartbeat proves signs of life from up to relay and one more beat before it. It
	// has to last until the next heartbeat is answered.
	return t.life - t.margin - t.relay - 2*t.beat
}

// check refuses a timeout that leaves no time to spare.
func (p LeasePolicy) check(timeout time.Duration) error {
	if p.spare(timeout) > 0 {
		return nil
	}
	t := p.terms(timeout)
	const step, most = 100 * time.Millisecond, 10 * time.Minute
	enough := timeout
	for enough < most && p.spare(enough) <= 0 {
		enough += step
	}
	if enough >= most {
		return fmt.Errorf("%w: %v, with a safety margin of %v and a tick of %v no timeout would do: lower LeasePolicy.SafetyMargin or TickTime",
			ErrUnsafeTimeout, timeout, t.margin, p.tick(timeout))
	}
	return fmt.Errorf("%w: %v, with a safety margin of %v and a tick of %v it takes %v: raise WithSessionTimeout (servers grant at most 20 ticks, or their maxSessionTimeout), or lower LeasePolicy.SafetyMargin",
		ErrUnsafeTimeout, timeout, t.margin, p.tick(timeout), enough.Round(step))
}

// relay is what wire needs to know of the servers. It is nil if any answer is proof.
func (c *config) relay() func(timeout time.Duration) time.Duration {
	if c.lease.trusting() {
		return nil
	}
	return func(timeout time.Duration) time.Duration { return c.lease.terms(timeout).relay }
}

// leaseState is the state of a lease at one moment.
type leaseState struct {
	terms
	proof   wire.Proof
	timeout time.Duration
	now     time.Time

	left     time.Duration // until holds end; negative if they should have
	promised time.Time     // when the nodes of holds may go
}

// deadline is the instant until which no other client can hold, by the clock that shows
// most.
func (t leaseState) deadline() time.Time { return t.now.Add(t.left + t.margin) }

// state reads the clocks, and answers both questions of a lease.
func (l *lease) state() leaseState {
	proof, timeout := l.s.link.Proof()
	now := l.s.core.cfg.clock.Now()
	t := leaseState{terms: l.policy.terms(timeout), proof: proof, timeout: timeout, now: now.At}
	if proof.Kind != wire.NoProof {
		t.left = t.life - t.margin - now.Since(proof.Alive)
		t.promised = proof.Alive.At.Add(t.life)
	}
	return t
}
