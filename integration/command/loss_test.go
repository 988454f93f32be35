package command_test

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/sessions"
)

// runsVariable says how often each loss is played.
const runsVariable = "DOCENT_COMMAND_RUNS"

func (w *world) runs() int {
	w.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(runsVariable), "4"))
	if err != nil || n < 1 {
		w.Fatalf("%s=%s is no number of runs", runsVariable, os.Getenv(runsVariable))
	}
	return n
}

const exitLost = 123

// pair is a docent whose command runs, and one that waits for it.
type pair struct {
	holder, waiter *docent
	dir            string
}

// A kind of job, and what its flags are.
var kinds = [][]string{{"run"}, {"elect"}, {"run", "--permits", "1"}, {"elect", "--selector"}}

// pair starts both, the holder on one server and the waiter on another.
func (w *world) pair(n int, holders, waiters *harness.Node) pair {
	w.Helper()
	dir, lockFile := w.directory(), filepath.Join(w.TempDir(), "lock")
	flags := kinds[n%len(kinds)]
	args := append(slices.Clone(flags), "--session-timeout", "6s", "--grace", "1s", "--margin", "300ms")
	p := pair{dir: dir}
	p.holder = w.start(holders, dir, lockFile, ignores, args...) // up to SIGKILL
	p.holder.at("begun", p.holder.begun)
	p.waiter = w.start(waiters, dir, lockFile, nothing, args...)
	if strings.Contains(strings.Join(flags, " "), "permits") {
		w.queue(path.Join(dir, "locks"), 1)
	} else {
		w.queue(dir, 2)
	}
	return p
}

// distance waits for the end of one command and the beginning of the next, and returns the
// time between them.
func (p pair) distance() time.Duration {
	p.holder.Helper()
	next := p.waiter.at("begun", p.waiter.begun)
	last := p.holder.at("ended", p.holder.ended)
	if !p.waiter.alone.Load() {
		p.holder.Errorf("%s: the next command began while the last one ran; docent said: %s", p.dir, p.holder.said)
	}
	if code := p.holder.code(); code != exitLost {
		p.holder.Errorf("%s: exit code %d, want %d: %s", p.dir, code, exitLost, p.holder.said)
	}
	p.waiter.stop()
	return next.Sub(last)
}

// distribution writes distances, and judges them.
func (w *world) distribution(name string, all []time.Duration) {
	w.Helper()
	slices.Sort(all)
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	w.Logf("%s: %d runs; the next command began after the end of the last: least %v, quarter %v, median %v, three quarters %v, most %v",
		name, len(all), round(all[0]), round(all[len(all)/4]), round(all[len(all)/2]), round(all[len(all)*3/4]), round(all[len(all)-1]))
	if all[0] <= 0 {
		w.Errorf("%s: a command began %v before the end of the last one", name, -all[0])
	}
}

// The holder's server is cut off from the others and goes on serving it.
func partitionedServer(w *world) {
	var all []time.Duration
	const together = 4
	for n := 0; n < w.runs(); n += together {
		leader, follower := w.ready()
		pairs := make([]pair, min(together, w.runs()-n))
		var group sync.WaitGroup
		for i := range pairs {
			group.Go(func() { pairs[i] = w.pair(n+i, follower, leader) })
		}
		group.Wait()
		if w.Failed() {
			w.FailNow()
		}
		w.check(follower.Partition(w.ctx))
		for _, p := range pairs {
			all = append(all, p.distance())
			if said := p.holder.said.String(); !strings.Contains(said, "SIGTERM, and SIGKILL in") {
				w.Errorf("no warning before the end: %s", said)
			}
		}
		w.check(w.e.Heal(w.ctx))
	}
	w.distribution("partitioned server", all)
}

// An operator closes the holder's session, which hears of that when it has happened.
func killedSession(w *world) {
	w.takenAway("killed session", func(leader *harness.Node, p pair) {
		w.check(sessions.KillSession(w.ctx, leader.Addr(), p.holder.id.Load()))
	})
}

// An operator deletes the holder's node.
func evictedNode(w *world) {
	w.takenAway("evicted node", func(leader *harness.Node, p pair) {
		if _, said, code := w.result(w.command(leader.Addr(), "evict", "--yes", p.dir, *p.holder.node.Load())); code != 0 {
			w.Errorf("evict: exit code %d: %s", code, said)
		}
	})
}

func (w *world) takenAway(name string, do func(leader *harness.Node, p pair)) {
	w.Helper()
	leader, follower := w.ready()
	var all []time.Duration
	for n := range w.runs() {
		p := w.pair(n, follower, leader)
		do(leader, p)
		all = append(all, p.distance())
	}
	w.distribution(name, all)
}
