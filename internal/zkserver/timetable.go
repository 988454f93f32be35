package zkserver

import (
	"math/rand/v2"
	"time"
)

// period is the time between two deliveries in one direction of a connection.
// Every whole millisecond is a multiple of it, and so is every tick.
const period = 2 * time.Microsecond

// reserved is how many nanoseconds at the start of each period belong to the
// server's own timers, instants is how many are left.
const (
	reserved = 16
	instants = uint64(period - reserved)
)

// timetable gives each direction of each connection an instant of its own in
// every period, at which nothing else is delivered. Random latencies alone make
// it rare that two frames arrive at one instant, where their order would be
// anybody's; among the thousands of frames of a simulation it happens. The
// members of an ensemble share a timetable. It is guarded by their mutex.
type timetable struct {
	epoch time.Time
	taken map[uint64]bool
}

func newTimetable(epoch time.Time) *timetable {
	return &timetable{epoch: epoch, taken: map[uint64]bool{}}
}

// take returns a line of its own, drawn from rng so that it depends on other
// connections only when they have taken it. When a thousand connections have
// left none it is shared.
func (t *timetable) take(rng *rand.Rand) line {
	number := rng.Uint64N(instants)
	for range instants {
		if !t.taken[number] {
			break
		}
		number = (number + 1) % instants
	}
	t.taken[number] = true
	return line{t.epoch, number}
}

func (t *timetable) free(l line) { delete(t.taken, l.number) }

// line is one direction of one connection in a timetable.
type line struct {
	epoch  time.Time
	number uint64
}

// from returns the first instant of the line that is not before t.
func (l line) from(t time.Time) time.Time {
	n := int64(t.Sub(l.epoch) / period)
	for {
		at := l.epoch.Add(time.Duration(n*int64(period)) + l.within(uint64(n)))
		if !at.Before(t) {
			return at
		}
		n++
	}
}

// within returns the line's instant in the nth period. All lines change places
// from period to period: what a timer does a whole number of periods after a
// delivery must not meet the next one on the same line.
func (l line) within(n uint64) time.Duration {
	turn := n * 0x9e3779b97f4a7c15 >> 32
	return reserved + time.Duration((l.number+turn)%instants)
}

// latency is the range of a delay.
type latency struct{ min, max time.Duration }

// draw returns a delay.
func (l latency) draw(rng *rand.Rand) time.Duration {
	if l.max <= l.min {
		return l.min
	}
	return l.min + time.Duration(rng.Int64N(int64(l.max-l.min)+1))
}
