// Package choosing decides which instance of a service gets the next call. It does no I/O.
//
// Its face is [Chooser]: the shell tells it the list of instances and how calls have ended, and
// asks for the next instance. Times are handed in. The shell is the ServiceProvider of package
// discovery, which has the lock, the clock and the source of random numbers.
package choosing

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"
)

// Instance is one instance of the list. Value is the caller's own.
type Instance[V any] struct {
	ID      string
	Address string // where it is called
	Zone    string
	// Birth changes when another process may stand behind the same ID and address.
	Birth int64
	// Weight is the share of the calls that it gets by Random and LeastLoaded. It is at least 1,
	// and the sum of all is an int.
	Weight int
	Value  V
}

// Strategy is an order of instances.
type Strategy int

// The strategies.
const (
	RoundRobin  Strategy = iota // one after the other, in the order of the list
	Random                      // any, by weight
	LeastLoaded                 // the less loaded of two that are drawn by weight
)

// Rules are what a Chooser goes by. They do not change.
type Rules struct {
	Strategy Strategy
	// Sticky keeps the instance that the strategy has picked, for as long as it may be picked.
	Sticky bool
	// Zone is the own zone. Its instances come first. If it is empty, all zones are alike.
	Zone string
	// Errors is how many calls in a row fail before an instance is set aside; 0 means never.
	Errors int
	// Aside is for how long it is set aside. The time doubles each time that the instance then
	// fails its probe, up to MaxAside.
	Aside, MaxAside time.Duration
	// Panic is a share of the list. If more than that cannot be picked, a pick that excepts nobody
	// takes nothing as set aside. With 1 that never happens.
	Panic float64
	// Keep is for how long the last instances stay when the list becomes empty.
	Keep time.Duration
	// Intn draws a number from 0 to n-1.
	Intn func(n int) int
}

// Verdict says how a call has ended.
type Verdict int

// The verdicts. None is of a call that says nothing of the instance: its caller gave it up.
const (
	None Verdict = iota
	Succeeded
	Failed
	Silent // it has not even answered whether it is there, which has cost time
)

// ErrSilent is matched by the error of a call whose verdict is Silent.
var ErrSilent = errors.New("the instance does not answer")

// stage is what a Chooser knows of an instance.
type stage int

const (
	working stage = iota
	aside         // until a time
	due           // that time is over, and nobody has tried it
	probing       // one call tries it
)

// seat is an instance, and what the chooser knows of it.
type seat[V any] struct {
	Instance[V]
	place int // in the list
	stage stage
	gone  bool // from the list

	silent bool // why it was set aside last

	until    time.Duration // the end of aside, and of a probe that ends without a verdict
	failed   time.Duration // the last failure
	failures int           // in a row, while it works
	times    int           // set aside, without a success in between
	probe    int           // the number of the newest probe
	inFlight int
}

// may reports whether the seat may be picked.
func (s *seat[V]) may() bool { return s.stage == working || s.stage == due }

// mute reports whether a call to the seat probably waits for nothing.
func (s *seat[V]) mute() bool { return s.silent && !s.may() }

// load is what the seat has to do. Failures count as calls.
func (s *seat[V]) load() int { return s.inFlight + s.failures }

// Chooser chooses among the instances of a list. It is for one goroutine at a time.
//
// Each instance of the list has a stage. It may be picked while it is working or due.
//
//	stage     event                                  next stage
//	working   success                                working, no failures
//	working   failure, fewer than Errors in a row    working, one failure more
//	working   failure, Errors in a row               aside, for Aside
//	working   silence                                aside, for Aside
//	aside     its time is over                       due
//	due       picked                                 probing, for Aside at most
//	due       silence, of a call picked before       aside, for twice as long as the last time
//	probing   the probe fails, or meets silence      aside, for twice as long as the last time
//	probing   the probe ends without a verdict       due
//	probing   its time is over                       due
//	any       success                                working, no failures
//	any       anything else                          the same
//
// Failures do not add up if more than Aside is between two of them. An instance that comes
// back with another address or birth begins anew, and verdicts of calls before that say nothing.
//
// Pick chooses from the first of these rows that has an instance which is not excepted:
//
//	all that are not mute     if more than Panic of the list is aside or probing, and none is excepted
//	the own zone, which may   if a zone is given
//	the others, which may
//	all that are not mute     if more than Panic of the list is aside or probing
//	all instances             if more than Panic of the list is aside or probing
//
// Mute are those that were set aside for silence. So a call that has failed goes on to an instance
// that works, also while most do not.
//
// If the list becomes empty, the last instances stay for Keep. They go with the first pick
// after that time.
type Chooser[V any] struct {
	rules Rules
	all   row[V] // the list, in the order of the IDs
	near  row[V] // of these, the own zone's that may be picked
	far   row[V] // the others that may be picked
	even  bool   // all weights are the same

	picked  string        // the ID of the last pick
	last    int           // its place, or that of the instance before it if it is gone
	stuck   *seat[V]      // the last pick
	wake    time.Duration // no stage of a seat that may not be picked ends before
	emptied bool          // the list is empty, and the last instances stay
	until   time.Duration // so long
}

