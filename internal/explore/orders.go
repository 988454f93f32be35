// Package explore plays decisions and programs in every order, for tests.
package explore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Orders plays programs of several actors in every order of their steps, within a bound of
// switches. A switch is a choice of another step where the actor of the last step could go
// on with its first. If that actor has no step left, going on with any other is no switch.
// Few switches reach most faults that depend on an order, where all orders are too many.
//
// Each order is played once, those with fewer switches first. So the first finding is one
// with the fewest.
type Orders struct {
	Switches int
	// Runs is how many orders are played at most; zero means all.
	Runs int
	// Findings is after how many failed orders the play ends; zero means after one.
	Findings int
	// Replay, if it is not empty, is the schedule of the only order to play, as a
	// finding names it.
	Replay string
}

// OrdersReport says what [Orders.Play] has played.
type OrdersReport struct {
	Runs     int
	Longest  int  // the most choices of an order
	Complete bool // whether all orders within the bound of switches were played
	// Drawn are orders that do not exist: they branch from a play in which the scheduler drew a
	// rare option, which came up in none of many plays again. With more than one in ten of them,
	// the programs depend on something else than their order, and Complete is false.
	Drawn    int
	Findings []OrderFinding
}

// OrderFinding is an order in which the play has failed.
type OrderFinding struct {
	Schedule string // for [Orders.Replay]
	Steps    []string
	Err      error
}

// String says how to repeat the order, and lists its steps.
func (f OrderFinding) String() string {
	return fmt.Sprintf("schedule %q: %v; steps: %s", f.Schedule, f.Err, strings.Join(f.Steps, ", "))
}

// Option is a step that an actor could take next.
type Option struct{ Actor, Step string }

// ErrOtherOptions says that the same choices led to other options in each of many plays: the
// programs depend on something else than their order.
var ErrOtherOptions = errors.New("explore: the same choices lead to other options than before")

// Order is one order of steps, while it is played.
type Order struct {
	limit   int
	wanted  map[int]int // the choices of the prefix that are no defaults
	prefix  int         // how many choices are given
	before  []string    // the options of an earlier order with this prefix
	options []string    // at each choice
	costs   [][]int     // of these options
	steps   []string
	last    string
	spent   int
	missing bool // the given choice has no such option, and nothing else was wrong
	err     error
}

// Choose returns which of the options is next, of one at least. They are the same, in the
// same order, whenever the same choices were made before.
func (o *Order) Choose(options []Option) int {
	at := len(o.options)
	ranked, costs := o.rank(options)
	text := fmt.Sprint(options)
	if at < len(o.before) && at < o.prefix && o.before[at] != text && o.err == nil {
		o.err = fmt.Errorf("%w: choice %d was of %s and is of %s", ErrOtherOptions, at, o.before[at], text)
	}
	k := o.wanted[at]
	if k >= len(ranked) {
		if o.err == nil {
			o.missing = true
			o.err = fmt.Errorf("%w: choice %d takes option %d of %s", ErrOtherOptions, at, k, text)
		}
		k = 0
	}
	chosen := options[ranked[k]]
	o.options, o.costs = append(o.options, text), append(o.costs, costs)
	o.steps = append(o.steps, chosen.Actor+": "+chosen.Step)
	o.last = chosen.Actor
	o.spent += costs[k]
	return ranked[k]
}

// rank sorts options: first those of the actor of the last step. It leaves out those for
// which no switch is left.
func (o *Order) rank(options []Option) (ranked, costs []int) {
	goesOn := slices.ContainsFunc(options, func(p Option) bool { return p.Actor == o.last })
	seen := map[string]bool{}
	add := func(i int) {
		cost := 0
		if len(ranked) > 0 && (goesOn || seen[options[i].Actor]) {
			cost = 1
		}
		seen[options[i].Actor] = true
		if o.spent+cost <= o.limit {
			ranked, costs = append(ranked, i), append(costs, cost)
		}
	}
	for i, p := range options {
		if p.Actor == o.last {
			add(i)
		}
	}
	for i, p := range options {
		if p.Actor != o.last {
			add(i)
		}
	}
	return ranked, costs
}

