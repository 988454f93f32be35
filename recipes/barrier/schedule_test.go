package barrier_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/docent-go/docent/zktest"
)

// number is that of an environment variable, or else otherwise.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Random faults of clients and of a server, DOCENT_BARRIER_SEEDS schedules or 30.
// No member passes early, and at the end all pass and nothing is left.
// DOCENT_BARRIER_SEED repeats one schedule.
func TestSchedules(t *testing.T) {
	t.Parallel()
	schedules(t, number(t, "DOCENT_BARRIER_SEEDS", 30), alone)
}

// The same on three servers, DOCENT_ENSEMBLE_BARRIER_SEEDS or 15.
func TestEnsembleSchedules(t *testing.T) {
	t.Parallel()
	schedules(t, number(t, "DOCENT_ENSEMBLE_BARRIER_SEEDS", 15), three)
}

func schedules(t *testing.T, last uint64, start func(*testing.T, *game, ...zktest.Option)) {
	t.Helper()
	first, played, passed := uint64(1), 0, 0
	if seed := number(t, "DOCENT_BARRIER_SEED", 0); seed != 0 {
		first, last = seed, seed
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		passed += playGame(t, seed, start)
		played++
		if t.Failed() {
			t.Logf("repeat with DOCENT_BARRIER_SEED=%d", seed)
		}
	}
	t.Logf("%d schedules, %d members have passed", played, passed)
	if !t.Failed() && passed < 6*played {
		t.Errorf("%d members passed in %d schedules: too few to show anything", passed, played)
	}
}
