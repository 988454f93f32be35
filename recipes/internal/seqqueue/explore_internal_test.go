package seqqueue

import (
	"fmt"
	"math/bits"
	"os"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

// before is the order of nodes. A read node comes after the write node whose number it has.
func (a *arena) before(x, y int) bool {
	lifeX, x0 := a.place(x)
	lifeY, y0 := a.place(y)
	switch {
	case lifeX != lifeY:
		return lifeX < lifeY
	case x0 != y0:
		return x0 < y0
	default:
		return x < y
	}
}

// exclude reports whether one of x and y is a writer.
func (a *arena) exclude(x, y int) bool { return !a.shared(x) || !a.shared(y) }

// blocks is Curator's rule: x comes before y, and one of them is a writer.
func (a *arena) blocks(x, y int) bool { return a.before(x, y) && a.exclude(x, y) }

// check compares a state with what the server's nodes and Curator's rule say, and asserts
// the invariants of the chain.
func (a *arena) check(old *world) {
	believers := a.believers()
	a.exclusion(believers)
	a.strangers(believers)
	for i := range a.modes {
		m, was := &a.s.m[i], &old.m[i]
		if m.phase == holding && was.phase != holding {
			if a.s.ended(m) {
				a.fail("LEASE: %s is granted after the end of its session", a.who(i))
			}
			if m.is(knowsThat) {
				a.fail("OWN: %s is granted, and knows that its node is gone", a.who(i))
			}
		}
		if a.s.ended(m) {
			continue
		}
		if m.phase == parked && !m.is(isWoken) && (state(m.state) != linked || a.s.m[m.front].phase >= leaving) {
			a.fail("WAKE: %s waits, and nobody will wake it", a.who(i))
		}
		a.onlyFirst(i)
		a.sameBlockers(i)
		if state(was.state) == linked && state(m.state) == first {
			if f := was.front; f < 0 || state(old.m[f].state) != first || state(a.s.m[f].state) != over {
				a.assert("I3: %s was linked and is first, and its front %s was not first, or is not over", a.who(i), a.who(int(f)))
			}
		}
		if state(was.state) != over && state(m.state) == over && m.phase < leaving && !m.is(gaveUp) {
			a.assert("I3: %s is over, and has not left", a.who(i))
		}
	}
}

// believers are the nodes whose owners believe to hold. Who holds by a node that an operator
// has deleted is told after the fact, and whose session is over holds nothing.
func (a *arena) believers() (ids []int) {
	for i := range a.modes {
		m := &a.s.m[i]
		if a.s.ended(m) {
			continue
		}
		if m.phase == holding && !m.is(isEvicted) {
			ids = append(ids, i)
		}
		if m.reading == readHeld && a.s.stands.has(read0+i) {
			ids = append(ids, read0+i)
		}
	}
	return ids
}

// exclusion checks that no two beliefs exclude each other, and that nodes entitle to each.
func (a *arena) exclusion(believers []int) {
	for k, x := range believers {
		for _, y := range believers[:k] {
			if a.exclude(x, y) && x != y+read0 && y != x+read0 {
				a.fail("EXCLUSION: %s and %s hold at the same time", a.who(y), a.who(x))
			}
		}
		for rest := a.s.stands &^ a.s.dying; rest != 0; rest &= rest - 1 {
			id := bits.TrailingZeros16(uint16(rest))
			ofEnded := id < foreign0 && a.s.ended(&a.s.m[id])
			if id != x && id+read0 != x && a.blocks(id, x) && !ofEnded {
				a.fail("ENTITLEMENT: %s holds, and the node of %s stands before it and is not being deleted", a.who(x), a.who(id))
			}
		}
	}
}

// strangers checks that no belief excludes a foreign contender that holds.
func (a *arena) strangers(believers []int) {
	for f := range a.foreign {
		id := foreign0 + f
		entitled := a.s.stands.has(id)
		for rest := a.s.stands; rest != 0; rest &= rest - 1 {
			if x := bits.TrailingZeros16(uint16(rest)); x != id && a.blocks(x, id) {
				entitled = false
			}
		}
		for _, x := range believers {
			if entitled && a.exclude(x, id) {
				a.fail("EXCLUSION: %s and %s hold at the same time", a.who(id), a.who(x))
			}
		}
	}
}

// onlyFirst checks I1.
func (a *arena) onlyFirst(i int) {
	counts := func(m *member) bool {
		return state(m.state) == first && m.phase < leaving && !m.is(isBroken) && !m.is(isEvicted)
	}
	m := &a.s.m[i]
	for j := range a.modes {
		if o := &a.s.m[j]; j != i && counts(m) && counts(o) && a.exclude(i, j) && o.session == m.session {
			a.assert("I1: %s and %s are first", a.who(j), a.who(i))
		}
	}
}

// sameBlockers checks I2.
func (a *arena) sameBlockers(i int) {
	m := &a.s.m[i]
	if state(m.state) != linked {
		return
	}
	front := int(m.front)
	if a.shared(front) {
		a.assert("I2: %s is linked to %s, which shares", a.who(i), a.who(front))
	}
	if !a.s.stands.has(i) {
		return
	}
	for rest := a.s.stands &^ a.s.dying; rest != 0; rest &= rest - 1 {
		id := bits.TrailingZeros16(uint16(rest))
		if id == i || id == front || !a.blocks(id, i) || a.blocks(id, front) {
			continue
		}
		if id < foreign0 && (state(a.s.m[id].state) == over || state(a.s.m[id].state) == left) {
			continue
		}
		a.assert("I2: %s is linked to %s, and %s blocks it and not its front", a.who(i), a.who(front), a.who(id))
	}
}

// modesOf are all ways in which n members are writers and readers.
func modesOf(n int) (all []string) {
	for pattern := range 1 << n {
		modes := make([]byte, n)
		for i := range modes {
			if modes[i] = 'W'; pattern&(1<<i) != 0 {
				modes[i] = 'R'
			}
		}
		all = append(all, string(modes))
	}
	return all
}

// setting is one configuration of a suite.
type setting struct {
	members int // in all modes, or
	cast
}

// play explores the lines of a suite, each in all its states.
func play(t *testing.T, lines []setting) {
	t.Helper()
	s := newSessions(t)
	for _, l := range lines {
		all := []string{l.modes}
		if l.members > 0 {
			all = modesOf(l.members)
		}
		for _, modes := range all {
			c := l.cast
			c.modes = modes
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				explore.Whole(t, newArena(t.Context(), s, c).machine(), 20_000_000)
			})
		}
	}
}

