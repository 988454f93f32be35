package cache_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

const (
	seedsEnv = "DOCENT_CACHE_SEEDS" // how many schedules run
	seedEnv  = "DOCENT_CACHE_SEED"  // the one to repeat, or the first of seedsEnv
	onlyEnv  = "DOCENT_CACHE_ONLY"  // the names of the caches that follow; none means all
	top      = "/tree"
	inner    = top + "/n1"
	guarded  = "/s" // the end of paths whose nodes the clients may not always read
	members  = 3
	rounds   = 3

	tightLimit = 8 // nodes; trees have fewer and more
)

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

// totals count what schedules have tested.
type totals struct{ snapshots, changes, gaps, stale, synced, resynced, faults, limited, unread, cut int }

func (s *totals) add(o totals) {
	s.snapshots += o.snapshots
	s.changes += o.changes
	s.gaps += o.gaps
	s.stale += o.stale
	s.synced += o.synced
	s.resynced += o.resynced
	s.faults += o.faults
	s.limited += o.limited
	s.unread += o.unread
	s.cut += o.cut
}

func playSeed(t *testing.T, seed uint64) (sum totals, ok bool) {
	t.Helper()
	var broken []string
	synctest.Test(t, func(t *testing.T) {
		versions := []zktest.Version{zktest.ZooKeeper380, zktest.ZooKeeper39, zktest.ZooKeeper35, zktest.ZooKeeper384, zktest.ZooKeeper39}
		opts := []zktest.Option{
			zktest.WithSeed(seed), zktest.WithVersion(versions[seed%uint64(len(versions))]),
			zktest.WithTick(2 * time.Second), zktest.WithSessionTimeouts(time.Second, time.Minute),
			zktest.WithLatency(50*time.Microsecond, []time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}[seed%3]),
			zktest.WithLogSize(0),
		}
		keeper := seed%8 == 5
		if keeper {
			opts = append(opts, zktest.WithProfile(zktest.ClickHouseKeeper))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w := &world{T: t, ctx: ctx, seed: seed, keeper: keeper, guards: seed%3 == 1, e: zktest.NewEnsemble(t, members, opts...)}
		w.play()
		sum, broken = w.sum, w.broken
	})
	for _, b := range broken {
		t.Errorf("seed %d: %.2000s", seed, b)
	}
	if len(broken) > 0 {
		t.Logf("repeat with %s=%d", seedEnv, seed)
	}
	return sum, len(broken) == 0
}

// TestSchedules plays random faults: every snapshot is a state that the servers had,
// none goes back, nothing is missed for good, and nothing is left.
func TestSchedules(t *testing.T) {
	t.Parallel()
	count, first := number(t, seedsEnv, 25), number(t, seedEnv, 0)
	switch {
	case first == 0:
		first = 1
	case os.Getenv(seedsEnv) == "":
		count = 1
	}
	var sum totals
	begun := time.Now()
	var next, bad atomic.Uint64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < count && bad.Load() < 3; i = next.Add(1) - 1 {
				one, ok := playSeed(t, first+i)
				if !ok {
					bad.Add(1)
				}
				mu.Lock()
				sum.add(one)
				mu.Unlock()
				if (i+1)%50 == 0 {
					t.Logf("%d schedules have begun, %v", i+1, time.Since(begun).Round(time.Second))
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d schedules in %v: %+v", count, time.Since(begun).Round(time.Millisecond), sum)
	if n := int(count); n >= 20 && (sum.snapshots < 100*n || sum.stale < 5*n || sum.synced < 5*n || sum.resynced < 10*n || sum.gaps < n || sum.cut < n/2) {
		t.Errorf("the schedules test too little: %+v", sum)
	}
}
