package choosing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Long random lives of a chooser. It never picks what is gone, excepted or set aside, never refuses
// while something may be picked, and its rows are always what its seats say.
func TestRandomLives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		live(t, rand.New(rand.NewPCG(seed, 31)), seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func live(t *testing.T, random *rand.Rand, seed uint64) {
	t.Helper()
	rules := Rules{
		Strategy: Strategy(random.IntN(3)), Sticky: random.IntN(3) == 0, Zone: []string{"", "x"}[random.IntN(2)],
		Errors: random.IntN(4), Aside: 10, MaxAside: time.Duration(10 + random.IntN(50)), Panic: []float64{0, 0.5, 1}[random.IntN(3)],
		Keep: time.Duration(random.IntN(2) * 15), Intn: random.IntN,
	}
	c := Of[int](rules)
	var now time.Duration
	var list, kept []Instance[int]
	var emptied time.Duration
	var calls []Picked[int]
	offered := func() []Instance[int] {
		if len(list) == 0 && rules.Keep > 0 && now < emptied+rules.Keep {
			return kept
		}
		return list
	}
	for step := range 400 {
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("seed %d step %d at %d, rules %+v: %s", seed, step, now, rules, fmt.Sprintf(format, args...))
		}
		switch random.IntN(8) {
		case 0:
			before := offered()
			was := len(list) > 0 || step == 0
			list = nil
			for i := range random.IntN(6) * random.IntN(3) {
				if random.IntN(2) == 0 {
					list = append(list, Instance[int]{
						ID: fmt.Sprintf("%02d", i), Address: fmt.Sprint(random.IntN(8) / 7), Zone: []string{"x", "y"}[random.IntN(2)],
						Birth: int64(random.IntN(8) / 7), Weight: 1 + random.IntN(4)*random.IntN(2), Value: i,
					})
				}
			}
			if len(list) == 0 && was {
				kept, emptied = before, now
			}
			c.List(now, list)
		case 1:
			now += time.Duration(random.IntN(12))
		case 2, 3, 4:
			var except []string
			for range random.IntN(3) {
				except = append(except, fmt.Sprintf("%02d", random.IntN(10)))
			}
			p, ok := c.Pick(now, except...)
			all := slices.DeleteFunc(slices.Clone(offered()), func(i Instance[int]) bool { return slices.Contains(except, i.ID) })
			switch {
			case ok && !slices.ContainsFunc(all, func(i Instance[int]) bool { return i.ID == p.seat.ID && i.Value == p.Value }):
				fail("picked %+v of %+v but %v", p.seat, all, except)
			case !ok && len(all) > 0 && rules.Errors == 0:
				fail("refused, of %+v but %v", all, except)
			case !ok && slices.ContainsFunc(c.all.seats, func(s *seat[int]) bool { return s.may() && !slices.Contains(except, s.ID) }):
				fail("refused, and something may")
			}
			if ok {
				calls = append(calls, p)
			}
		default:
			if len(calls) > 0 {
				i := random.IntN(len(calls))
				c.Done(now, calls[i], Verdict(random.IntN(3)))
				calls = slices.Delete(calls, i, i+1)
			}
		}
		var near, far []*seat[int]
		for place, s := range c.all.seats {
			if s.place != place || s.gone || s.inFlight < 0 {
				fail("seat %+v at %d", s, place)
			}
			if n := len(slices.DeleteFunc(slices.Clone(calls), func(p Picked[int]) bool { return p.seat != s })); n != s.inFlight {
				fail("%d calls under way, counted %d", n, s.inFlight)
			}
			switch {
			case !s.may():
				if s.until < c.wake {
					fail("wakes at %d, and %+v ends", c.wake, s)
				}
			case rules.Zone != "" && s.Zone == rules.Zone:
				near = append(near, s)
			default:
				far = append(far, s)
			}
		}
		if !slices.Equal(near, c.near.seats) || !slices.Equal(far, c.far.seats) {
			fail("rows")
		}
	}
	if len(list) == 0 || rules.Strategy != RoundRobin || rules.Sticky || rules.Zone != "" {
		return
	}
	now += 1000 // all are due or work
	seen := map[int]bool{}
	for range list {
		p, ok := c.Pick(now)
		if !ok {
			t.Fatalf("seed %d: refused", seed)
		}
		c.Done(now, p, Succeeded)
		seen[p.Value] = true
	}
	if len(seen) != len(list) {
		t.Errorf("seed %d: a round of %d had %v", seed, len(list), seen)
	}
}
