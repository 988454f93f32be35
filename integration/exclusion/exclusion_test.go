// Package exclusion_test lets many processes contend for one lock on a real
// ensemble. A witness outside of the lock says whether they excluded each other.
package exclusion_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
)

// TestExclusion is 64 goroutines in eight processes on three servers, first
// in peace and then with faults.
func TestExclusion(t *testing.T) {
	ctx := limited(t, 4*time.Minute)
	e := harness.StartEnsemble(ctx, t, 3, harness.WithTickTime(tick))
	_, err := e.AwaitServing(ctx)
	check(t, err)
	t.Run("in peace", func(t *testing.T) { peace(ctx, t, e) })
	t.Run("with faults", func(t *testing.T) { faults(ctx, t, e) })
}

// span is how long a case lasts.
const span = 30 * time.Second

// least is a number of holds that shows that there was contention. Each hold is 1
// ms of work and five requests of 3 ms, on a machine that is busy with others.
const least = int(span / (16 * time.Millisecond))

// peace wants everything of the lock, since nothing is in its way.
func peace(ctx context.Context, t *testing.T, e *harness.Ensemble) {
	raw, _ := harness.Dial(ctx, t, 20*time.Second, e.Addrs()...)
	const lock = "/peace"
	directory(t, raw, lock)
	woken := total(ctx, t, e, "sum_node_deleted_watch_count")
	f := launch(t, lock, e.Addrs()...)
	await(ctx, t, f.witness, 1)

	f.during(ctx, t, span)
	frozen := f.freeze(ctx, t, func() {
		spread(ctx, t, e, raw, lock)
		woken = settledWakeUps(ctx, t, e) - woken
	})
	out := f.stop(ctx, t)
	seen, turns, _ := f.witness.now()
	t.Logf("workers: %v", &out)
	t.Logf("witness: %d opens, %d closes, %d goroutines; %s", seen.opens, seen.closes, len(turns), fairness(turns))
	t.Logf("%d releases, and at most %d waiters that gave up, woke %d waiters", frozen.closes, out.GaveUp, woken)

	f.judge(t, out)
	if seen.overlaps+seen.refused+out.Lost > 0 || len(out.Errors) > 0 {
		t.Errorf("in peace: %d overlaps, %d old tokens, %d holds lost, errors %v", seen.overlaps, seen.refused, out.Lost, out.Errors)
	}
	if seen.opens < least {
		t.Errorf("%d holds in %v, want %d at least", seen.opens, span, least)
	}
	if lo, hi := extremes(turns); hi > 2*lo {
		t.Errorf("turns of a goroutine: %d to %d", lo, hi)
	}
	processes := map[int]int{}
	for who, n := range turns {
		processes[who.worker] += n
	}
	// Where all ask alike, the queue's order gives all the same number of turns. Here some
	// waiters give up, by chance, which costs a process a few of its turns.
	if lo, hi := extremes(processes); 100*lo < 85*hi {
		t.Errorf("turns of a process: %d to %d", lo, hi)
	}
	t.Logf("processes: %s", fairness(processes))
	// A deleted node wakes the next waiter, the one behind that, and its own client if that
	// watched it: a hold or a wait directly behind the holder that lasted does. A waiter
	// that comes too late for its predecessor needs no event.
	if woken > 3*(frozen.closes+out.GaveUp) || woken < frozen.closes*9/10 {
		t.Errorf("%d releases and %d waiters that gave up, %d of them holders that watched their own node, woke %d",
			frozen.closes, out.GaveUp, out.Long, woken)
	}
	clean(ctx, t, e, raw, lock)
}