// String is the name of a test.
func (c cast) String() string {
	text := c.modes
	if c.mutex {
		text += " mutex"
	}
	if c.foreign != "" {
		text += " stranger " + c.foreign
	}
	for i, name := range []string{"giveUp", "evict", "cut", "anew", "forget", "forgetAll", "lose", "downgrade", "endSession", "arm"} {
		if c.may[i] > 0 {
			text += fmt.Sprintf(" %s=%d", name, c.may[i])
		}
	}
	return text
}

// The chain keeps what it promises in all of its states. These are bounded: two or three
// members, one session that ends and one that follows, at most two foreign contenders, at
// most three guards and two lives of the directory. Each member acquires once. Each line
// names what may happen besides, and how often. Left out are foreign children, nodes that may not
// be read, and connections that are lost so that a member makes a second node while another
// member still has the name of the first.
//
// States are told apart by hashes of 64 bits: of ten million, one is missed with a chance of
// three in a million.
func TestExplore(t *testing.T) {
	t.Parallel()
	play(t, []setting{
		{2, cast{may: may{giveUp: 1, downgrade: 1, lose: 1, evict: 1}}},
		{2, cast{foreign: "W", may: may{giveUp: 1, downgrade: 1}}},
		{2, cast{may: may{arm: 1, anew: 1, forget: 1}}},
		{2, cast{may: may{cut: 1, arm: 1, evict: 1}}},
		{2, cast{may: may{cut: 1, anew: 1}}},
		{0, cast{modes: "WW", mutex: true, may: may{giveUp: 1, forget: 1, forgetAll: 1, endSession: 1}}},
		{0, cast{modes: "WRW", may: may{downgrade: 1}}},
	})
	if !wholeSuite {
		return
	}
	play(t, []setting{
		{2, cast{foreign: "WR", may: may{giveUp: 1, downgrade: 1}}},
		{3, cast{may: may{downgrade: 1}}},
		{3, cast{may: may{giveUp: 1}}},
		{3, cast{may: may{lose: 1}}},
		{3, cast{may: may{evict: 1}}},
		{3, cast{may: may{endSession: 1}}},
		{3, cast{may: may{forget: 1, forgetAll: 1}}},
		{3, cast{may: may{cut: 1, arm: 1}}},
		{3, cast{may: may{anew: 1}}},
		{0, cast{modes: "WWW", mutex: true, foreign: "W", may: may{giveUp: 1}}},
		{0, cast{modes: "WRW", foreign: "W", may: may{giveUp: 1}}},
		{0, cast{modes: "RWR", foreign: "R", may: may{giveUp: 1}}},
		{0, cast{modes: "RRW", foreign: "R", may: may{downgrade: 1}}},
		{0, cast{modes: "RWRW", may: may{giveUp: 1}}},
	})
}

