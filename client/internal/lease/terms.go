// Package lease says until when the nodes of a session are safe. [Policy] has the formula, and
// [Machine] decides by it when holds end. Nothing here reads a clock or sends a request: the client's
// leaseKeeper does.
package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/clock"
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
//	                    ([Machine.Promised] is later if T has become less)
//
// The session itself ends on less: T after wire.Link's evidence, which is when the
// newest answered request was sent.

// Policy says what is assumed about servers and clocks, and how early a hold ends. It has
// the fields of client.LeasePolicy, which explains them, but SyncLimit; Pings stands for Heartbeat.
type Policy struct {
	SafetyMargin    time.Duration
	TickTime        time.Duration
	ClockRateError  float64
	SchedulingSlack time.Duration
	HeartbeatPeriod time.Duration
	Pings           bool // no heartbeats: any answer is proof
	Standalone      bool
}

// ErrUnsafeTimeout is client.ErrUnsafeTimeout.
var ErrUnsafeTimeout = errors.New("client: no lock can be held safely with this session timeout")

// Defaults of [Policy].
const (
	defaultTickTime       = 2 * time.Second
	defaultClockRateError = 0.001
	maxBeat               = 5 * time.Second
	defaultBeats          = 6  // heartbeats in a session timeout
	mostBeats             = 30 // the same, if a policy asks for more
)

// Terms are the numbers that follow from a policy and a session timeout.
type Terms struct {
	Life   time.Duration // from the moment the leader surely heard of us
	Margin time.Duration
	Relay  time.Duration // signs of life this old are with the leader
	Beat   time.Duration // between two heartbeats
}

// Terms are the numbers for a session timeout.
func (p Policy) Terms(timeout time.Duration) Terms {
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
	t := Terms{
		Life:   timeout - time.Duration(float64(timeout)*rate) - slack,
		Margin: margin,
		Relay:  p.Tick(timeout)/2 + slack,
		Beat:   min(timeout/defaultBeats, maxBeat),
	}
	if p.HeartbeatPeriod != 0 {
		least, most := t.periodBounds(timeout)
		t.Beat = max(least, min(p.HeartbeatPeriod, most))
	}
	return t
}

// periodBounds are the shortest and the longest period that a policy may ask for. Say a
// proof is worth W = life - margin - relay if the leader heard of the client just in
// time. If it last heard a period before, W less a period is left. A period later the
// next heartbeat is due, and as much again is to be left: half of it for its answer,
// and half for another server. So three periods fit into W. A W of less than T/10 has no
// such period: then it is the shortest one, and check refuses a W of less than two.
func (t Terms) periodBounds(timeout time.Duration) (least, most time.Duration) {
	return timeout / mostBeats, (t.Life - t.Margin - t.Relay) / 3
}

// Tick is the longest time between two pings of the leader, twice over.
func (p Policy) Tick(timeout time.Duration) time.Duration {
	if p.TickTime != 0 {
		return p.TickTime
	}
	return min(defaultTickTime, timeout/2)
}

// Trusting reports whether any answer is proof.
func (p Policy) Trusting() bool { return p.Standalone || p.Pings }

// Spare is the time that is left for a late answer to a heartbeat, if nothing else
// goes wrong.
func (p Policy) Spare(timeout time.Duration) time.Duration {
	t := p.Terms(timeout)
	if p.Trusting() {
		return t.Life - t.Margin - timeout/3 // go-zookeeper pings that often
	}
	// A heartbeat proves signs of life from up to relay and one more beat before it. It
	// has to last until the next heartbeat is answered.
	return t.Life - t.Margin - t.Relay - 2*t.Beat
}

// Check refuses a timeout that leaves no time to spare.
func (p Policy) Check(timeout time.Duration) error {
	if p.Spare(timeout) > 0 {
		return nil
	}
	t := p.Terms(timeout)
	const step, most = 100 * time.Millisecond, 10 * time.Minute
	enough := timeout
	for enough < most && p.Spare(enough) <= 0 {
		enough += step
	}
	if enough >= most {
		return fmt.Errorf("%w: %v, with a safety margin of %v and a tick of %v no timeout would do: lower LeasePolicy.SafetyMargin or TickTime",
			ErrUnsafeTimeout, timeout, t.Margin, p.Tick(timeout))
	}
	return fmt.Errorf("%w: %v, with a safety margin of %v and a tick of %v it takes %v: raise WithSessionTimeout (servers grant at most 20 ticks, or their maxSessionTimeout), or lower LeasePolicy.SafetyMargin",
		ErrUnsafeTimeout, timeout, t.Margin, p.Tick(timeout), enough.Round(step))
}

// State is the state of a lease at one moment.
type State struct {
	Terms
	Proof   wire.Proof
	Timeout time.Duration
	Now     time.Time

	Left     time.Duration // until holds end; negative if they should have
	Promised time.Time     // when the nodes of holds may go
}

// Deadline is the instant until which no other client can hold, by the clock that shows
// most.
func (t State) Deadline() time.Time { return t.Now.Add(t.Left + t.Margin) }

// At answers both questions of a lease, at now.
func (p Policy) At(proof wire.Proof, timeout time.Duration, now clock.Stamp) State {
	t := State{Terms: p.Terms(timeout), Proof: proof, Timeout: timeout, Now: now.At}
	if proof.Kind != wire.NoProof {
		t.Left = t.Life - t.Margin - now.Since(proof.Alive)
		t.Promised = proof.Alive.At.Add(t.Life)
	}
	return t
}
