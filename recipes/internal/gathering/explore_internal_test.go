package gathering

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

// Acquires of several locks, with others that take single locks one within the other, in all
// orders of their steps. Who may hold a lock, and in which order one may wait, is told from
// the queues alone.

const (
	taxa    = 3 // who takes locks
	berths  = 3 // locks
	nowhere = 0 // in a queue
)

// harbour is the world. It is a flat value.
type harbour struct {
	line [berths][taxa]int8 // the queue of each lock, in order: 1 is the first of those who take locks
	at   [taxa]taker
}

// taker takes locks once.
type taker struct {
	locks  uint8 // that it wants; a set
	nested bool  // it takes them one within the other, and is no multi-lock
	g      Acquire
	has    uint8 // locks that it believes to hold
	crowd  bool  // another acquire of its client contends for the next lock
	state  int8
}

// The states of a taker.
const (
	takes int8 = iota
	waits
	holds
	leaves // its nodes are deleted one by one
	gone
)

type harbourMove struct {
	who  int8
	what string
	free int8 // locks that come first and are not contended, as its client knows
}

var (
	errTwoHold  = errors.New("a lock is held that another contender is ahead in")
	errBehind   = errors.New("an acquire waits, and has a node behind the lock that it waits for")
	errHalf     = errors.New("an acquire has ended with half of its locks")
	errSkipped  = errors.New("a lock is taken before one that is named before")
	errWaitless = errors.New("an acquire waits that must not wait")
	errPast     = errors.New("a contended queue is joined past the window")
	errAlone    = errors.New("a queue is joined alone, and is neither contended nor the only one")
)

// stands is the set of the locks in whose queues i stands.
func (h *harbour) stands(i int8) (set uint8) {
	for l := range h.line {
		if slices.Contains(h.line[l][:], i+1) {
			set |= 1 << l
		}
	}
	return set
}

func (h *harbour) join(l int, i int8) {
	h.line[l][slices.Index(h.line[l][:], nowhere)] = i + 1
}

func (h *harbour) quit(l int, i int8) {
	rest := slices.DeleteFunc(slices.Clone(h.line[l][:]), func(n int8) bool { return n == i+1 || n == nowhere })
	h.line[l] = [taxa]int8{}
	copy(h.line[l][:], rest)
}

// wants are the locks that a taker has not, in their order.
func (t *taker) wants() (locks []int) {
	for l := range berths {
		if (t.locks&^t.has)&(1<<l) != 0 {
			locks = append(locks, l)
		}
	}
	return locks
}

// moves are those of a world. Any acquire may give up, and does so with all its nodes; the
// deletes of a release are applied together, or one by one.
func (h *harbour) moves(all []harbourMove) []harbourMove {
	for i := range int8(taxa) {
		t := &h.at[i]
		add := func(what string) { all = append(all, harbourMove{who: i, what: what}) }
		switch t.state {
		case takes:
			add("goes on")
			if t.nested || !t.g.wait || t.g.joined > 0 || t.g.alone {
				break
			}
			for free := range len(t.wants()) {
				all = append(all, harbourMove{who: i, what: "joins the free", free: int8(free)})
			}
		case waits:
			if l := t.wants()[0]; h.line[l][0] == i+1 {
				add("has its turn")
			}
			add("gives up")
		case holds:
			add("releases")
			add("releases one by one")
		case leaves:
			add("has deleted a node")
		}
	}
	return all
}

func (h *harbour) apply(m harbourMove, next func(*Acquire) Deed) error {
	t := &h.at[m.who]
	switch m.what {
	case "goes on":
		return h.step(m.who, t, next, len(t.wants()))
	case "joins the free":
		return h.step(m.who, t, next, int(m.free))
	case "has its turn":
		t.state = takes
		return h.take(m.who, t)
	case "gives up", "releases":
		for l := range berths {
			h.quit(l, m.who)
		}
		t.has, t.state = 0, gone
	case "releases one by one":
		t.has, t.state = 0, leaves
	case "has deleted a node":
		l := bits.Len8(h.stands(m.who)) - 1
		if h.quit(l, m.who); h.stands(m.who) == 0 {
			t.state = gone
		}
	}
	return nil
}

// step makes the next step of a taker, of whose locks the first ones are free.
func (h *harbour) step(i int8, t *taker, next func(*Acquire) Deed, free int) error {
	wants := t.wants()
	deed := Await
	switch {
	case !t.nested:
		deed = next(&t.g)
	case len(wants) == 0:
		deed = Done
	case h.stands(i) == t.has:
		deed = JoinFirst
	}
	switch deed {
	case Done:
		if t.has != t.locks || h.stands(i) != t.locks {
			return errHalf
		}
		t.state = holds
	case JoinFirst:
		if !t.nested && !t.g.wait {
			return errWaitless // in the window
		}
		if !t.nested && !t.g.alone {
			return errAlone
		}
		h.join(wants[0], i)
		t.g.Join(1)
		t.crowd = false
	case JoinRest:
		if t.crowd {
			return errPast
		}
		if free == 0 {
			t.g.Crowd()
			t.crowd = true
			break
		}
		for _, l := range wants[:free] {
			h.join(l, i)
		}
		t.g.Join(free)
	case Look:
		switch {
		case h.line[wants[0]][0] == i+1:
			return h.take(i, t)
		case t.g.wait:
			t.g.Block()
		default: // it was busy
			return h.apply(harbourMove{who: i, what: "gives up"}, next)
		}
	case Withdraw:
		for _, l := range wants[1:] {
			h.quit(l, i)
		}
		t.g.Withdrawn()
	case Await:
		if !t.nested && !t.g.wait {
			return errWaitless
		}
		if behind := h.stands(i) &^ t.has &^ (1 << wants[0]); behind != 0 {
			return errBehind
		}
		t.state = waits
	}
	return nil
}