// row is a part of the list, in the same order.
type row[V any] struct {
	seats []*seat[V]
	after int   // where the last search ended
	sums  []int // of the weights up to each seat; nil if they are to be made
	guide []int // for each of as many equal parts of the sum: the first seat that reaches it
}

// Picked is a pick. [Chooser.Done] takes it back, once.
type Picked[V any] struct {
	Value V
	seat  *seat[V]
	probe int
}

// Of returns a chooser with an empty list.
func Of[V any](rules Rules) *Chooser[V] { return &Chooser[V]{rules: rules, wake: never} }

// never is a time that does not come.
const never = math.MaxInt64

// Size returns how many instances the list has, and how many of them may be picked.
func (c *Chooser[V]) Size() (listed, ready int) {
	return len(c.all.seats), len(c.near.seats) + len(c.far.seats)
}

// List notes that the list has changed. The instances are in the order of their IDs, each of
// which is there once.
func (c *Chooser[V]) List(now time.Duration, instances []Instance[V]) {
	if len(instances) == 0 && c.rules.Keep > 0 {
		if !c.emptied {
			c.emptied, c.until = true, now+c.rules.Keep
		}
		return
	}
	c.emptied = false
	c.seat(instances)
}

// seat makes instances the list.
func (c *Chooser[V]) seat(instances []Instance[V]) {
	old := c.all.seats
	first := len(old) == 0
	c.all = row[V]{seats: make([]*seat[V], len(instances))}
	c.near, c.far = row[V]{}, row[V]{seats: make([]*seat[V], 0, len(instances))}
	c.even = true
	c.last = -1
	for i, instance := range instances {
		for len(old) > 0 && old[0].ID < instance.ID {
			old[0].gone, old = true, old[1:]
		}
		var s *seat[V]
		if len(old) > 0 && old[0].ID == instance.ID && old[0].Address == instance.Address && old[0].Birth == instance.Birth {
			s, old = old[0], old[1:]
		} else {
			s = new(seat[V])
		}
		s.Instance, s.place = instance, i
		c.all.seats[i] = s
		c.even = c.even && instance.Weight == instances[0].Weight
		if instance.ID <= c.picked {
			c.last = i
		}
		if s.may() {
			r := c.rowOf(s)
			r.seats = append(r.seats, s)
		}
	}
	for _, s := range old {
		s.gone = true
	}
	if c.stuck != nil && c.stuck.gone {
		c.stuck = nil
	}
	if first && len(instances) > 0 { // not the same instance for all processes that start
		c.last = c.rules.Intn(len(instances))
		c.picked = instances[c.last].ID
	}
}

// Pick picks an instance that is none of those. It returns false if there is none.
func (c *Chooser[V]) Pick(now time.Duration, except ...string) (Picked[V], bool) {
	if c.emptied && now >= c.until {
		c.emptied = false
		c.seat(nil)
	}
	c.end(now)
	s := c.choose(except)
	if s == nil {
		return Picked[V]{}, false
	}
	c.last, c.picked, c.stuck = s.place, s.ID, s
	s.inFlight++
	if s.stage != due {
		return Picked[V]{Value: s.Value, seat: s}, true
	}
	s.probe++
	c.rest(s, probing, now+c.rules.Aside)
	return Picked[V]{Value: s.Value, seat: s, probe: s.probe}, true
}

// Done notes how the call of a pick has ended.
func (c *Chooser[V]) Done(now time.Duration, p Picked[V], verdict Verdict) {
	c.end(now)
	s := p.seat
	s.inFlight--
	if s.gone {
		return
	}
	probed := s.stage == probing && p.probe == s.probe
	switch {
	case verdict == Succeeded:
		c.ready(s, working)
		s.failures, s.times = 0, 0
	case verdict == None && probed:
		c.ready(s, due)
	case probed, verdict == Silent && s.may() && c.rules.Errors > 0:
		c.rest(s, aside, now+c.time(s))
		s.silent = verdict == Silent
	case verdict == Failed && s.stage == working && c.rules.Errors > 0:
		if now-s.failed > c.rules.Aside {
			s.failures = 0
		}
		s.failures, s.failed = s.failures+1, now
		if s.failures >= c.rules.Errors {
			c.rest(s, aside, now+c.time(s))
			s.silent = false
		}
	}
}

// time counts that a seat is set aside once more, and returns for how long.
func (c *Chooser[V]) time(s *seat[V]) time.Duration {
	d := c.rules.Aside
	for range s.times {
		if d > c.rules.MaxAside/2 {
			d = c.rules.MaxAside
			break
		}
		d *= 2
	}
	s.times++
	return min(d, c.rules.MaxAside)
}

