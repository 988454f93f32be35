package simulation_test

import (
	"os"
	"strings"
	"testing"
)

const againEnv = "DOCENT_SIM_AGAIN" // how many seeds TestSameSeedSameRun plays twice

func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	first, count := number(t, seedEnv, 1), number(t, againEnv, 50)
	differ := 0
	for seed := first; seed < first+count; seed++ {
		a, b := run(t, seed), run(t, seed)
		if a.trace.sum() == b.trace.sum() {
			continue
		}
		differ++
		was, is := divergence(a.trace, b.trace)
		t.Errorf("seed %d: two runs differ from line\n%s\n%s", seed, was, is)
	}
	t.Logf("%d of %d differ", differ, count)
}

// divergence returns the first lines in which two stories differ.
func divergence(a, b *trace) (was, is string) {
	as, bs := a.canonical(), b.canonical()
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			if os.Getenv("SIM_DUMP") != "" {
				_ = os.WriteFile("/tmp/sim_a."+os.Getenv("SIM_DUMP"), []byte(strings.Join(as, "\n")), 0o600)
				_ = os.WriteFile("/tmp/sim_b."+os.Getenv("SIM_DUMP"), []byte(strings.Join(bs, "\n")), 0o600)
			}
			return as[i], bs[i]
		}
	}
	return "", ""
}
