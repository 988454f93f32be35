package seqqueue

import (
	"fmt"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

const mostGuests = 5

// guest is where an acquire is that may have to wait for room.
type guest uint8

const (
	outside guest = iota
	waitsOutside
	insideRoom
	wentAway
)

// lobby is what the test knows of a room: where each acquire is, and in which order they
// came that wait.
type lobby struct {
	at     [mostGuests]guest
	came   [mostGuests]uint8
	next   uint8
	inside int8 // as the room counts
}

// stroll is a move of an acquire.
type stroll struct {
	id   uint8
	kind string
}

// windowBug is planted in a room, around its functions.
type windowBug string

const (
	roomLost  windowBug = "an acquire that was let in gives up, and keeps its room"
	pushesIn  windowBug = "an acquire that comes enters although others wait"
	lastFirst windowBug = "the last that came is let in first"
	noRoom    windowBug = "leave lets nobody in"
)

// limit is how many may be inside with an acquire: two values of a lock may say
// different numbers.
func limit[N uint8 | int](i N) int { return 2 + int(i)%2 }

// lobbyMachine is a room for acquires, with a bug or with "".
func lobbyMachine(bug windowBug) *explore.Machine[lobby, stroll] {
	return &explore.Machine[lobby, stroll]{
		Moves: func(s *lobby, moves []stroll) []stroll {
			for i := range s.at {
				id := uint8(i)
				switch s.at[i] {
				case outside:
					moves = append(moves, stroll{id, "comes"}, stroll{id, "comes past"})
				case waitsOutside:
					moves = append(moves, stroll{id, "gives up"})
				case insideRoom:
					moves = append(moves, stroll{id, "leaves"})
					if s.came[i] > 0 { // it was let in, and has not noticed
						moves = append(moves, stroll{id, "gives up"})
					}
				case wentAway:
				}
			}
			return moves
		},
		Must:  func(m stroll) bool { return m.kind == "leaves" },
		Apply: func(s *lobby, m stroll) error { return s.apply(m, bug) },
		Waits: func(s *lobby) string {
			for i, at := range s.at {
				if at == waitsOutside {
					return fmt.Sprint("acquire ", i)
				}
			}
			return ""
		},
		Tell: func(s *lobby, m stroll) string { return fmt.Sprintf("acquire %d %s: %v", m.id, m.kind, s.at) },
	}
}

// apply makes a move in a room that was set up as s says, and compares.
func (s *lobby) apply(m stroll, bug windowBug) error {
	var r room
	var all [mostGuests]entrant
	r.inside = int(s.inside)
	for i := range all {
		all[i].most, all[i].in = limit(i), s.at[i] == insideRoom
	}
	for n := range s.next { // in the order in which they came
		for i := range all {
			if s.came[i] == n+1 && s.at[i] == waitsOutside {
				r.waiting = append(r.waiting, &all[i])
			}
		}
	}
	if n := len(r.waiting); bug == lastFirst && n > 1 {
		r.waiting[0], r.waiting[n-1] = r.waiting[n-1], r.waiting[0]
	}
	i := m.id
	first := -1 // the first that waits, before the move
	for k := range s.at {
		if s.at[k] == waitsOutside && (first < 0 || s.came[k] < s.came[first]) {
			first = k
		}
	}
	var let []*entrant
	switch m.kind {
	case "comes":
		line := r.waiting
		if bug == pushesIn {
			r.waiting = nil
		}
		in := r.tryEnter(limit(i))
		r.waiting = line
		if in && first >= 0 {
			return fmt.Errorf("acquire %d has overtaken %d", i, first)
		}
		if in {
			if s.at[i] = insideRoom; r.inside > limit(i) {
				return fmt.Errorf("%d are inside with acquire %d", r.inside, i)
			}
			break
		}
		s.next++
		s.at[i], s.came[i] = waitsOutside, s.next
		let = r.await(&all[i])
	case "comes past":
		r.enterPast()
		s.at[i] = insideRoom
	case "leaves":
		let = r.leave()
		s.at[i] = wentAway
		if bug == noRoom && len(let) > 0 {
			r.inside -= len(let)
			let = nil
		}
	case "gives up":
		let = r.giveUp(&all[i])
		if bug == roomLost && s.at[i] == insideRoom {
			r.inside++
		}
		s.at[i] = wentAway
	}
	for _, e := range let {
		for k := range all {
			if e != &all[k] {
				continue
			}
			for o := range s.at {
				if s.at[o] == waitsOutside && s.came[o] < s.came[k] {
					return fmt.Errorf("acquire %d has overtaken %d", k, o)
				}
			}
			if s.at[k] = insideRoom; e == let[len(let)-1] && r.inside > limit(k) {
				return fmt.Errorf("%d are inside with acquire %d", r.inside, k)
			}
		}
	}
	s.inside = int8(r.inside)
	return s.check()
}

// check compares the room's count with where the acquires are.
func (s *lobby) check() error {
	inside, first := 0, -1
	for i, at := range s.at {
		if at == insideRoom {
			inside++
		}
		if at == waitsOutside && (first < 0 || s.came[i] < s.came[first]) {
			first = i
		}
	}
	if inside != int(s.inside) {
		return fmt.Errorf("%d are inside, and the room counts %d", inside, s.inside)
	}
	if first >= 0 && inside < limit(first) {
		return fmt.Errorf("acquire %d waits beside %d inside", first, inside)
	}
	return nil
}

// A room keeps its bound and its order, whoever comes, leaves or gives up.
func TestExploreRoom(t *testing.T) {
	t.Parallel()
	explore.Whole(t, lobbyMachine(""), 1_000_000)
}

func TestExploreRoomFindsPlantedBugs(t *testing.T) {
	t.Parallel()
	explore.Finds(t, lobbyMachine(roomLost), 1_000_000, "the room counts")
	explore.Finds(t, lobbyMachine(pushesIn), 1_000_000, "overtaken")
	explore.Finds(t, lobbyMachine(lastFirst), 1_000_000, "overtaken")
	explore.Finds(t, lobbyMachine(noRoom), 1_000_000, "waits beside")
}
