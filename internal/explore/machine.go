package explore

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"
)

// Machine is a decision together with all that can happen to it: callers, servers, other
// clients, operators. Walk makes every sequence of moves, breadth first, so a failure is
// the shortest schedule that leads to it.
//
// S is a state as a flat value: two states that are equal have the same future. M is a
// move. A reference that the product's own logic has no part in belongs into Apply: what
// the servers have, and who is entitled by that.
type Machine[S comparable, M any] struct {
	Start S

	// Moves appends the moves that a state allows.
	Moves func(s *S, moves []M) []M

	// Apply makes a move. An error says which invariant the new state breaks.
	Apply func(s *S, move M) error

	// Must reports whether somebody will make the move sooner or later, as an answer
	// that is under way. Nobody need make the others, as a caller that gives up.
	Must func(move M) bool

	// Waits returns who waits in a state, or "". A state in which somebody waits, and no
	// move must be made, is a failure: nobody will wake the waiter.
	Waits func(s *S) string

	// Settles, unless it is zero, is how many moves lead to rest at most: from each state,
	// if always the first move is made that must be made. More is a failure: the moves go
	// round in a circle.
	Settles int

	// Tell is a move, and the state that it has led to, in one line.
	Tell func(s *S, move M) string
}

// Walked says what [Machine.Walk] has walked.
type Walked struct {
	States   int
	Moves    int
	Depth    int  // the most moves of a schedule
	Complete bool // whether all states were reached
	Took     time.Duration
	Failure  *Failure // the first, nil if there is none
}

// String is one line of figures.
func (w Walked) String() string {
	return fmt.Sprintf("%d states, %d moves, depth %d, complete %v, %.1fs", w.States, w.Moves, w.Depth, w.Complete, w.Took.Seconds())
}

// Failure is a schedule that breaks an invariant.
type Failure struct {
	Err      error
	Schedule []string // a line for each move
}

// String is the invariant and the schedule.
func (f *Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, after %d moves:", f.Err, len(f.Schedule))
	for i, line := range f.Schedule {
		fmt.Fprintf(&b, "\n  %2d. %s", i+1, line)
	}
	return b.String()
}

// made is how a state was reached.
type made[M any] struct {
	from int32
	move M
}

// Walk makes all sequences of moves that lead to at most most states. States are told
// apart by hashes of 64 bits.
func (m *Machine[S, M]) Walk(most int) (w Walked) {
	began, seed := time.Now(), maphash.MakeSeed()
	defer func() { w.Took = time.Since(began) }()
	type reached struct {
		s  S
		at int32
	}
	seen := map[uint64]struct{}{maphash.Comparable(seed, m.Start): {}}
	history := make([]made[M], 1, 1<<10)
	settled := map[uint64]struct{}{}
	level := []reached{{m.Start, 0}}
	var next []reached
	var moves []M
	w.States = 1
	for len(level) > 0 {
		next = next[:0]
		for i := range level {
			from := &level[i]
			moves = m.Moves(&from.s, moves[:0])
			must := false
			for _, move := range moves {
				must = must || m.Must(move)
				w.Moves++
				s := from.s
				if err := m.Apply(&s, move); err != nil {
					w.Failure = m.failure(err, append(schedule(history, from.at), move))
					return w
				}
				hash := maphash.Comparable(seed, s)
				if _, ok := seen[hash]; ok {
					continue
				}
				seen[hash] = struct{}{}
				if err := m.settle(s, seed, settled); err != nil {
					w.Failure = m.failure(err, append(schedule(history, from.at), move))
					return w
				}
				history = append(history, made[M]{from.at, move})
				next = append(next, reached{s, int32(len(history) - 1)}) //nolint:gosec // memory ends before
				w.States++
			}
			if !must {
				if who := m.Waits(&from.s); who != "" {
					w.Failure = m.failure(fmt.Errorf("%s waits, and nothing more will happen", who), schedule(history, from.at))
					return w
				}
			}
		}
		if w.States > most {
			return w
		}
		if len(next) > 0 {
			w.Depth++
		}
		level, next = next, level
	}
	w.Complete = true
	return w
}

// settle makes the moves that must be made, until a state is known to settle.
func (m *Machine[S, M]) settle(s S, seed maphash.Seed, settled map[uint64]struct{}) error {
	var passed []uint64
	for len(passed) < m.Settles {
		hash := maphash.Comparable(seed, s)
		_, known := settled[hash]
		moves := m.Moves(&s, nil)
		must := slices.IndexFunc(moves, m.Must)
		if passed = append(passed, hash); known || must < 0 {
			for _, hash := range passed {
				settled[hash] = struct{}{}
			}
			return nil
		}
		if err := m.Apply(&s, moves[must]); err != nil {
			return nil //nolint:nilerr // the walk finds it as well, and tells the moves to it
		}
	}
	if m.Settles > 0 {
		return fmt.Errorf("%w after %d moves that must be made", errRestless, m.Settles)
	}
	return nil
}

var errRestless = errors.New("there is no rest")

// schedule is the moves that lead to a state.
func schedule[M any](history []made[M], at int32) (moves []M) {
	for ; at != 0; at = history[at].from {
		moves = append(moves, history[at].move)
	}
	slices.Reverse(moves)
	return moves
}

// failure plays the moves again, to tell them.
func (m *Machine[S, M]) failure(err error, moves []M) *Failure {
	f := &Failure{Err: err}
	s := m.Start
	for _, move := range moves {
		_ = m.Apply(&s, move) // the last one fails, as is known
		f.Schedule = append(f.Schedule, m.Tell(&s, move))
	}
	return f
}

// Whole walks a machine. It fails the test if an invariant does not hold, or if there are
// more than most states.
func Whole[S comparable, M any](t testing.TB, m *Machine[S, M], most int) Walked {
	t.Helper()
	w := m.Walk(most)
	switch {
	case w.Failure != nil:
		t.Errorf("%v; %v", w.Failure, w)
	case !w.Complete:
		t.Errorf("more than %d states: %v", most, w)
	default:
		t.Logf("%v", w)
	}
	return w
}

// Finds walks a machine in which a bug was planted. It fails the test if no invariant is
// broken, or another than one whose text has want.
func Finds[S comparable, M any](t testing.TB, m *Machine[S, M], most int, want string) {
	t.Helper()
	w := m.Walk(most)
	if w.Failure == nil {
		t.Errorf("the planted bug is not found: %v", w)
		return
	}
	if !strings.Contains(w.Failure.Err.Error(), want) {
		t.Errorf("found %v, want %q", w.Failure, want)
		return
	}
	t.Logf("found %v, %d moves; %v", w.Failure.Err, len(w.Failure.Schedule), w)
}
