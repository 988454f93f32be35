package recipes

import (
	"errors"
	"fmt"
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
		c := newCandidacy([]string{"x", "y"})
		c.turnHasCome("z")
		for _, at := range []struct {
			after time.Duration
			want  bool
		}{{0, true}, {time.Second, false}, {tt.after, false}, {tt.after + 1, true}} {
			if got := c.lineIs([]string{"x"}, begin.Add(at.after), tt.timeout); got != at.want {
				t.Errorf("timeout %v: gives way after %v: %v, want %v", tt.timeout, at.after, got, at.want)
			}
		}
		if !c.lineIs([]string{"x", "y"}, begin.Add(tt.after+2), tt.timeout) {
			t.Errorf("timeout %v: does not give way to another", tt.timeout)
		}
	}
}

// How a place in line has ended says whether the campaign stands in line again.
func TestCandidacyEnded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state candidacyState
		err   error
		again bool
		then  candidacyState
	}{
		{leading, nil, false, leading},
		{leading, ErrNodeDeleted, true, apart},
		{waiting, fmt.Errorf("joined: %w", ErrNodeDeleted), true, apart},
		{electing, ErrNodeDeleted, true, apart},
		{leading, fmt.Errorf("%w: %w", ErrLost, ErrNodeDeleted), false, over},
		{waiting, ErrLost, false, over},
		{waiting, errors.New("no answer"), false, over},
		{yielding, errGaveWay, true, apart},
		{yielding, fmt.Errorf("%w: %w", ErrLost, ErrNodeDeleted), true, apart},
	} {
		c := newCandidacy(nil)
		c.state = tt.state
		if again := c.ended(tt.err); again != tt.again || c.state != tt.then {
			t.Errorf("ended in state %d with %v: again %v, state %d; want %v, %d", tt.state, tt.err, again, c.state, tt.again, tt.then)
		}
	}
}
