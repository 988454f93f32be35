package recipes

import (
	"errors"
	"slices"
	"time"
)

// candidacy decides what a campaign does: whether it leads when its turn has come, gives way
// to a preferred participant, or stands in line again. It does no I/O and has no clock.
//
// # States
//
//	apart     it has no node in line, or one that is being deleted
//	waiting   its node stands in line
//	electing  its turn has come, and it asks who stands behind
//	yielding  it gives way: its node is to be deleted
//	leading   it has a term, or is about to have it
//	over      it leads no more, or has failed
//
// # Transitions
//
//	joined       apart -> waiting
//	turnHasCome  waiting -> leading if nobody is preferred to it, else electing
//	lineIs       electing -> yielding if a preferred one stands behind, to which it may give
//	             way, else leading
//	ended        yielding -> apart; waiting, electing, leading -> apart if another client has
//	             deleted its node before the term, else over
//
// # When it gives way
//
// A campaign that gave way to an id a short time ago does not give way to that id again. So
// there is a leader soon, also if a preferred participant dies again and again before it
// leads. For at the next turn all participants are gone that stood in line when this one
// gave way. Those that lived have led, or gave way themselves. The nodes of those that were
// dead went with their sessions, at the same time. Participants that came later stand behind.
//
// The zero candidacy gives way to nobody.
type candidacy struct {
	state     candidacyState
	preferred []string             // the most wanted first; from its turn on those before its own id
	gave      map[string]time.Time // when it gave way last to each of these; never is the zero time
}

type candidacyState int

const (
	apart candidacyState = iota
	waiting
	electing
	yielding
	leading
	over
)

// deferAgain is the time after which a campaign gives way to the same id again, unless two
// session timeouts are longer. It is longer than a session on servers with the default
// configuration. So a live participant has led meanwhile.
const deferAgain = 60 * time.Second

func newCandidacy(preferred []string) *candidacy {
	return &candidacy{preferred: preferred, gave: map[string]time.Time{}}
}

// joined is called when its node has been made.
func (c *candidacy) joined() { c.state = waiting }

// turnHasCome reports whether the campaign of the participant own has to read the line, for
// [candidacy.lineIs].
func (c *candidacy) turnHasCome(own string) (elect bool) {
	if i := slices.Index(c.preferred, own); i >= 0 {
		c.preferred = c.preferred[:i]
	}
	c.state = leading
	if len(c.preferred) > 0 {
		c.state = electing
	}
	return c.state == electing
}

// lineIs says who stands behind, as far as is known. It reports whether the campaign gives
// way. timeout is that of the session.
func (c *candidacy) lineIs(behind []string, now time.Time, timeout time.Duration) (givesWay bool) {
	c.state = leading
	for _, id := range c.preferred {
		if now.Sub(c.gave[id]) > max(deferAgain, 2*timeout) && slices.Contains(behind, id) {
			c.gave[id] = now
			c.state = yielding
			break
		}
	}
	return c.state == yielding
}

// ended is called with the result of a place in line: nil for a term. It reports whether the
// campaign stands in line again.
func (c *candidacy) ended(err error) (again bool) {
	again = c.state == yielding || errors.Is(err, ErrNodeDeleted) && !errors.Is(err, ErrLost)
	switch {
	case again:
		c.state = apart
	case err != nil:
		c.state = over
	}
	return again
}