// spread wants every server to have clients, and every contender but the last
// to be watched by its successor.
func spread(ctx context.Context, t *testing.T, e *harness.Ensemble, raw *zk.Conn, lock string) {
	t.Helper()
	eventually(ctx, t, 5*time.Second, func() error {
		watched := map[string]bool{}
		for _, n := range e.Nodes() {
			paths, err := n.WatchesByPath(ctx)
			if err != nil {
				return err
			}
			if len(paths) == 0 {
				return fmt.Errorf("no client of node %d watches anything", n.ID())
			}
			for path := range paths {
				watched[path] = true
			}
		}
		names, _, err := raw.Children(lock)
		if err != nil {
			return err
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(sequence(a), sequence(b)) })
		for i, name := range names {
			if i < len(names)-1 && !watched[lock+"/"+name] {
				return fmt.Errorf("no waiter watches number %d of %d in line", i+1, len(names))
			}
		}
		if len(names) != workers*routines {
			return fmt.Errorf("%d stand in line, want all %d", len(names), workers*routines)
		}
		return nil
	})
}

// settledWakeUps is how many watchers were told of a deletion, once that does
// not change any more.
func settledWakeUps(ctx context.Context, t *testing.T, e *harness.Ensemble) int {
	t.Helper()
	last := -1
	eventually(ctx, t, 5*time.Second, func() error {
		n := total(ctx, t, e, "sum_node_deleted_watch_count")
		if n == last {
			return nil
		}
		last = n
		return fmt.Errorf("%d and counting", n)
	})
	return last
}

// judge is what must hold in peace and with faults.
func (f *fleet) judge(t *testing.T, out outcome) {
	t.Helper()
	seen, turns, _ := f.witness.now()
	for _, what := range seen.deceived {
		t.Errorf("two believed to hold: %s", what)
	}
	for _, what := range seen.disorder {
		t.Errorf("out of the queue's order: sequence number %s", what)
	}
	for _, what := range out.Unexpected {
		t.Error(what)
	}
	if out.Leaked > 0 {
		t.Errorf("%d goroutines left after Close", out.Leaked)
	}
	if want := workers * routines; len(turns) != want {
		t.Errorf("%d goroutines had a turn, want all %d", len(turns), want)
	}
}

// during lets the fleet work for d.
func (f *fleet) during(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
	}
}

// freeze keeps the next holder waiting, so that no contender moves while f looks.
// It returns the tally of that moment.
func (f *fleet) freeze(ctx context.Context, t *testing.T, look func()) tally {
	t.Helper()
	frozen, thaw := make(chan struct{}), make(chan struct{})
	f.witness.atNextOpen(func(report) time.Duration {
		close(frozen)
		<-thaw
		return 0
	})
	defer close(thaw)
	ctx, cancel := limit(ctx)
	defer cancel()
	select {
	case <-frozen:
	case <-ctx.Done():
		t.Fatal("no contender takes the lock any more: ", context.Cause(ctx))
	}
	look()
	seen, _, _ := f.witness.now()
	return seen
}

// stuck is after how long a wait counts as hopeless, because no contender moves.
// It is well over what it takes to lose a server and a session.
const stuck = 30 * time.Second

func limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, stuck, errors.New("stuck"))
}

// await waits for n more opens.
func await(ctx context.Context, t *testing.T, w *witness, n int) {
	t.Helper()
	ctx, cancel := limit(ctx)
	defer cancel()
	seen, _, changed := w.now()
	for want := seen.opens + n; seen.opens < want; seen, _, changed = w.now() {
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d of %d holds and no more: %v", seen.opens, want, context.Cause(ctx))
		}
	}
}

// extremes returns the least and the most turns of those that had one.
func extremes[K comparable](turns map[K]int) (lo, hi int) {
	all := slices.Sorted(maps.Values(turns))
	if len(all) == 0 {
		return 0, 0
	}
	return all[0], all[len(all)-1]
}

func fairness[K comparable](turns map[K]int) string {
	lo, hi := extremes(turns)
	return fmt.Sprintf("turns %d to %d, min/max %.2f", lo, hi, float64(lo)/float64(max(hi, 1)))
}
