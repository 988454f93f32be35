package simulation_test

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	seedsEnv         = "DOCENT_SIM_SEEDS"          // how many schedules TestSchedules plays
	ensembleSeedsEnv = "DOCENT_SIM_ENSEMBLE_SEEDS" // and TestEnsembleSchedules
	keeperSeedsEnv   = "DOCENT_SIM_KEEPER_SEEDS"   // and TestKeeperSchedules, and half as many TestKeeperGameSchedules
	seedEnv          = "DOCENT_SIM_SEED"           // the one that TestSeed plays, and the first of the others
	againEnv         = "DOCENT_SIM_AGAIN"          // how many seeds TestSameSeedSameRun plays, each several times

	enough = 5 // failed schedules; then a test gives up
	// realLimit is how long a schedule may take outside its bubble. One that
	// takes longer has stopped the clock there, or never comes to rest.
	realLimit = 30 * time.Second
)

func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // every connection of go-zookeeper allocates buffers; twice as fast
	}
	os.Exit(m.Run())
}

func number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("%s=%q: %v", env, text, err)
	}
	return n
}

// play runs the schedule of a seed and reports what it broke. It reports false
// if it broke anything.
func play(t *testing.T, seed uint64, k setting) (*result, bool) {
	t.Helper()
	hung := time.AfterFunc(realLimit, func() {
		fmt.Fprintf(os.Stderr, "seed %d takes longer than %v; repeat: %s\n", seed, realLimit, repeat(seed, k))
	})
	defer hung.Stop()
	r := runOn(t, seed, k)
	for _, err := range r.broken {
		t.Errorf("seed %d: %v", seed, err)
	}
	if len(r.broken) > 0 {
		t.Logf("repeat: %s", repeat(seed, k))
	}
	return r, len(r.broken) == 0
}

func repeat(seed uint64, k setting) string {
	return fmt.Sprintf("%s=%d go test -run '%s$' -v -timeout 60s ./recipes/internal/simulation", seedEnv, seed, k.test)
}

// TestSeed plays one schedule and prints what happened in it.
func TestSeed(t *testing.T) {
	t.Parallel()
	playOne(t, alone)
}

func playOne(t *testing.T, k setting) {
	t.Helper()
	r, ok := play(t, number(t, seedEnv, 1), k)
	if !ok || os.Getenv(seedEnv) != "" {
		t.Logf("%+v\n%sat the end:\n%s", r.totals, r.trace.story(), r.left)
	}
}

// TestKnownSeeds plays the schedules that once found something.
func TestKnownSeeds(t *testing.T) {
	t.Parallel()
	playFile(t, alone, "testdata/seeds")
}

// TestKnownEnsembleSeeds does so on an ensemble.
func TestKnownEnsembleSeeds(t *testing.T) {
	t.Parallel()
	playFile(t, ensemble, "testdata/ensemble-seeds")
}

// playFile plays the seeds that a file names.
func playFile(t *testing.T, k setting, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "\t")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		play(t, seed, k)
		n++
	}
	if n == 0 || lines.Err() != nil {
		t.Errorf("%s: %d seeds, error %v", file, n, lines.Err())
	}
}

// timeLeft reports whether the test has time for another schedule.
func timeLeft(t *testing.T) bool {
	t.Helper()
	end, limited := t.Deadline()
	return !limited || time.Until(end) > 5*time.Second
}

// TestSchedules plays many seeds, and makes sure that they tested something.
func TestSchedules(t *testing.T) {
	t.Parallel()
	count := number(t, seedsEnv, schedules)
	if sum := playMany(t, alone, count); !t.Failed() {
		sum.wantAtLeast(t, int(count))
	}
}

// playMany plays as many schedules as there are threads at a time.
func playMany(t *testing.T, k setting, count uint64) *totals {
	t.Helper()
	first := number(t, seedEnv, 1)
	var next, bad atomic.Uint64
	var mu sync.Mutex
	sum := totals{situations: ledger{}, words: ledger{}}
	var played uint64
	begun := time.Now()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < count && bad.Load() < enough && timeLeft(t); i = next.Add(1) - 1 {
				r, ok := play(t, first+i, k)
				if !ok {
					bad.Add(1)
				}
				mu.Lock()
				sum.add(r.totals)
				sum.situations.add(r.situations)
				sum.words.add(r.words)
				played++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	t.Logf("%d schedules in %v on %d threads, %.0f/s: %+v", played, took.Round(time.Millisecond),
		runtime.GOMAXPROCS(0), float64(played)/took.Seconds(), sum.counts())
	if bad.Load() == 0 && played < count {
		t.Errorf("time for %d of %d schedules: give more with -timeout", played, count)
	}
	return &sum
}
