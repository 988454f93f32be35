package cache

import "time"

const (
	lateAfter  = time.Second // a change may wait so long for its snapshot
	lateRounds = 3           // or for so many rounds, if that is longer
)

// lateness decides whether changes have waited too long for their snapshot. It has no clock: its
// methods are told the time.
//
//	state   | what it means
//	calm    | the newest state lacks no change that is known of
//	waiting | it lacks some, since a time
//	late    | it has lacked some for too long
//
//	event   | from          | to
//	settled | any           | calm: nothing is in doubt
//	changed | calm          | waiting, from now
//	found   | waiting, late | waiting, from now: there is a newer state, which lacks newer changes
//	looked  | waiting       | late, if the time is up
//	passed  | any           | late: the time was up while an answer was awaited
type lateness struct {
	state latenessState
	since time.Time     // of waiting
	took  time.Duration // by the last round
}

type latenessState int

const (
	calm latenessState = iota
	waiting
	late
)

func (l *lateness) settled() { l.state = calm }

func (l *lateness) changed(now time.Time) {
	if l.state == calm {
		l.state, l.since = waiting, now
	}
}

func (l *lateness) found(now time.Time) { l.state, l.since = waiting, now }

func (l *lateness) passed() { l.state = late }

func (l *lateness) looked(now time.Time) {
	if l.state == waiting && l.left(now) <= 0 {
		l.state = late
	}
}

// left is how long changes may still wait.
func (l *lateness) left(now time.Time) time.Duration {
	patience := max(lateAfter, lateRounds*l.took)
	if l.state == calm {
		return patience
	}
	return patience - now.Sub(l.since)
}
