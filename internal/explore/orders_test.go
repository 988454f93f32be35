package explore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

// counter is a number that two actors read and then write: an update is lost if one reads
// between the other's read and write.
type counter struct {
	n    int
	read map[string]int
	next map[string]int // how many steps an actor has taken
	more bool           // the actors differ from run to run
}

// Parked lists the next step of each actor.
func (c *counter) Parked() []parked {
	var all []parked
	for _, who := range []string{"a", "b"} {
		if c.next[who] < 2 {
			what := []string{"read", "write"}[c.next[who]]
			if c.more {
				what += "s"
			}
			all = append(all, parked(who+" "+what))
		}
	}
	return all
}

type parked string

// String is the step.
func (p parked) String() string { return string(p) }

// Let takes a step.
func (c *counter) Let(p parked) {
	who := string(p[:1])
	if c.next[who] == 0 {
		c.read[who] = c.n
	} else {
		c.n = c.read[who] + 1
	}
	c.next[who]++
}

func newCounter() *counter { return &counter{read: map[string]int{}, next: map[string]int{}} }

func (c *counter) play(o *explore.Order, deeds ...explore.Deed) error {
	explore.Programs[parked]{
		Gate: c, Rest: func() {}, Idle: func() {},
		Over:  func() bool { return len(c.Parked()) == 0 },
		Deeds: deeds,
	}.Play(o)
	if c.n != 2 {
		return fmt.Errorf("the counter is %d", c.n)
	}
	return nil
}

// Without a switch no update is lost. With one it is, and the schedule repeats that.
func TestOrdersFindsLostUpdate(t *testing.T) {
	t.Parallel()
	play := func(o *explore.Order) error { return newCounter().play(o) }
	r, err := explore.Orders{}.Play(play)
	if err != nil || r.Runs != 2 || !r.Complete || len(r.Findings) != 0 {
		t.Errorf("no switch: %+v, %v", r, err)
	}
	r, err = explore.Orders{Switches: 3, Findings: 100}.Play(play)
	if err != nil || r.Runs != 6 || !r.Complete || len(r.Findings) != 4 || r.Longest != 4 { // 4 over 2 orders, of which 2 are good
		t.Fatalf("all orders: %+v, %v", r, err)
	}
	first := r.Findings[0]
	again, err := explore.Orders{Replay: first.Schedule}.Play(play)
	if err != nil || again.Runs != 1 || len(again.Findings) != 1 || !slices.Equal(again.Findings[0].Steps, first.Steps) {
		t.Errorf("%v, and again %+v, %v", first, again, err)
	}
	if r, err = (explore.Orders{Switches: 3, Runs: 3, Findings: 100}).Play(play); err != nil || r.Runs != 3 || r.Complete {
		t.Errorf("cut off: %+v, %v", r, err)
	}
	if _, err = (explore.Orders{Replay: "x"}).Play(play); err == nil {
		t.Error("no such schedule")
	}
}

// A deed may be done at each moment, or never.
func TestOrdersPlaysDeeds(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	_, err := explore.Orders{Switches: 1, Findings: 100}.Play(func(o *explore.Order) error {
		c, when := newCounter(), -1
		err := c.play(o, explore.Deed{Name: "look", Do: func() { when = c.next["a"] + c.next["b"] }})
		seen[when] = true
		return err
	})
	if err != nil || len(seen) != 5 { // before each of the four steps, and never
		t.Errorf("%v, %v", seen, err)
	}
}

// Programs whose options differ from run to run are found out.
func TestOrdersNoticesChance(t *testing.T) {
	t.Parallel()
	runs := 0
	r, err := explore.Orders{Switches: 1, Findings: 1}.Play(func(o *explore.Order) error {
		c := newCounter()
		c.more = runs%2 == 1
		runs++
		_ = c.play(o) // what it finds is not looked at
		return nil
	})
	if err != nil || len(r.Findings) != 1 || !errors.Is(r.Findings[0].Err, explore.ErrOtherOptions) {
		t.Errorf("%+v, %v", r, err)
	}
}

// A rare run with other options is played again, and no order is lost.
func TestOrdersPlaysAgainAfterChance(t *testing.T) {
	t.Parallel()
	for rare := range 12 {
		runs := 0
		r, err := explore.Orders{Switches: 3, Findings: 100}.Play(func(o *explore.Order) error {
			c := newCounter()
			c.more = runs == rare
			runs++
			_ = c.play(o)
			return nil
		})
		if err != nil || len(r.Findings) != 0 || !r.Complete || r.Runs < 6 {
			t.Errorf("run %d differs: %+v, %v", rare, r, err)
		}
	}
}

// An option that the scheduler draws once in a run, and never again, is no order and hides none. Options that
// come and go with every run are found out.
func TestOrdersLeavesOutWhatWasDrawn(t *testing.T) {
	t.Parallel()
	for _, every := range []int{1000, 2} {
		for rare := range 6 {
			runs := 0
			r, err := explore.Orders{Switches: 3, Findings: 100}.Play(func(o *explore.Order) error {
				c := newCounter()
				var deeds []explore.Deed
				if runs%every == rare%every {
					deeds = []explore.Deed{{Name: "c", Do: func() {}}}
				}
				runs++
				_ = c.play(o, deeds...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			good := len(r.Findings) == 0 && r.Runs-r.Drawn == 6 // and Complete, where there are many
			if every == 2 {
				good = !r.Complete || len(r.Findings) > 0
			}
			if !good {
				t.Errorf("run %d of %d differs: %+v", rare, every, r)
			}
		}
	}
}