// Four members, and more that happens to three.
func TestExploreLong(t *testing.T) {
	t.Parallel()
	if os.Getenv("DOCENT_EXPLORE_LONG") == "" {
		t.Skip("DOCENT_EXPLORE_LONG is not set: some minutes, and a GiB; make soak sets it")
	}
	play(t, []setting{
		{4, cast{may: may{giveUp: 1}}},
		{4, cast{may: may{downgrade: 1}}},
		{4, cast{may: may{lose: 1}}},
		{3, cast{may: may{giveUp: 1, downgrade: 1, lose: 1, evict: 1}}},
		{3, cast{foreign: "W", may: may{giveUp: 1, downgrade: 1}}},
		{3, cast{foreign: "R", may: may{giveUp: 1, downgrade: 1}}},
	})
}

// Each planted bug is found. Some have a row for the invariant that they break, and one for
// what a user would notice.
func TestExploreFindsPlantedBugs(t *testing.T) {
	t.Parallel()
	s := newSessions(t)
	for _, p := range []struct {
		cast
		want string
	}{
		{cast{plant: sharedFront, modes: "WRW", may: may{downgrade: 1}}, "I2"},
		{cast{plant: sharedFront, modes: "WRW", may: may{downgrade: 1}, users: true}, "EXCLUSION"},
		{cast{plant: sharedFront, modes: "RWRW", may: may{giveUp: 1}}, "I2"},
		{cast{plant: sharedFront, modes: "RWRW", may: may{giveUp: 1}, users: true}, "EXCLUSION"},
		{cast{plant: sharedFrontByMade, modes: "RW"}, "I2"},
		{cast{plant: sharedFrontByMade, modes: "RRW", users: true}, "ENTITLEMENT"},
		{cast{plant: brokenFrontByList, modes: "WW", may: may{downgrade: 1}}, "I3"},
		{cast{plant: brokenFrontByList, modes: "WW", may: may{downgrade: 1}, users: true}, "EXCLUSION"},
		{cast{plant: brokenFrontByMade, modes: "WW", may: may{downgrade: 1}}, "I3"},
		{cast{plant: brokenFrontByMade, modes: "WW", may: may{downgrade: 1}, users: true}, "EXCLUSION"},
		{cast{plant: leftFront, modes: "WW", may: may{giveUp: 1}}, "I4"},
		{cast{plant: leftFront, modes: "WW", may: may{giveUp: 1}, users: true}, "WAKE"},
		{cast{plant: readerBehindAny, modes: "RR", foreign: "W"}, "ENTITLEMENT"},
		{cast{plant: anyNumber, modes: "WW", foreign: "W", mutex: true}, "I2"},
		{cast{plant: anyNumber, modes: "WW", foreign: "W", mutex: true, users: true}, "ENTITLEMENT"},
		{cast{plant: anyConnection, modes: "WW", foreign: "W", mutex: true, may: may{cut: 1, anew: 1}}, "I2"},
		{cast{plant: noGuard, modes: "WW", foreign: "W", mutex: true, may: may{anew: 1}}, "I2"},
		{cast{plant: madeTwice, modes: "WW", mutex: true, may: may{cut: 1, arm: 1, evict: 1}}, "nothing more will happen"},
		{cast{plant: twoFollowers, modes: "WWW", mutex: true}, "I2"},
		{cast{plant: twoFollowers, modes: "WWW", mutex: true, users: true}, "ENTITLEMENT"},
		{cast{plant: otherSessionByMade, modes: "WW", mutex: true, may: may{endSession: 1}}, "I5"},
		{cast{plant: otherSession, modes: "WWW", mutex: true, may: may{endSession: 1}}, "I5"},
		{cast{plant: grantBehindWaiting, modes: "WW", foreign: "W", mutex: true, may: may{giveUp: 1}}, "I3"},
		{cast{plant: grantBehindWaiting, modes: "WW", foreign: "W", mutex: true, may: may{giveUp: 1}, users: true}, "ENTITLEMENT"},
		{cast{plant: silentLeave, modes: "WW", mutex: true}, "WAKE"},
		{cast{plant: silentBreak, modes: "WW", mutex: true, may: may{lose: 1}}, "WAKE"},
		{cast{plant: silentForgetAll, modes: "WW", mutex: true, may: may{forgetAll: 1}}, "WAKE"},
		{cast{plant: grantAheadOfOthers, modes: "WW", foreign: "W", mutex: true}, "ENTITLEMENT"},
		{cast{plant: grantPastRead, modes: "WW", may: may{downgrade: 1}}, "EXCLUSION"},
		{cast{plant: ownNodeForgotten, modes: "W", foreign: "W", mutex: true, may: may{evict: 1}}, "OWN"},
		{cast{plant: pastLease, modes: "W", mutex: true, may: may{endSession: 1}}, "LEASE"},
	} {
		if p.users && len(p.modes) == 4 && !wholeSuite {
			continue
		}
		name := string(p.plant) + " " + p.modes
		if p.users {
			name += " for users"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Finds(t, newArena(t.Context(), s, p.cast).machine(), 3_000_000, p.want)
		})
	}
}
