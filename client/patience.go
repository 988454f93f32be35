package client

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// patience is how long one call waits for a connection, from its beginning to its
// end. It has no end if the retry policy of the call has none. Otherwise it lasts for
// the pauses of the policy. A pause that ends without a connection counts as a try
// that failed.
type patience struct {
	policy retry.Policy
	pauses backoff.BackOff // nil before the first pause
	timer  *time.Timer     // of the present pause
	begun  bool
}

// pause returns a channel for the end of the present pause, and begins a pause if
// there is none. It reports false if the policy has no pause left. For a policy
// without end, and for a nil patience, the pause never ends.
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

// rest ends the present pause: there is a connection, or the call has ended.
func (p *patience) rest() {
	if p != nil && p.begun {
		p.timer.Stop()
		p.begun = false
	}
}
