package simulation_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	seedsEnv = "DOCENT_SIM_SEEDS" // how many schedules TestSchedules plays
	seedEnv  = "DOCENT_SIM_SEED"  // the one that TestSeed plays, or the first of TestSchedules
)

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

// report prints what a schedule broke and how to see it again.
func report(t *testing.T, r *result) {
	t.Helper()
	if len(r.broken) == 0 {
		return
	}
	for _, err := range r.broken {
		t.Errorf("seed %d: %v", r.seed, err)
	}
	t.Logf("repeat: %s=%d go test -run 'TestSeed$' -v ./internal/simulation", seedEnv, r.seed)
}

// TestSeed plays one schedule and prints what happened.
func TestSeed(t *testing.T) {
	t.Parallel()
	r := run(t, number(t, seedEnv, 1))
	report(t, r)
	if os.Getenv(seedEnv) != "" {
		t.Logf("%+v\n%sat the end:\n%s", r.totals, r.trace.story(), r.left)
	}
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	first, count := number(t, seedEnv, 1), number(t, seedsEnv, 300)
	var (
		next atomic.Uint64
		mu   sync.Mutex
		sum  totals
		bad  int
	)
	begun := time.Now()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= count {
					return
				}
				seed := first + i
				hung := time.AfterFunc(20*time.Second, func() { fmt.Fprintf(os.Stderr, "seed %d hangs\n", seed) })
				r := run(t, seed)
				hung.Stop()
				mu.Lock()
				sum.add(r.totals)
				if len(r.broken) > 0 {
					bad++
					if bad < 10 {
						report(t, r)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	t.Logf("%d schedules, %d bad, in %v: %.0f/s: %+v", count, bad, took.Round(time.Millisecond), float64(count)/took.Seconds(), sum)
}
