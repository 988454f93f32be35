package pipe

import (
	"math/rand/v2"
	"time"
)

// period is the time between two deliveries in one direction of a connection. Every
// whole millisecond is a multiple of it, and so is every tick.
const period = 2 * time.Microsecond

// The first nanoseconds of each period are reserved for the server's own timers. The
// other ones are the instants of deliveries.
const (
	reserved = 16
	instants = uint64(period - reserved)
)

// Timetable gives each direction of each connection an instant of its own in every
// period, at which nothing else is delivered. With random latencies alone two
// frames rarely arrive at one instant, where the scheduler would decide about their
// order. Among the thousands of frames of a simulation it happens. The members of
// an ensemble share a timetable. Their mutex guards it.
type Timetable struct {
	epoch time.Time
	taken map[uint64]bool
}

// NewTimetable returns a timetable whose lanes are all free.
func NewTimetable(epoch time.Time) *Timetable {
	return &Timetable{epoch: epoch, taken: map[uint64]bool{}}
}

// Take returns a lane that no other connection has. It is drawn from rng, so it
// depends on other connections only if they have taken the lane that was drawn.
// About a thousand connections can have lanes of their own; after that lanes are
// shared.
func (t *Timetable) Take(rng *rand.Rand) Lane {
	number := rng.Uint64N(instants)
	for range instants {
		if !t.taken[number] {
			break
		}
		number = (number + 1) % instants
	}
	t.taken[number] = true
	return Lane{t.epoch, number}
}

// Free gives a lane back.
func (t *Timetable) Free(l Lane) { delete(t.taken, l.number) }

// Lane is one direction of one connection in a timetable.
type Lane struct {
	epoch  time.Time
	number uint64
}

// From returns the first instant of the lane that is not before t.
func (l Lane) From(t time.Time) time.Time {
	n := int64(t.Sub(l.epoch) / period)
	for {
		at := l.epoch.Add(time.Duration(n*int64(period)) + l.within(uint64(n)))
		if !at.Before(t) {
			return at
		}
		n++
	}
}

// within returns the lane's instant in the nth period. From one period to the next
// all lanes change places. A timer that fires a whole number of periods after a
// delivery must not meet the next delivery of the same lane.
func (l Lane) within(n uint64) time.Duration {
	turn := n * 0x9e3779b97f4a7c15 >> 32
	return reserved + time.Duration((l.number+turn)%instants)
}

// Latency is the range of a delay.
type Latency struct{ Min, Max time.Duration }

// Draw returns a delay.
func (l Latency) Draw(rng *rand.Rand) time.Duration {
	if l.Max <= l.Min {
		return l.Min
	}
	return l.Min + time.Duration(rng.Int64N(int64(l.Max-l.Min)+1))
}
