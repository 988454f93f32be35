package client

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// patience is how long one call waits for a connection, from its beginning to
// its end: without end if its retry policy has none, else for the pauses of the
// policy. A pause that ends without a connection counts as a try that failed.
type patience struct {
	policy retry.Policy
	pauses backoff.BackOff // nil before the first pause
	timer  *time.Timer     // of the present pause
	begun  bool
}

// pause returns when the present pause ends, which it begins if there is none,
// and reports false if there is none left. The time of a policy without end, and
// of a nil patience, does not come.
func (p *patience) pause() (end <-chan time.Time, left bool) {
	switch {
	case p == nil || !p.policy.Bounded():
		return nil, true
	case p.begun:
		return p.timer.C, true
	case p.pauses == nil:
		p.pauses = p.policy.BackOff()
	}
	d := p.pauses.NextBackOff()
	if d == backoff.Stop {
		return nil, false
	}
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	p.begun = true
	return p.timer.C, true
}

// rest ends the present pause: there is a connection, or the call is over.
func (p *patience) rest() {
	if p != nil && p.begun {
		p.timer.Stop()
		p.begun = false
	}
}
