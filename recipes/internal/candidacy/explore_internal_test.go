package candidacy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/explore"
)

// The campaigns of three processes, with all that can happen between them: nodes that are
// made and deleted, turns, reads of the line, deaths, the passing of time. Who may lead is
// told from the line on the server alone.

const (
	voters     = 3
	mostYields = 12 // without a leader and without a minute that passes
	moments    = 2  // deaths, operator's deletes and passed minutes, of each kind
)

// ballot is the world of the campaigns. It is a flat value.
type ballot struct {
	line   [voters]int8 // who stands on the server, in order: 1 is the first process; 0 is nobody
	voter  [voters]voter
	yields int8 // since a leader, or a minute that passed
	deaths, deletes, minutes,
	starts int8
	bug bool // the campaigns forget to whom they gave way
}

type voter struct {
	state state
	gave  [voters]bool // within the last minute, to the ids of these
	dead  bool         // its node stands until the session ends
	told  bool         // the operator has deleted its node, and it has not heard of that
}

type ballotMove struct {
	what string
	who  int
}

func ballotID(i int) string { return string(rune('x' + i)) }

// campaign is the product's, in the state of a voter. prefers are its ids.
func (b *ballot) campaign(i int, prefers []string) *Campaign {
	c := New(prefers)
	c.state = b.voter[i].state
	for j, gave := range b.voter[i].gave {
		if gave && !b.bug {
			c.gave[ballotID(j)] = time.Unix(0, 0)
		}
	}
	return c
}

func (b *ballot) keep(i int, c *Campaign) {
	b.voter[i].state = c.state
	for j := range b.voter[i].gave {
		_, b.voter[i].gave[j] = c.gave[ballotID(j)]
	}
}

// take takes a process out of the line.
func (b *ballot) take(i int) {
	rest := slices.DeleteFunc(slices.Clone(b.line[:]), func(n int8) bool { return n == int8(i+1) || n == 0 })
	b.line = [voters]int8{}
	copy(b.line[:], rest)
}

func (b *ballot) stands(i int) bool { return slices.Contains(b.line[:], int8(i+1)) }

func (b *ballot) moves(all []ballotMove) []ballotMove {
	for i, v := range b.voter {
		add := func(what string) { all = append(all, ballotMove{what, i}) }
		if v.dead {
			if b.stands(i) {
				add("the session ends of")
			} else if b.starts < moments {
				add("another process starts as")
			}
			continue
		}
		if b.stands(i) && b.deletes < moments && v.state != yielding {
			add("an operator deletes the node of")
		}
		if b.stands(i) && b.deaths < moments {
			add("dies:")
		}
		switch first := b.line[0] == int8(i+1); {
		case v.told:
			add("hears that its node is gone:")
		case v.state == apart:
			add("joins:")
		case v.state == waiting && first:
			add("its turn has come:")
		case v.state == electing:
			add("reads the line:")
		case v.state == yielding:
			add("deletes its node:")
		case v.state == leading:
			add("gives the term up:")
		}
	}
	if b.minutes < moments {
		all = append(all, ballotMove{"a minute passes", -1})
	}
	return all
}

func (b *ballot) apply(m ballotMove, prefers [voters][]string) error {
	if m.who < 0 {
		b.minutes++
		b.yields = 0
		for i := range b.voter {
			b.voter[i].gave = [voters]bool{}
		}
		return nil
	}
	v := &b.voter[m.who]
	c := b.campaign(m.who, prefers[m.who])
	switch m.what {
	case "dies:":
		b.deaths++
		*v = voter{dead: true}
		return nil
	case "the session ends of":
		b.take(m.who)
		return nil
	case "another process starts as":
		b.starts++
		*v = voter{}
		return nil
	case "an operator deletes the node of":
		b.deletes++
		b.take(m.who)
		v.told = true
		return nil
	case "joins:":
		c.Joined()
		b.line[slices.Index(b.line[:], 0)] = int8(m.who + 1)
	case "its turn has come:":
		elects, wanted := c.TurnHasCome(ballotID(m.who)), preferredTo(m.who, prefers[m.who])
		if want := len(wanted) > 0; elects != want || c.state == electing != want || c.state == leading == want {
			return fmt.Errorf("%s reads the line: %v, in state %d, and %v are preferred to it", ballotID(m.who), elects, c.state, wanted)
		}
	case "reads the line:":
		if err := b.read(m.who, c, prefers[m.who]); err != nil {
			return err
		}
	case "deletes its node:":
		b.take(m.who)
		if !c.Ended(true, false) {
			return fmt.Errorf("%s gave way, and stands not in line again", ballotID(m.who))
		}
	case "hears that its node is gone:":
		v.told = false
		lost := c.state == leading // the hold says so, and not the campaign
		if again := c.Ended(true, true); !again {
			return fmt.Errorf("%s has lost its node, and stands not in line again", ballotID(m.who))
		} else if lost {
			c.state = over
		}
	case "gives the term up:":
		b.take(m.who)
		c.state = over
	}
	b.keep(m.who, c)
	return b.leader(m.who)
}

