package choosing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/discovery/internal/choosing"
)

func many(n int, weight func(i int) int) (all []choosing.Instance[int]) {
	for i := range n {
		all = append(all, choosing.Instance[int]{ID: fmt.Sprintf("id-%05d", i), Address: fmt.Sprint(i), Zone: fmt.Sprint("z", i%3), Weight: weight(i), Value: i})
	}
	return all
}

func one(int) int { return 1 }

var kinds = []struct {
	name   string
	rules  choosing.Rules
	weight func(i int) int
}{
	{"round robin", choosing.Rules{}, one},
	{"random", choosing.Rules{Strategy: choosing.Random}, one},
	{"random by weight", choosing.Rules{Strategy: choosing.Random}, func(i int) int { return 1 + i%7 }},
	{"least loaded", choosing.Rules{Strategy: choosing.LeastLoaded}, one},
	{"sticky", choosing.Rules{Strategy: choosing.Random, Sticky: true}, one},
	{"own zone", choosing.Rules{Zone: "z1"}, one},
}

func chooser(rules choosing.Rules, all []choosing.Instance[int]) *choosing.Chooser[int] {
	rules.Errors, rules.Aside, rules.MaxAside, rules.Panic, rules.Intn = 2, 30*time.Second, 5*time.Minute, 0.5, rand.IntN
	c := choosing.Of[int](rules)
	c.List(0, all)
	return c
}

// A pick and its verdict, among 10,000 instances of which 4,000 are set aside.
func BenchmarkPick(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			c := chooser(kind.rules, many(10_000, kind.weight))
			var held []choosing.Picked[int]
			for range 10_000 {
				p, _ := c.Pick(0)
				held = append(held, p)
			}
			for _, p := range held[:4_000] {
				for range 2 {
					c.Done(0, p, choosing.Failed)
				}
			}
			now := time.Second
			b.ReportAllocs()
			for b.Loop() {
				p, _ := c.Pick(now)
				c.Done(now, p, choosing.Succeeded)
				now += time.Nanosecond
			}
		})
	}
}

// One instance of 10,000 has changed.
func BenchmarkList(b *testing.B) {
	all := many(10_000, one)
	c := chooser(choosing.Rules{}, all)
	for b.Loop() {
		all[5_000].Birth++
		c.List(0, all)
	}
}

// A pick allocates nothing.
func TestPickAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	for _, kind := range kinds {
		c := chooser(kind.rules, many(1000, kind.weight))
		if n := testing.AllocsPerRun(1000, func() {
			p, ok := c.Pick(0, "id-00007")
			if !ok || p.Value == 7 {
				t.Fatal("picked the one that is excepted")
			}
			c.Done(0, p, choosing.Succeeded)
		}); n != 0 {
			t.Errorf("%s: %v allocations", kind.name, n)
		}
	}
}

// How often instances are picked by Random and by LeastLoaded is told by their weights.
func TestWeights(t *testing.T) {
	t.Parallel()
	for _, strategy := range []choosing.Strategy{choosing.Random, choosing.LeastLoaded} {
		source := rand.New(rand.NewPCG(1, 2))
		c := choosing.Of[int](choosing.Rules{Strategy: strategy, Panic: 1, Intn: source.IntN})
		weights := [4]int{1, 2, 4, 1}
		c.List(0, many(4, func(i int) int { return weights[i] }))
		var count [4]int
		for range 8_000 {
			p, _ := c.Pick(0)
			c.Done(0, p, choosing.Succeeded)
			count[p.Value]++
		}
		for i, n := range count {
			if want := 1000 * weights[i]; n < want-150 || n > want+150 {
				t.Errorf("strategy %d: %v, want about 1000, 2000, 4000, 1000", strategy, count)
				break
			}
		}
	}
}

// Every instance is picked by every strategy, whatever has been drawn before.
func TestEverybodyIsPicked(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds[:4] {
		c := chooser(kind.rules, many(50, kind.weight))
		seen := map[int]bool{}
		for range 10_000 {
			p, _ := c.Pick(0)
			seen[p.Value] = true
			c.Done(0, p, choosing.Succeeded)
		}
		if len(seen) != 50 {
			t.Errorf("%s: picked %d of 50", kind.name, len(seen))
		}
	}
}

// Calls in flight keep LeastLoaded away: with as many calls as instances, none has many.
func TestLeastLoadedIsEven(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(3, 4))
	c := choosing.Of[int](choosing.Rules{Strategy: choosing.LeastLoaded, Panic: 1, Intn: source.IntN})
	c.List(0, many(100, one))
	var count [100]int
	for range 1000 {
		p, _ := c.Pick(0)
		count[p.Value]++
	}
	for _, n := range count {
		if n < 7 || n > 13 { // at random some would have 3, and some 20
			t.Errorf("calls in flight: %v", count)
			break
		}
	}
}
