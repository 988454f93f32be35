// Package clock measures how much time has passed, the time of a suspended machine
// and of a restored snapshot included. Go's monotonic clock stops while the machine
// sleeps (golang/go#24595). A lease that looked at no other clock would outlive its
// session.
package clock

import "time"

// Clock reads three clocks at once: Go's monotonic one, the wall clock, and
// the time that the machine has slept. The zero value reads the system's. It
// is safe for concurrent use if its functions are.
type Clock struct {
	// Wall returns the time of day; nil means that of [time.Now].
	Wall func() time.Time
	// Slept returns for how long the machine has been suspended since some
	// fixed moment; nil means never.
	Slept func() time.Duration
}

// Stamp is one reading of a [Clock]. The zero value is no reading.
type Stamp struct {
	At    time.Time // with Go's monotonic reading
	wall  time.Time // without
	slept time.Duration
}

// System returns the clock of this machine. If Go's own clock is a fake, as in
// a testing/synctest bubble, it is the only one that is read.
func System() *Clock {
	slept, ok := suspendedTime()
	if !ok || fake() {
		return &Clock{}
	}
	return &Clock{Slept: slept}
}

// Now reads the clocks.
func (c *Clock) Now() Stamp {
	s := c.At(time.Now(), 0)
	if c.Slept != nil {
		s.slept = c.Slept()
	}
	return s
}

// At returns the stamp of the moment at. slept is an earlier reading of how long the
// machine had slept. If the machine has slept since that reading, the stamp looks
// older than it is, never younger.
func (c *Clock) At(at time.Time, slept time.Duration) Stamp {
	s := Stamp{At: at, wall: at.Round(0), slept: slept}
	if c.Wall != nil {
		s.wall = c.Wall().Round(0)
	}
	return s
}

// IsZero reports whether s is no reading.
func (s Stamp) IsZero() bool { return s.At.IsZero() }

// Slept is how long the machine had slept when s was read.
func (s Stamp) Slept() time.Duration { return s.slept }

// Add returns the stamp d later on all clocks.
func (s Stamp) Add(d time.Duration) Stamp {
	return Stamp{At: s.At.Add(d), wall: s.wall.Add(d), slept: s.slept}
}

// Since returns how much time has passed between earlier and s, by the clock that
// shows most. A clock that was set back shows less than the others, so setting it
// back prolongs nothing.
func (s Stamp) Since(earlier Stamp) time.Duration {
	d := s.At.Sub(earlier.At)
	return max(d, d+s.slept-earlier.slept, s.wall.Sub(earlier.wall))
}
