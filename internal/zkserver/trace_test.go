package zkserver_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/docent-go/docent/zktest"
)

// seedsEnv says how many seeds the tests of repeatability play, each
// runsPerSeed times.
const (
	seedsEnv    = "DOCENT_TRACE_SEEDS"
	usualSeeds  = 20
	runsPerSeed = 4
)

// trace is everything that servers have seen, with virtual times.
type trace struct{ lines []string }

func (tr *trace) observe(r zktest.Request) { tr.lines = append(tr.lines, r.String()) }

func (tr *trace) sum() uint64 {
	h := fnv.New64a()
	for _, l := range tr.lines {
		_, _ = fmt.Fprintln(h, l)
	}
	return h.Sum64()
}

// divergence returns the first lines in which two traces differ, and the line
// before.
func (tr *trace) divergence(o *trace) (text string, same bool) {
	a, b := slices.Concat(tr.lines, []string{"the end"}), slices.Concat(o.lines, []string{"the end"})
	last := ""
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("after\n%s\ncame\n%s\nand then\n%s", last, a[i], b[i]), false
		}
		last = a[i]
	}
	return "", true
}

// sameSeedSameTrace plays seeds several times and compares the traces. It
// returns how many seeds it played.
func sameSeedSameTrace(t *testing.T, play func(t *testing.T, seed uint64) *trace) (seeds int) {
	t.Helper()
	seeds = usualSeeds
	if text := os.Getenv(seedsEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q: not a number of seeds", seedsEnv, text)
		}
		seeds = n
	}
	seen := map[uint64]bool{}
	for seed := range uint64(seeds) {
		first := play(t, seed)
		if len(first.lines) == 0 {
			t.Fatalf("seed %d: nothing happened", seed)
		}
		seen[first.sum()] = true
		for again := 1; again < runsPerSeed; again++ {
			if text, same := first.divergence(play(t, seed)); !same {
				t.Errorf("seed %d, run %d: %s", seed, again+1, text)
				break
			}
		}
	}
	if len(seen) != seeds {
		t.Errorf("%d traces of %d seeds: the seed does not reach everything", len(seen), seeds)
	}
	return seeds
}
