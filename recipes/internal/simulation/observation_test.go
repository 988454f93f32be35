package simulation_test

import (
	"testing"
	"time"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// saw adds what an observer of the peaceful history saw. That is a's term 10 from
// 1 s, b's term 11 from 5 s, and no leader from 8 s.
func saw(p *peace, sights ...sim.Sight) {
	p.Healed, p.Calm, p.Finished = -20*second, second, 20*second // no node stands for too long
	p.Nodes = []*sim.Node{
		{Path: "/l/a-0000000001", Lock: "/l", Session: 1, Czxid: 10, Made: second, Gone: 5 * second},
		{Path: "/l/b-0000000002", Lock: "/l", Session: 2, Czxid: 11, Made: 2 * second, Gone: 8 * second},
	}
	p.Attempts, p.Holds, p.Visits = nil, nil, nil
	for i := range sights {
		s := &sights[i]
		s.Observer, s.Client, s.Lock = "o", "one", "/l"
		p.Sights = append(p.Sights, s)
	}
}

// sights are what an observer sees that misses nothing.
func sights() []sim.Sight {
	return []sim.Sight{
		{At: 500 * time.Millisecond},
		{Term: 10, At: second + time.Millisecond},
		{Term: 11, At: 5*second + time.Millisecond},
		{At: 8*second + time.Millisecond},
	}
}

// TestCheckSights breaks one promise each of an observer of an election.
func TestCheckSights(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(s []sim.Sight) []sim.Sight
		want []error
	}{
		"all seen":              {func(s []sim.Sight) []sim.Sight { return s }, nil},
		"a leader missed":       {func(s []sim.Sight) []sim.Sight { return append(s[:2:2], s[3]) }, []error{sim.ErrUnseen}},
		"the vacancy missed":    {func(s []sim.Sight) []sim.Sight { return s[:3] }, []error{sim.ErrUnseen}},
		"seen late":             {func(s []sim.Sight) []sim.Sight { s[2].At += second; return s }, []error{sim.ErrUnseen}},
		"in doubt for ever":     {func(s []sim.Sight) []sim.Sight { s[3].InDoubt = true; return s }, []error{sim.ErrUnseen}},
		"its client was closed": {func(s []sim.Sight) []sim.Sight { s[1].Ended = true; s[1].Term = 0; return s[:2] }, nil},
		"a leader that was none": {func(s []sim.Sight) []sim.Sight {
			s[2].Term = 12
			return s
		}, []error{sim.ErrUnseen, sim.ErrSightForged}},
		"before its time": {func(s []sim.Sight) []sim.Sight { s[1].At = second / 2; return s[1:] }, []error{sim.ErrSightForged}},
		"back to an old one": {func(s []sim.Sight) []sim.Sight {
			return append(s[:3:3], sim.Sight{Term: 10, At: 6 * second}, sim.Sight{Term: 11, At: 6*second + 1}, s[3])
		}, []error{sim.ErrSightBack}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantBrokenBy(t, func(p *peace) { saw(p, c.edit(sights())...) }, c.want)
		})
	}
}