// end moves the seats on whose times are over.
func (c *Chooser[V]) end(now time.Duration) {
	if now < c.wake {
		return
	}
	c.wake = never
	for _, s := range c.all.seats {
		switch {
		case s.may():
		case now >= s.until:
			c.ready(s, due)
		default:
			c.wake = min(c.wake, s.until)
		}
	}
}

func byPlace[V any](s *seat[V], place int) int { return cmp.Compare(s.place, place) }

// rest gives a seat a stage in which it may not be picked, until a time.
func (c *Chooser[V]) rest(s *seat[V], stage stage, until time.Duration) {
	if s.may() {
		r := c.rowOf(s)
		i, _ := slices.BinarySearchFunc(r.seats, s.place, byPlace)
		r.seats, r.sums = slices.Delete(r.seats, i, i+1), nil
	}
	s.stage, s.until = stage, until
	c.wake = min(c.wake, until)
}

// ready gives a seat a stage in which it may be picked.
func (c *Chooser[V]) ready(s *seat[V], stage stage) {
	if !s.may() {
		r := c.rowOf(s)
		i, _ := slices.BinarySearchFunc(r.seats, s.place, byPlace)
		r.seats, r.sums = slices.Insert(r.seats, i, s), nil
	}
	s.stage = stage
}

// rowOf is where a seat stands while it may be picked.
func (c *Chooser[V]) rowOf(s *seat[V]) *row[V] {
	if c.rules.Zone != "" && s.Zone == c.rules.Zone {
		return &c.near
	}
	return &c.far
}

// choose is the rule of the rows; see [Chooser].
func (c *Chooser[V]) choose(except []string) *seat[V] {
	listed, ready := c.Size()
	panics := float64(listed-ready) > c.rules.Panic*float64(listed)
	if panics && len(except) == 0 {
		if s := c.among(&c.all, except, true); s != nil {
			return s
		}
	}
	if s := c.among(&c.near, except, false); s != nil {
		return s
	}
	if s := c.among(&c.far, except, false); s != nil || !panics {
		return s
	}
	if s := c.among(&c.all, except, true); s != nil {
		return s
	}
	return c.among(&c.all, except, false)
}

// among is the strategy, for one row, or for what is not mute in it.
func (c *Chooser[V]) among(r *row[V], except []string, loud bool) *seat[V] {
	if len(r.seats) == 0 {
		return nil
	}
	if s := c.stuck; c.rules.Sticky && s != nil && !s.barred(except, loud) && (r == &c.all || s.may() && c.rowOf(s) == r) {
		return s
	}
	switch c.rules.Strategy {
	case Random:
		return r.next(c.draw(r), except, loud)
	case LeastLoaded:
		a := r.next(c.draw(r), except, loud)
		if a == nil {
			return nil
		}
		b := r.next(c.draw(r), except, loud)
		if a == b {
			b = r.next(r.behind(a.place), except, loud)
		}
		if b.load()*a.Weight < a.load()*b.Weight {
			return b
		}
		return a
	default:
		r.after = r.behind(c.last)
		return r.next(r.after, except, loud)
	}
}

// behind is where the first seat stands that is behind a place of the list.
func (r *row[V]) behind(place int) int {
	i := r.after + 1 // mostly: the seats are picked one after the other
	if i < len(r.seats) && r.seats[i].place > place && r.seats[i-1].place <= place {
		return i
	}
	i, _ = slices.BinarySearchFunc(r.seats, place+1, byPlace)
	return i
}

// barred reports whether the seat is excepted, or mute where that counts.
func (s *seat[V]) barred(except []string, loud bool) bool {
	return slices.Contains(except, s.ID) || loud && s.mute()
}

// next is the first seat from the place i on that is not barred, or nil.
func (r *row[V]) next(i int, except []string, loud bool) *seat[V] {
	n := len(r.seats)
	for j := range n {
		if s := r.seats[(i+j)%n]; !s.barred(except, loud) {
			return s
		}
	}
	return nil
}

// draw draws a seat of the row by weight.
func (c *Chooser[V]) draw(r *row[V]) int {
	n := len(r.seats)
	if c.even {
		return c.rules.Intn(n)
	}
	if r.sums == nil {
		r.weigh()
	}
	sum := r.sums[n-1]
	x := c.rules.Intn(sum)
	i := r.guide[x/(1+(sum-1)/n)]
	for r.sums[i] <= x {
		i++
	}
	return i
}

// weigh makes the sums and the guide.
func (r *row[V]) weigh() {
	n := len(r.seats)
	r.sums, r.guide = make([]int, n), make([]int, 0, n)
	sum := 0
	for i, s := range r.seats {
		sum += s.Weight
		r.sums[i] = sum
	}
	part := 1 + (sum-1)/n
	for i, upTo := range r.sums {
		for len(r.guide)*part < upTo {
			r.guide = append(r.guide, i)
		}
	}
}
