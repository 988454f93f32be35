package simulation_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestSameSeedSameRun plays each seed runsPerSeed times: every request, answer,
// transaction and virtual time, and everything that the actors saw, is the
// same.
//
// Some seeds have an instant at which the order of goroutines shows: several goroutines of
// one client ask at one instant. Timers that are due at one instant fire in an order that the
// runtime draws, and two processors run what wakes together as they like. So each client of a
// game with many kinds of locks has one actor here.
func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	for _, k := range []setting{alone, ensemble, gamesAlone, gamesEnsemble, keeper} {
		sameSeedSameRun(t, k)
	}
}

func sameSeedSameRun(t *testing.T, k setting) {
	t.Helper()
	// Which of several acquires that go on at one instant gets the room is up to the
	// scheduler, which the race detector makes random.
	k.roomy = true
	if len(k.games) > 1 { // a multi-lock that is handed over sends requests in the instant of the release
		k.clients, k.actors = clientsPerRun*2, 1
	}
	first, count := number(t, seedEnv, 1), number(t, againEnv, repetitions)
	var mu sync.Mutex // guards sums
	sums := map[uint64]uint64{}
	var next, differ atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
				seed := first + i
				a := runOn(t, seed, k)
				mu.Lock()
				sums[a.trace.sum()] = seed
				mu.Unlock()
				for range runsPerSeed - 1 {
					b := runOn(t, seed, k)
					if was, is, same := divergence(a.trace, b.trace); !same {
						differ.Add(1)
						t.Logf("%s, seed %d: two runs differ from line\n%s\n%s", k.test, seed, was, is)
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if n := differ.Load(); n > 0 {
		t.Errorf("%d of %d seeds of %s had different runs", n, count, k.test)
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
