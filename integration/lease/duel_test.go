package lease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// duel is one holder that a fault will strike and one waiter that it spares. Both
// live in this process, so that their instants are of one clock.
type duel struct {
	side    side
	timeout time.Duration
	hold    *recipes.Hold
	close   func() // the holder's client
	ended   chan time.Time
	next    chan grant
}

// grant is what the waiter saw.
type grant struct {
	at       time.Time
	believed bool // the old holder, asked after that
	hold     *recipes.Hold
	err      error
}

// verdict is what became of a duel.
type verdict struct {
	told     time.Duration // from the end of the old hold's context to the grant
	deadline time.Duration // from the old hold's deadline to the grant
	leased   bool          // it was the lease that ended the hold
}

// side is one kind of holder in a round.
type side struct {
	name    string // in the table
	servers string
	policy  client.LeasePolicy
	holders int  // for each timeout
	leaders bool // of an election, in place of holders of a mutex
}

// duels makes holders of every timeout on each side, with a waiter each. The
// waiters share a session that outlives all.
func (w *world) duels(waiter *client.Client, timeouts []time.Duration, sides ...side) []*duel {
	w.Helper()
	var all []*duel
	for _, s := range sides {
		for _, timeout := range timeouts {
			for range s.holders {
				all = append(all, &duel{
					side: s, timeout: timeout,
					ended: make(chan time.Time, 1), next: make(chan grant, 1),
				})
			}
		}
	}
	w.together(len(all), func(i int) { w.begin(all[i], waiter) })
	return all
}

// begin lets one hold and the other wait.
func (w *world) begin(d *duel, waiter *client.Client) {
	dir := w.directory()
	var c *client.Client
	c, d.close = w.connect(d.side.servers, d.timeout, client.WithLeasePolicy(d.side.policy))
	holder := w.contender(d.side, c, dir)
	// A session of 4 s may be lost on a machine that starts other ensembles.
	w.check(w.eventually(func() (err error) {
		d.hold, err = holder(w.ctx)
		return err
	}))
	go func() {
		<-d.hold.Context().Done()
		d.ended <- time.Now()
	}()
	next := w.contender(d.side, waiter, dir)
	go func() {
		h, err := next(w.ctx)
		at := time.Now()
		d.next <- grant{at, d.hold.Err() == nil, h, err}
	}()
	w.queue(dir, 2)
}

// contender returns what acquires on a side: a mutex, or a latch, whose term is a hold.
func (w *world) contender(s side, c *client.Client, dir string) func(context.Context) (*recipes.Hold, error) {
	w.Helper()
	if !s.leaders {
		return w.mutex(c, dir).Acquire
	}
	latch, err := recipes.NewLeaderLatch(c, dir)
	w.check(err)
	return func(ctx context.Context) (*recipes.Hold, error) {
		t, err := latch.Campaign(ctx)
		if err != nil {
			return nil, err
		}
		return t.Hold, nil
	}
}

// age lets holds get as old as to be somewhere in the rhythm of heartbeats and
// of the servers. What a slow machine takes from its holder before the fault is
// judged as well, but most must be held.
func (w *world) age(all []*duel) {
	w.Helper()
	w.pass(tick + rand.N(2*tick))
	early := 0
	for _, d := range all {
		if err := d.hold.Err(); err != nil {
			w.Logf("T=%v lost before the fault: %v", d.timeout, err)
			early++
		}
	}
	if early > len(all)/2 {
		w.Fatalf("%d of %d lost before the fault", early, len(all))
	}
}