// take takes the first lock that is missing.
func (h *harbour) take(i int8, t *taker) error {
	l := t.wants()[0]
	if t.g.Grant(len(t.wants()) == 2); h.line[l][0] != i+1 {
		return errTwoHold
	}
	if t.has>>l != 0 {
		return errSkipped
	}
	t.has |= 1 << l
	return nil
}

// harbours is the machine for takers of these locks: a letter of each lock, small for those
// that take them one within the other, with a question mark for those that must not wait, and
// with a star where the first is to be joined alone.
func harbours(next func(*Acquire) Deed, takers [taxa]string) *explore.Machine[harbour, harbourMove] {
	var start harbour
	for i, text := range takers {
		t := taker{g: Acquire{wait: true}}
		for _, r := range text {
			switch {
			case r == '?':
				t.g.wait = false
			case r == '*':
				t.g.alone = true
			case r >= 'a':
				t.nested = true
				t.locks |= 1 << (r - 'a')
			default:
				t.locks |= 1 << (r - 'A')
				t.g.missing++
			}
		}
		start.at[i] = t
	}
	return &explore.Machine[harbour, harbourMove]{
		Start: start,
		Moves: func(h *harbour, all []harbourMove) []harbourMove { return h.moves(all) },
		Apply: func(h *harbour, m harbourMove) error { return h.apply(m, next) },
		Must:  func(m harbourMove) bool { return m.what != "gives up" },
		Waits: func(h *harbour) string {
			for i := range h.at {
				if h.at[i].state == waits {
					return fmt.Sprintf("taker %d", i)
				}
			}
			return ""
		},
		Settles: 40,
		Tell: func(h *harbour, m harbourMove) string {
			return fmt.Sprintf("%d %s, queues %v, has %b", m.who, m.what, h.line, h.at[m.who].has)
		},
	}
}

// Three acquires of all kinds, of all sets of locks that meet.
func TestExploreGatherings(t *testing.T) {
	t.Parallel()
	kinds := []string{"ABC", "AB", "BC", "AC*", "AB?*", "abc", "b"}
	states, worlds := 0, 0
	for i, a := range kinds {
		for j, b := range kinds[i:] {
			for _, c := range kinds[i+j:] {
				w := harbours((*Acquire).Next, [taxa]string{a, b, c}).Walk(1 << 20)
				if w.Failure != nil || !w.Complete {
					t.Fatalf("%s, %s, %s: %v; %v", a, b, c, w.Failure, w)
				}
				states, worlds = states+w.States, worlds+1
			}
		}
	}
	t.Logf("%d worlds, %d states", worlds, states)
}

// Each of these bugs is found.
func TestExploreGatheringsFindsPlants(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]struct {
		next   func(*Acquire) Deed
		takers [taxa]string
		want   string
	}{
		"it does not withdraw": {func(g *Acquire) Deed {
			if deed := g.Next(); deed != Withdraw {
				return deed
			}
			return Await
		}, [taxa]string{"AB", "a", "b"}, errBehind.Error()},
		"it is content with the first": {func(g *Acquire) Deed {
			if g.has > 0 && g.joined == 0 {
				return Done
			}
			return g.Next()
		}, [taxa]string{"ABC", "b", "b"}, errHalf.Error()},
		"a try waits": {func(g *Acquire) Deed {
			if deed := g.Next(); deed != Look {
				return deed
			}
			return Await
		}, [taxa]string{"B?", "b", "b"}, errWaitless.Error()},
		"it joins one by one": {func(g *Acquire) Deed {
			if deed := g.Next(); deed != JoinRest || g.has == 0 {
				return deed
			}
			return JoinFirst
		}, [taxa]string{"ABC", "b", "b"}, errAlone.Error()},
		"a try stands in the window": {func(g *Acquire) Deed {
			if deed := g.Next(); deed != JoinRest {
				return deed
			}
			return JoinFirst
		}, [taxa]string{"AB?", "b", "b"}, errWaitless.Error()},
		"it takes its turn without a look": {func(g *Acquire) Deed {
			deed := g.Next()
			if deed == Withdraw {
				g.blocked = false
				return Look
			}
			return deed
		}, [taxa]string{"AB", "b", "a"}, "no rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Finds(t, harbours(plant.next, plant.takers), 1<<20, plant.want)
		})
	}
}
