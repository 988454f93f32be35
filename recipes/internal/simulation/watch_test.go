package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

const (
	watchSeedsEnv = "DOCENT_SIM_WATCH_SEEDS" // how many schedules TestWatchSchedules plays
	watchRounds   = 4
	watchNodes    = 4
	watchRoot     = "/tree"
	watchSession  = 6 * time.Second
)

// watchWorld is one schedule for watches. A writer changes nodes. A client that
// faults strike mirrors them, and has waiters that give up. In pauses of the
// faults nothing may have been missed.
type watchWorld struct {
	t       *testing.T
	e       *zktest.Ensemble
	ctx     context.Context
	named   bool // the servers name the transaction of an event
	seed    uint64
	c       *client.Client // of the mirrors
	waiting *client.Client // of the waiters, which would hear of everything by a mirror's watch
	mirrors []*mirror
	waiters []*waiter

	mu     sync.Mutex
	log    map[string][]commit
	sum    watchTotals
	broken []string
}

// commit is a transaction that made or removed one node.
type commit struct {
	zxid int64
	made bool
}

// watchTotals count what a schedule tested.
type watchTotals struct{ changes, missed, overflowed, stopped, woken, faults int }

func (s *watchTotals) add(o watchTotals) {
	s.changes += o.changes
	s.missed += o.missed
	s.overflowed += o.overflowed
	s.stopped += o.stopped
	s.woken += o.woken
	s.faults += o.faults
}

func (w *watchWorld) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (w *watchWorld) count(f func(*watchTotals)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.sum)
}

// playWatches plays the schedule of a seed.
func playWatches(t *testing.T, seed uint64) (sum watchTotals, ok bool) {
	t.Helper()
	repeat := fmt.Sprintf("%s=%d %s=1 go test -run 'TestWatchSchedules$' -v -timeout 60s ./recipes/internal/simulation", seedEnv, seed, watchSeedsEnv)
	hung := time.AfterFunc(realLimit, func() { fmt.Fprintf(os.Stderr, "seed %d takes longer than %v; repeat: %s\n", seed, realLimit, repeat) })
	defer hung.Stop()
	var broken []string
	synctest.Test(t, func(t *testing.T) {
		versions := []zktest.Version{zktest.ZooKeeper380, zktest.ZooKeeper384, zktest.ZooKeeper39, zktest.ZooKeeper39}
		version := versions[seed%uint64(len(versions))]
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		slowest := []time.Duration{latencyHi, 20 * time.Millisecond, 300 * time.Millisecond}[seed%3]
		w := &watchWorld{t: t, ctx: ctx, named: version == zktest.ZooKeeper39, seed: seed, log: map[string][]commit{}}
		w.e = zktest.NewEnsemble(t, members, zktest.WithSeed(seed), zktest.WithVersion(version), zktest.WithTick(2*time.Second),
			zktest.WithSessionTimeouts(time.Second, time.Minute), zktest.WithLatency(latencyLo, slowest), zktest.WithLogSize(0))
		w.e.OnCommit(w.committed)
		w.play()
		sum, broken = w.sum, w.broken
	})
	for _, b := range broken {
		t.Errorf("seed %d: %s", seed, b)
	}
	if len(broken) > 0 {
		t.Logf("repeat: %s", repeat)
	}
	return sum, len(broken) == 0
}

func (w *watchWorld) committed(c zktest.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range c.Created {
		w.log[p] = append(w.log[p], commit{c.Zxid, true})
	}
	for _, p := range c.Deleted {
		w.log[p] = append(w.log[p], commit{c.Zxid, false})
	}
}

// connect makes a client with a link of its own.
func (w *watchWorld) connect(name string) (*client.Client, link) {
	l := w.e.Client(name)
	n := &node{name: name, link: l, names: newNames(w.seed, name)}
	base, start := generator(w.seed, name).Uint64(), time.Now()
	c := testrig.Connect(w.ctx, w.t, "zk1:2181,zk2:2181,zk3:2181", n.dial, client.WithSessionTimeout(watchSession), client.WithConnectTimeout(time.Minute), client.WithRand(func() float64 { return rand.New(rand.NewPCG(base, uint64(time.Since(start)))).Float64() }))
	return c, l
}