// judge waits until every duel is over and adds the verdicts to the table.
func (w *world) judge(into *table, all []*duel) {
	w.Helper()
	for _, d := range all {
		limit := time.After(d.timeout + time.Minute)
		var g grant
		var ended time.Time
		for range 2 {
			select {
			case g = <-d.next:
				if g.err != nil {
					w.Fatalf("T=%v: the waiter: %v", d.timeout, g.err)
				}
			case ended = <-d.ended:
			case <-limit:
				w.Fatalf("%s, T=%v: not over after %v: granted %v, ended %v", d.side.name, d.timeout, d.timeout+time.Minute, !g.at.IsZero(), !ended.IsZero())
			}
		}
		v := verdict{told: g.at.Sub(ended)}
		var e *client.LeaseExpiredError
		if errors.As(context.Cause(d.hold.Context()), &e) {
			v.leased, v.deadline = true, g.at.Sub(e.Deadline)
		}
		if g.believed && v.told > 0 {
			w.Errorf("%s, T=%v: the context was done and Err was nil", d.side.name, d.timeout)
		}
		if g.hold.FencingToken() <= d.hold.FencingToken() {
			w.Errorf("token %d after %d", g.hold.FencingToken(), d.hold.FencingToken())
		}
		into.add(d, v)
	}
}

// over ends what is left of duels.
func over(all []*duel) {
	var group sync.WaitGroup
	for _, d := range all {
		group.Go(d.close)
	}
	group.Wait()
}

// table is the verdicts of a test by name and timeout.
type table struct {
	rows map[string]map[time.Duration][]verdict
}

func (t *table) add(d *duel, v verdict) {
	if t.rows == nil {
		t.rows = map[string]map[time.Duration][]verdict{}
	}
	if t.rows[d.side.name] == nil {
		t.rows[d.side.name] = map[time.Duration][]verdict{}
	}
	t.rows[d.side.name][d.timeout] = append(t.rows[d.side.name][d.timeout], v)
}

// each calls f with every row: the name, the timeout, and the two slacks in
// ascending order. deadline has only the slacks of holds that a lease ended.
func (t *table) each(f func(name string, timeout time.Duration, told, deadline []time.Duration)) {
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		for _, timeout := range slices.Sorted(maps.Keys(t.rows[name])) {
			var told, deadline []time.Duration
			for _, v := range t.rows[name][timeout] {
				told = append(told, v.told)
				if v.leased {
					deadline = append(deadline, v.deadline)
				}
			}
			slices.Sort(told)
			slices.Sort(deadline)
			f(name, timeout, told, deadline)
		}
	}
}

// deceived is how many holders of that name were not told in time.
func (t *table) deceived(name string) (n int) {
	for _, verdicts := range t.rows[name] {
		for _, v := range verdicts {
			if v.told < 0 {
				n++
			}
		}
	}
	return n
}

// safe prints the table. Every holder must have been told, by its lease, before
// the next one held, and the next one must not have held before the deadline. The
// holders whose names are in pings trust pings. At least one of them must not
// have been told in time, or the fault was none. None may have been told later
// than the policy says.
func (t *table) safe(w *world, pings ...string) {
	w.Helper()
	t.each(func(name string, timeout time.Duration, told, deadline []time.Duration) {
		n := len(told)
		line := fmt.Sprintf("%-38s T=%-4v %3d runs: told before the next grant by at least %v, median %v", name, timeout, n, ms(told[0]), ms(told[n/2]))
		if slices.Contains(pings, name) {
			exposure := trusting.Exposure(timeout)
			if told[0] < 0 {
				line += fmt.Sprintf("; BOTH HELD for %v at most, of %v that pings allow", -ms(told[0]), ms(exposure))
			}
			w.Log(line)
			if -told[0] > exposure {
				w.Errorf("%s, T=%v: both held for %v, want %v at most", name, timeout, -told[0], exposure)
			}
			return
		}
		if len(deadline) > 0 {
			line += fmt.Sprintf("; grant after the deadline by at least %v", ms(deadline[0]))
		}
		w.Log(line)
		if told[0] <= 0 {
			w.Errorf("%s, T=%v: both held for %v", name, timeout, -told[0])
		}
		if len(deadline) != n {
			w.Errorf("%s, T=%v: the lease ended %d of %d", name, timeout, len(deadline), n)
		} else if deadline[0] < 0 {
			w.Errorf("%s, T=%v: granted %v before the deadline", name, timeout, -deadline[0])
		}
	})
	for _, name := range pings {
		if t.deceived(name) == 0 {
			w.Errorf("%s: no holder was deceived, so the fault is none and the rest proves nothing", name)
		}
	}
}
