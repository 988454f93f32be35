package candidacy

import (
	"testing"
	"time"
)

// A campaign gives way to the same id again after a minute, or after two session timeouts if
// these are longer. Until then it leads.
func TestCandidacyGivesWayAgain(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1000, 0)
	for _, tt := range []struct{ after, timeout time.Duration }{
		{deferAgain, time.Second},
		{deferAgain, deferAgain / 2},
		{deferAgain + 2*time.Second, deferAgain/2 + time.Second},
	} {
		c := New([]string{"x", "y"})
		c.TurnHasCome("z")
		for _, at := range []struct {
			after time.Duration
			want  bool
		}{{0, true}, {time.Second, false}, {tt.after, false}, {tt.after + 1, true}} {
			if got := c.LineIs([]string{"x"}, begin.Add(at.after), tt.timeout); got != at.want {
				t.Errorf("timeout %v: gives way after %v: %v, want %v", tt.timeout, at.after, got, at.want)
			}
		}
		if !c.LineIs([]string{"x", "y"}, begin.Add(tt.after+2), tt.timeout) {
			t.Errorf("timeout %v: does not give way to another", tt.timeout)
		}
	}
}

// How a place in line has ended says whether the campaign stands in line again.
func TestCandidacyEnded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state           state
		failed, deleted bool
		again           bool
		then            state
	}{
		{leading, false, false, false, leading},
		{leading, true, true, true, apart},
		{waiting, true, true, true, apart},
		{electing, true, true, true, apart},
		{leading, true, false, false, over},
		{waiting, true, false, false, over},
		{yielding, true, false, true, apart},
		{yielding, true, true, true, apart},
	} {
		c := New(nil)
		c.state = tt.state
		if again := c.Ended(tt.failed, tt.deleted); again != tt.again || c.state != tt.then {
			t.Errorf("ended in state %d, failed %v, deleted %v: again %v, state %d; want %v, %d", tt.state, tt.failed, tt.deleted, again, c.state, tt.again, tt.then)
		}
	}
}