func (w *watchWorld) play() {
	writer, _ := w.connect("writer")
	if _, err := writer.Create(w.ctx, watchRoot, nil); err != nil {
		w.t.Fatal(err)
	}
	links := make([]link, 2)
	w.c, links[0] = w.connect("watcher")
	w.waiting, links[1] = w.connect("waiting")
	ctx, cancel := context.WithCancel(w.ctx)
	var all sync.WaitGroup
	for _, opts := range [][]client.WatchOption{
		{client.Recursive()}, {client.Recursive(), client.WatchQueue(2)}, nil,
	} {
		m := &mirror{w: w, deep: len(opts) > 0, path: watchRoot, nodes: map[string]int64{}, known: map[string]int64{}}
		if !m.deep {
			m.path += "/n0"
		}
		var err error
		if m.in, err = w.c.Watch(w.ctx, m.path, opts...); err != nil {
			w.t.Fatal(err)
		}
		w.mirrors = append(w.mirrors, m)
		all.Go(m.follow)
	}
	for i, path := range []string{"/n0", "/n1", "/n2", "/n0", "/n1", "/n2", "/n1/k0", "/n2/k1", "/n3/k0"} {
		a := &waiter{w: w, path: watchRoot + path, get: i >= 3 && i < 6, hasty: i >= 6, r: generator(w.seed, fmt.Sprint("waiter", i))}
		w.waiters = append(w.waiters, a)
		all.Go(func() { a.wait(ctx) })
	}
	r := generator(w.seed, "faults")
	for range watchRounds {
		w.disturb(writer, links, r)
		w.compare()
	}
	cancel()
	for _, m := range w.mirrors {
		m.in.Close()
	}
	all.Wait()
	time.Sleep(10 * time.Second)
	for i := 1; i <= members; i++ {
		if n := w.e.Server(i).WatchCount(); n > 0 {
			w.fail("%d watches are left on member %d", n, i)
		}
	}
	_ = w.c.Close()
	_ = w.waiting.Close()
	_ = writer.Close()
	time.Sleep(time.Minute)
	for _, stack := range testrig.Goroutines(w.t, clientFrames) {
		w.fail("a goroutine is left: %s", stack)
	}
}

// compare checks, while nothing changes, that every mirror and waiter knows what
// is there.
func (w *watchWorld) compare() {
	lead := w.e.Leader()
	if lead == nil {
		w.fail("no leader in peace")
		return
	}
	for i, m := range w.mirrors {
		if diff := m.differs(lead); diff != "" {
			w.fail("mirror %d missed something for good: %s", i, diff)
		}
	}
	for i, a := range w.waiters {
		a.mu.Lock()
		seen, waits := a.seen, a.waits
		a.mu.Unlock()
		if n, _ := lead.Node(a.path); waits && n.Stat.Mzxid != seen {
			w.fail("waiter %d missed a change of %s: it has seen %x, and %x is there", i, a.path, seen, n.Stat.Mzxid)
		}
	}
}

// TestWatchSchedules plays many seeds: no change is missed without a sign, no
// waiter is forgotten, and no watch is left.
func TestWatchSchedules(t *testing.T) {
	t.Parallel()
	count, first := number(t, watchSeedsEnv, watchSchedules), number(t, seedEnv, 1)
	var sum watchTotals
	begun := time.Now()
	var next, bad atomic.Uint64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < count && bad.Load() < enough; i = next.Add(1) - 1 {
				if !timeLeft(t) {
					t.Errorf("time for %d of %d schedules: give more with -timeout", i, count)
					return
				}
				one, ok := playWatches(t, first+i)
				if !ok {
					bad.Add(1)
				}
				mu.Lock()
				sum.add(one)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d schedules in %v: %+v", count, time.Since(begun).Round(time.Millisecond), sum)
	if n := int(count); sum.missed < 5*n || sum.changes < 50*n || sum.stopped < 5*n || sum.woken < 5*n || n >= 50 && sum.overflowed == 0 {
		t.Errorf("the schedules test too little: %+v", sum)
	}
}
