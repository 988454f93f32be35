package explore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

// two are two actors that take a lock. at is where each is: before, waiting, inside, gone.
type two struct {
	at    [2]int
	woken [2]bool
}

var errTogether = errors.New("both are inside")

// door is a machine of two. It asks whether the other is inside, unless open is set, and
// wakes a waiter, unless silent is set.
func door(open, silent bool) *explore.Machine[two, int] {
	return &explore.Machine[two, int]{
		Moves: func(s *two, moves []int) []int {
			for i, at := range s.at {
				if at == 0 || at == 1 && s.woken[i] || at == 2 {
					moves = append(moves, i)
				}
			}
			return moves
		},
		Apply: func(s *two, i int) error {
			switch {
			case s.at[i] == 2:
				s.at[i] = 3
				s.woken[1-i] = !silent
			case s.at[1-i] == 2 && !open:
				s.at[i], s.woken[i] = 1, false
			default:
				s.at[i] = 2
			}
			if s.at == [2]int{2, 2} {
				return errTogether
			}
			return nil
		},
		Must: func(int) bool { return true },
		Waits: func(s *two) string {
			for i, at := range s.at {
				if at == 1 {
					return fmt.Sprint("actor ", i)
				}
			}
			return ""
		},
		Tell: func(s *two, i int) string { return fmt.Sprintf("actor %d moves, %v", i, s.at) },
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	if w := explore.Whole(t, door(false, false), 100); !w.Complete || w.States < 10 || w.Depth < 4 {
		t.Errorf("%v", w)
	}
	explore.Finds(t, door(true, false), 100, errTogether.Error())
	explore.Finds(t, door(false, true), 100, "nothing more will happen")
}

// Moves that must be made and go round in a circle are found.
func TestMachineSettles(t *testing.T) {
	t.Parallel()
	circle := door(false, false)
	circle.Settles = 10
	explore.Whole(t, circle, 100)
	apply := circle.Apply
	circle.Apply = func(s *two, i int) error {
		err := apply(s, i)
		if s.at[i] == 3 {
			s.at[i] = 0
		}
		return err
	}
	explore.Finds(t, circle, 100, "there is no rest after 10 moves")
}

// A failure is the shortest schedule, and is told move by move.
func TestMachineFailure(t *testing.T) {
	t.Parallel()
	w := door(true, false).Walk(100)
	if w.Failure == nil || !errors.Is(w.Failure.Err, errTogether) || len(w.Failure.Schedule) != 2 {
		t.Fatalf("%v", w.Failure)
	}
	if text := w.Failure.String(); !strings.Contains(text, "both are inside, after 2 moves:\n   1. actor 0 moves, [2 0]") {
		t.Error(text)
	}
}

// A walk that is cut short is not complete.
func TestMachineCutShort(t *testing.T) {
	t.Parallel()
	if w := door(false, false).Walk(3); w.Complete || w.Failure != nil {
		t.Errorf("%v", w)
	}
}