// schedule names the choices that are no defaults.
func (o *Order) schedule() string {
	if len(o.wanted) == 0 {
		return "default"
	}
	var all []string
	for at := range o.prefix {
		if k := o.wanted[at]; k != 0 {
			all = append(all, fmt.Sprintf("%d=%d", at, k))
		}
	}
	return strings.Join(all, ",")
}

// parseSchedule is the opposite of schedule.
func parseSchedule(text string) (*Order, error) {
	o := &Order{wanted: map[int]int{}}
	if text == "default" {
		return o, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		left, right, _ := strings.Cut(part, "=")
		at, err1 := strconv.Atoi(left)
		k, err2 := strconv.Atoi(right)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("explore: schedule %q: %w", text, err)
		}
		o.wanted[at], o.prefix = k, max(o.prefix, at+1)
	}
	return o, nil
}

// Play calls play once for each order. play runs the programs from the beginning, asks
// [Order.Choose] for each step, and returns what is wrong with the outcome.
func (s Orders) Play(play func(*Order) error) (OrdersReport, error) {
	if s.Replay != "" {
		o, err := parseSchedule(s.Replay)
		if err != nil {
			return OrdersReport{}, err
		}
		o.limit = len(s.Replay) // no bound
		var r OrdersReport
		r.play(o, play)
		if r.Drawn > 0 {
			r.found(o, o.err)
		}
		return r, nil
	}
	var r OrdersReport
	waiting := make([][]*Order, s.Switches+1) // by the switches of their prefixes
	waiting[0] = []*Order{{limit: s.Switches}}
	for n := 0; n < len(waiting); {
		if len(waiting[n]) == 0 {
			n++
			continue
		}
		if s.Runs > 0 && r.Runs == s.Runs || len(r.Findings) >= max(s.Findings, 1) {
			return r, nil
		}
		last := len(waiting[n]) - 1
		o := waiting[n][last]
		waiting[n] = waiting[n][:last]
		r.play(o, play)
		if o.err == nil {
			o.branch(waiting)
		}
	}
	r.Complete = r.Drawn*10 <= r.Runs
	return r, nil
}

// tries is how often an order is played until two plays have the same options.
const tries = 30

// play plays one order. Two goroutines that are ready at one instant let the scheduler draw
// the options, which is rare. Then the order is played again, until two plays in a row agree.
// The outcome of each play counts.
func (r *OrdersReport) play(o *Order, play func(*Order) error) {
	err := play(o)
	for n := 1; err == nil && o.err != nil && n < tries; n++ {
		*o = Order{limit: o.limit, wanted: o.wanted, prefix: o.prefix, before: o.options}
		err = play(o)
	}
	r.Runs++
	r.Longest = max(r.Longest, len(o.options))
	if err == nil && o.missing { // in two plays in a row at least, which were the same
		r.Drawn++
		return
	}
	if err = errors.Join(err, o.err); err != nil {
		r.found(o, err)
	}
}

func (r *OrdersReport) found(o *Order, err error) {
	r.Findings = append(r.Findings, OrderFinding{o.schedule(), o.steps, err})
}

// branch puts the orders that differ from o first after its prefix to those that wait.
func (o *Order) branch(waiting [][]*Order) {
	spent := 0
	for at, costs := range o.costs {
		if at >= o.prefix {
			for k := 1; k < len(costs); k++ {
				next := &Order{limit: o.limit, prefix: at + 1, before: o.options, wanted: map[int]int{at: k}}
				maps.Copy(next.wanted, o.wanted)
				cost := spent + costs[k]
				waiting[cost] = append(waiting[cost], next)
			}
		}
		spent += costs[o.wanted[at]]
	}
}
