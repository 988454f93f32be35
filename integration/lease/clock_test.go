package lease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
)

// jump is how far clocks are set: longer than any session.
const jump = time.Hour

// The holder's wall clock is set back: that prolongs nothing, and a holder
// whose server is cut off then is told first as ever. It is set forward, which
// may be a machine that was restored from a snapshot: the holds end, well
// before others can hold. Others hold after the deadline that was given before the step.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Minute)
	x := extentOf()
	for range x.others() {
		leader, followers := w.ready()
		waiter, done := w.connect(leader.Addr(), 20*tick)
		w.jumps(waiter, followers, x)
		w.healed()
		done()
	}
}

// easy is a timeout that a busy machine keeps up with.
const easy = 6 * time.Second

// jumper is a process whose clock is set.
type jumper struct {
	*process
	name    string
	timeout time.Duration
	by      time.Duration
	server  string
	next    []chan grant
}

func (w *world) jumps(waiter *client.Client, followers []*harness.Node, x extent) {
	w.Helper()
	var all []*jumper
	for _, timeout := range x.timeouts {
		all = append(all,
			&jumper{name: "wall clock set back, then cut off", timeout: timeout, by: -jump, server: followers[0].Addr()},
			&jumper{name: "wall clock set forward", timeout: timeout, by: jump, server: followers[1].Addr()},
			&jumper{name: "wall clock set forward, less than T", timeout: timeout, by: timeout - time.Second, server: followers[1].Addr()})
	}
	w.together(len(all), func(i int) {
		j := all[i]
		j.process = w.start(j.server, j.timeout, x.holders)
		j.next = j.followers(func(dir string) grant { return w.next(waiter, dir) })
	})
	w.pass(tick)
	set := time.Now()
	for _, j := range all {
		j.tell(setClock + " " + j.by.String())
	}
	w.pass(tick) // clocks are compared every second while something is held
	cut := time.Now()
	w.check(followers[0].Partition(w.ctx))
	for _, j := range all {
		w.landed(j, set, cut)
	}
}

// landed judges what became of a process whose clock was set.
func (w *world) landed(j *jumper, set, cut time.Time) {
	w.Helper()
	ends := make([]time.Time, len(j.locks))
	var after time.Duration
	promised := make([]time.Time, len(j.locks))
	for n := 0; n < len(ends); {
		e := j.hear()
		if e.Kind == given {
			promised[e.Lock] = set.Add(e.Left) // it was given after set
			continue
		}
		n++
		ends[e.Lock] = e.at // when it arrived here: the end was earlier
		after = max(after, e.at.Sub(set))
		early := e.at.Before(set) || j.by < 0 && e.at.Before(cut)
		if early && j.timeout >= easy {
			w.Errorf("%s, T=%v: a hold was lost too early: %s", j.name, j.timeout, e.Why)
		}
		if by := e.At.Sub(e.at); !e.at.Before(set) && (by-j.by).Abs() > time.Minute {
			w.Errorf("%s, T=%v: the clock was set by %v", j.name, j.timeout, by)
		}
	}
	var told []time.Duration
	for i, c := range j.next {
		at := w.granted(c, j.timeout+time.Minute).at
		told = append(told, at.Sub(ends[i]))
		if early := promised[i].Sub(at); early > 0 {
			w.Errorf("%s, T=%v: the next held %v before the deadline that was given", j.name, j.timeout, early)
		}
	}
	slices.Sort(told)
	w.Logf("%-34s T=%-4v %d runs: told before the next grant by at least %v, median %v; %v after the jump at most",
		j.name, j.timeout, len(told), ms(told[0]), ms(told[len(told)/2]), ms(after))
	if told[0] <= 0 {
		w.Errorf("%s, T=%v: both held for %v", j.name, j.timeout, -told[0])
	}
	if j.by > 0 && after > 2*tick {
		w.Errorf("%s, T=%v: holds ended %v after the jump", j.name, j.timeout, after)
	}
}
