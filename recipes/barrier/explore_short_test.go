package barrier_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// shortPrograms makes all programs of so many calls by at most three members of two clients,
// or shorter ones that cannot go on. A session is lost once at most.
func shortPrograms(rounds bool, length int, yield func([]shortCall) bool) {
	var calls []shortCall
	var more func(r shortRule, lost bool) bool
	more = func(r shortRule, lost bool) bool {
		next := r.calls(3, lost)
		if len(calls) == length || len(next) == 0 {
			return yield(slices.Clone(calls))
		}
		for _, c := range next {
			with := r.clone()
			with.play(c)
			calls = append(calls, c)
			goOn := more(with, lost || c.op == 'S')
			calls = calls[:len(calls)-1]
			if !goOn {
				return false
			}
		}
		return true
	}
	more(shortRule{rounds: rounds}, false)
}

// shortLength is how many calls a program has.
func shortLength() int {
	switch {
	case barrier.UnderRace:
		return 3
	case os.Getenv("DOCENT_EXPLORE_LONG") == "1":
		return 7
	}
	return 6
}

// TestEveryShortProgram plays every short program of a double barrier of two. After each call
// all comes to rest. Then members are where the rule has them, the nodes are theirs, and
// at the end nothing is left. DOCENT_EXPLORE_PROGRAM="Ea,Eb,L0" repeats one, with -run.
func TestEveryShortProgram(t *testing.T) {
	t.Parallel()
	length := shortLength()
	for _, rounds := range []bool{false, true} {
		t.Run(fmt.Sprintf("rounds_%v", rounds), func(t *testing.T) {
			t.Parallel()
			began, played := time.Now(), 0
			batches := make(chan [][]shortCall)
			var all sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				all.Go(func() { // ends with batches
					for batch := range batches {
						playShort(t, rounds, batch)
					}
				})
			}
			var batch [][]shortCall
			wanted := os.Getenv("DOCENT_EXPLORE_PROGRAM")
			shortPrograms(rounds, length, func(p []shortCall) bool {
				if wanted != "" && programText(p) != wanted {
					return true
				}
				played++
				if batch = append(batch, p); len(batch) == 50 {
					batches <- batch
					batch = nil
				}
				return !t.Failed()
			})
			batches <- batch
			close(batches)
			all.Wait()
			t.Logf("%d programs of %d calls, complete %v, %.1fs", played, length, !t.Failed(), time.Since(began).Seconds())
			if played == 0 || wanted == "" && played < 10 {
				t.Errorf("%d programs", played)
			}
		})
	}
}

func programText(p []shortCall) string {
	var all []string
	for _, c := range p {
		all = append(all, c.String())
	}
	return strings.Join(all, ",")
}

// playShort plays programs on one server, each at a path of its own.
func playShort(t *testing.T, rounds bool, all [][]shortCall) {
	t.Helper()
	bubble(t, func(r *rig) {
		clients := map[byte]*client.Client{'a': r.Connect("a"), 'b': r.Connect("b")}
		for i, calls := range all {
			w := &shortPlay{rig: r, path: fmt.Sprint("/short/", i), rule: shortRule{rounds: rounds}, barriers: map[byte]*barrier.DistributedDoubleBarrier{}}
			for name, c := range clients {
				w.barriers[name] = w.barrier(c)
			}
			if err := w.play(calls); err != nil {
				r.Errorf("program %s: %v", programText(calls), err)
				return
			}
		}
	}, zktest.WithSeed(1), zktest.WithLatency(0, 0))
}

// shortPlay is one program while it is played.
type shortPlay struct {
	*rig

	path     string
	barriers map[byte]*barrier.DistributedDoubleBarrier
	rule     shortRule
	members  []*shortActor
	made     int
}

// shortActor is a member that is played.
type shortActor struct {
	done   chan error // has the result of its last call
	cancel context.CancelFunc
	at     shortAt
	m      *barrier.Member
}

// barrier has names of nodes that rise with every call.
func (w *shortPlay) barrier(c *client.Client) *barrier.DistributedDoubleBarrier {
	var opts []barrier.Option
	if w.rule.rounds {
		opts = append(opts, barrier.WithRounds())
	}
	b, err := barrier.NewDistributedDoubleBarrier(c, w.path, 2, opts...)
	w.Check(err)
	barrier.SetNames(b, func() string {
		w.made++
		return fmt.Sprintf("%08x-0000-8000-8000-000000000000", w.made)
	})
	return b
}

func (w *shortPlay) play(calls []shortCall) error {
	defer w.end()
	for i, c := range calls {
		w.call(c)
		w.rule.play(c)
		if err := w.judge(); err != nil {
			return fmt.Errorf("after call %d: %w", i+1, err)
		}
	}
	w.end()
	left := slices.DeleteFunc(w.Srv.Children(w.path), func(name string) bool { return name == "ready" })
	if n := w.Srv.WatchCount(); len(left) > 0 || n > 0 {
		return fmt.Errorf("left behind: %v, %d watches", left, n)
	}
	return nil
}

// call makes a call, and lets all come to rest.
func (w *shortPlay) call(c shortCall) {
	rest := time.Second
	switch c.op {
	case 'E':
		ctx, cancel := context.WithCancel(w.Ctx)
		a := &shortActor{done: make(chan error, 1), cancel: cancel}
		w.members = append(w.members, a)
		go func() { // ends with ctx
			m, err := w.barriers[c.client].Enter(ctx)
			a.m = m
			a.done <- err
		}()
	case 'L':
		a := w.members[c.who]
		ctx, cancel := context.WithCancel(w.Ctx)
		a.cancel, a.at = cancel, shortLeaves
		go func() { a.done <- a.m.Leave(ctx) }() // ends with ctx
	case 'C':
		w.members[c.who].cancel()
	case 'X':
		a := w.members[c.who]
		w.Check(a.m.Close())
		a.at = shortFailed
	case 'S':
		w.Srv.Client(string(c.client)).ExpireSession()
		rest = 2 * testrig.SessionTimeout
	}
	time.Sleep(rest)
	synctest.Wait()
}

// judge compares all members and nodes with the rule.
func (w *shortPlay) judge() error {
	for i, a := range w.members {
		select {
		case err := <-a.done:
			switch {
			case err != nil:
				a.at = shortFailed
			case a.at == shortLeaves:
				a.at = shortDone
			default:
				a.at = shortInside
			}
		default:
		}
		if a.at == shortInside && a.m.Err() != nil {
			a.at = shortFailed
		}
		want := w.rule.members[i].at
		if want == shortOutside {
			want = shortWaits
		}
		if a.at != want {
			return fmt.Errorf("member %d %s, and by the rule it %s; nodes %v", i, shortPlaces[a.at], shortPlaces[want], w.Srv.Children(w.path))
		}
	}
	nodes := w.Srv.Children(w.path)
	open := slices.Contains(nodes, "ready")
	if open {
		nodes = slices.DeleteFunc(nodes, func(name string) bool { return name == "ready" })
	}
	if open != (w.rule.open || w.rule.stale) || len(nodes) != w.rule.nodes() {
		return fmt.Errorf("ready %v, want %v; nodes %v, want %d", open, w.rule.open || w.rule.stale, nodes, w.rule.nodes())
	}
	return nil
}

// end ends all calls and memberships.
func (w *shortPlay) end() {
	for _, a := range w.members {
		a.cancel()
	}
	time.Sleep(time.Second)
	synctest.Wait()
	for _, a := range w.members {
		if a.m != nil {
			w.Check(a.m.Close())
		}
	}
	time.Sleep(time.Second)
	synctest.Wait()
}
