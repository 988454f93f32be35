package simulation_test

import "testing"

// TestSameSeedSameRun plays seeds twice: every request, answer, transaction
// and virtual time, and everything that the actors saw, is the same. A few
// schedules in a thousand differ, where two goroutines of one client wake at
// one instant and share a watch; a cause that strikes more of them fails.
func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	first, count := number(t, seedEnv, 1), number(t, againEnv, repetitions)
	sums := map[uint64]uint64{}
	differ := uint64(0)
	for seed := first; seed < first+count; seed++ {
		a, b := run(t, seed), run(t, seed)
		sums[a.trace.sum()] = seed
		if was, is, same := divergence(a.trace, b.trace); !same {
			differ++
			t.Logf("seed %d: two runs differ from line\n%s\n%s", seed, was, is)
		}
	}
	if differ > 1+count/50 {
		t.Errorf("%d of %d seeds had two different runs", differ, count)
	}
	if uint64(len(sums)) != count {
		t.Errorf("%d runs of %d seeds: the seed does not reach everything", len(sums), count)
	}
}

// divergence returns the first lines in which two traces differ.
func divergence(a, b *trace) (was, is string, same bool) {
	as, bs := append(a.canonical(), "the end"), append(b.canonical(), "the end")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return as[i], bs[i], false
		}
	}
	return "", "", true
}