// preferredTo are the ids that are preferred to a process.
func preferredTo(who int, prefers []string) []string {
	return prefers[:slices.Index(append(slices.Clone(prefers), ballotID(who)), ballotID(who))]
}

// read compares what the campaign does with the line on the server.
func (b *ballot) read(who int, c *Campaign, prefers []string) error {
	var behind []string
	if at := slices.Index(b.line[:], int8(who+1)); at >= 0 {
		for _, n := range b.line[at+1:] {
			if n > 0 {
				behind = append(behind, ballotID(int(n-1)))
			}
		}
	}
	wanted := ""
	for _, id := range slices.Backward(preferredTo(who, prefers)) {
		if slices.Contains(behind, id) && !b.voter[who].gave[id[0]-'x'] {
			wanted = id
		}
	}
	yields := c.LineIs(behind, time.Unix(1, 0), time.Second)
	if yields != (wanted != "") && !b.bug {
		return fmt.Errorf("%s gives way: %v; behind it stand %v, and it should give way to %q", ballotID(who), yields, behind, wanted)
	}
	if yields != (c.state == yielding) || yields == (c.state == leading) {
		return fmt.Errorf("%s gives way: %v, and is in state %d", ballotID(who), yields, c.state)
	}
	if _, noted := c.gave[wanted]; yields && !noted && !b.bug {
		return fmt.Errorf("%s gives way to another than %q", ballotID(who), wanted)
	}
	if yields {
		b.yields++
	}
	if b.yields > mostYields {
		return fmt.Errorf("no leader after %d times of giving way", b.yields)
	}
	return nil
}

// leader checks who leads by the line on the server.
func (b *ballot) leader(who int) error {
	if v := b.voter[who]; v.state != leading || v.told {
		return nil
	}
	b.yields = 0
	if b.line[0] != int8(who+1) {
		return fmt.Errorf("%s leads, and is not the first in line", ballotID(who))
	}
	return nil
}

// waits names one that waits although nobody stands before it.
func (b *ballot) waits() string {
	for i, v := range b.voter {
		if !v.dead && v.state != over && v.state != leading && (b.line[0] == int8(i+1) || b.line[0] == 0) {
			return ballotID(i)
		}
	}
	return ""
}

func ballots(prefers [voters][]string, bug bool) *explore.Machine[ballot, ballotMove] {
	return &explore.Machine[ballot, ballotMove]{
		Start: ballot{bug: bug},
		Moves: func(b *ballot, all []ballotMove) []ballotMove { return b.moves(all) },
		Apply: func(b *ballot, m ballotMove) error { return b.apply(m, prefers) },
		Must: func(m ballotMove) bool {
			return m.who >= 0 && !slices.Contains([]string{"dies:", "another process starts as", "an operator deletes the node of"}, m.what)
		},
		Waits: func(b *ballot) string { return b.waits() },
		Tell: func(b *ballot, m ballotMove) string {
			if m.who < 0 {
				return m.what
			}
			return fmt.Sprintf("%s %s, in line %v", m.what, ballotID(m.who), b.line)
		},
	}
}

// Whatever the processes prefer, who leads is the first in line, each gives way as it should
// and not for ever, and nobody waits in vain.
func TestExploreCandidacies(t *testing.T) {
	t.Parallel()
	for name, prefers := range map[string][voters][]string{
		"one is preferred":     {{"x"}, {"x"}, {"x"}},
		"two, by all":          {{"x", "y"}, {"x", "y"}, {"x", "y"}},
		"two prefer the other": {{"y", "x"}, {"x", "y"}, nil},
		"a circle":             {{"y"}, {"z"}, {"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, ballots(prefers, false), 2_000_000)
		})
	}
}

// Campaigns that forget to whom they gave way may leave the election without a leader.
func TestExploreCandidaciesThatForget(t *testing.T) {
	t.Parallel()
	explore.Finds(t, ballots([voters][]string{{"y", "x"}, {"x", "y"}, nil}, true), 2_000_000, "no leader after")
}
