// Package candidacy decides what a participant of an election does when its turn comes. It
// owns to whom a campaign gives way, and when. It does no I/O and has no clock.
//
// Its face is [Campaign]: [New], and a method for each event. The shell is leader.go of
// package recipes, which stands in line, reads the line and makes the term. After a failure
// [Campaign.Ended] says whether the campaign stands in line again. If it does not, the
// campaign is over, and the caller throws it away.
package candidacy

import (
	"slices"
	"time"
)

// Campaign decides whether a participant leads when its turn has come, gives way to a
// preferred participant, or stands in line again.
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
//	Joined       apart -> waiting
//	TurnHasCome  waiting -> leading if nobody is preferred to it, else electing
//	LineIs       electing -> yielding if a preferred one stands behind, to which it may give
//	             way, else leading
//	Ended        yielding -> apart; waiting, electing, leading -> apart if another client has
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
// The zero Campaign gives way to nobody.
type Campaign struct {
	state     state
	preferred []string             // the most wanted first; from its turn on those before its own id
	gave      map[string]time.Time // when it gave way last to each of these; never is the zero time
}

type state int

const (
	apart state = iota
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

// New returns a campaign that is apart. preferred are the ids of those that shall lead rather,
// the most wanted first; if its own is among them, only those before that count.
func New(preferred []string) *Campaign {
	return &Campaign{preferred: preferred, gave: map[string]time.Time{}}
}

// Joined is called when its node has been made.
func (c *Campaign) Joined() { c.state = waiting }

// TurnHasCome reports whether the campaign of the participant own has to read the line, for
// [Campaign.LineIs].
func (c *Campaign) TurnHasCome(own string) (elect bool) {
	if i := slices.Index(c.preferred, own); i >= 0 {
		c.preferred = c.preferred[:i]
	}
	c.state = leading
	if len(c.preferred) > 0 {
		c.state = electing
	}
	return c.state == electing
}

// LineIs says who stands behind, as far as is known. It reports whether the campaign gives
// way. timeout is that of the session.
func (c *Campaign) LineIs(behind []string, now time.Time, timeout time.Duration) (givesWay bool) {
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

// Ended is called with the result of a place in line: whether it failed to give a term, and
// whether that was because another client has deleted its node. It reports whether the
// campaign stands in line again.
func (c *Campaign) Ended(failed, deleted bool) (again bool) {
	again = c.state == yielding || deleted
	switch {
	case again:
		c.state = apart
	case failed:
		c.state = over
	}
	return again
}
