package simulation_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/retry"
)

// ensembleElectionSeedsEnv says how many schedules TestEnsembleElectionSchedules plays.
const ensembleElectionSeedsEnv = "DOCENT_SIM_ENSEMBLE_ELECTION_SEEDS"

var electionsEnsemble = ensemble.of("TestEnsembleElectionSeed", elections)

// TestEnsembleElectionSchedules plays many seeds of latches and selectors, on an ensemble. On a
// server on its own crowds do.
func TestEnsembleElectionSchedules(t *testing.T) {
	t.Parallel()
	count := number(t, ensembleElectionSeedsEnv, ensembleElectionSchedules)
	if sum := playMany(t, electionsEnsemble, count); !t.Failed() {
		sum.wantElections(t, int(count))
	}
}

// TestEnsembleElectionSeed plays one schedule and prints what happened in it.
func TestEnsembleElectionSeed(t *testing.T) {
	t.Parallel()
	playOne(t, electionsEnsemble)
}

// election is an actor's way to an election. In some schedules two actors are
// preferred.
func (a *actor) election(l *resource, k *kind) (*recipes.Election, error) {
	opts := []recipes.ElectionOption{recipes.WithNodeData([]byte(a.name))}
	if a.w.k.whole {
		opts = []recipes.ElectionOption{say(a.w.words, recipes.WithID)(a.name), say(a.w.words, recipes.WithCampaignRetry)(retry.Default())}
	}
	if generator(a.w.seed, "preferred").IntN(3) == 0 {
		opts = append(opts, say(a.w.words, recipes.WithPreferred)("c1.0", "c0.0"))
	}
	if k == selectors {
		s, err := say(a.w.words, recipes.NewLeaderSelector)(a.c, a.path(l.path), opts...)
		if err != nil {
			return nil, err
		}
		return s.Election, nil
	}
	latch, err := say(a.w.words, recipes.NewLeaderLatch)(a.c, a.path(l.path), opts...)
	if err != nil {
		return nil, err
	}
	return latch.Election, nil
}

// succeeded gives a term up to a successor, now and then. It reports whether the term is
// over; a term that has found no successor goes on.
func (a *actor) succeeded(s *stay, t *recipes.Term) bool {
	way := a.r.IntN(6)
	if way > 2 {
		return false
	}
	ctx, cancel := context.WithTimeout(a.w.ctx, a.upTo(a.w.h.Timeout/2))
	defer cancel()
	var err error
	if way < 2 {
		heir := a.w.nodes[a.r.IntN(len(a.w.nodes))].name + "." + strconv.Itoa(a.r.IntN(a.w.actors))
		before := len(a.w.h.Standing(a.in + t.LockPath()))
		if err = say(a.w.words, t.HandOver)(ctx, heir); err == nil {
			moved := before - len(a.w.h.Standing(a.in+t.LockPath())) - 1
			a.w.h.Note(func() { a.w.handed[s.gs[0]] = true; a.w.sum.HandedOver++; a.w.sum.Moved += max(0, moved) })
		}
	} else if err = say(a.w.words, t.AwaitSuccessor)(ctx); err == nil {
		a.w.h.Note(func() { a.w.sum.Drained++ })
		err = say(a.w.words, t.Release)(ctx)
	}
	now := a.w.now()
	a.w.trace.note(now, err, text(a.name+": looked for a successor"))
	if !errors.Is(t.Err(), recipes.ErrReleased) { // it goes on, or the release will say why not
		return false
	}
	a.w.h.Note(func() { s.released(now, err) })
	return true
}

// sentBehind notes the participants whose nodes a transaction deletes.
func (w *world) sentBehind(paths []string) {
	for _, path := range paths {
		if l := w.lockOf(path); l != nil && l.kind.elects() {
			w.h.Note(func() {
				w.moved[path] = true
				w.h.Moves = append(w.h.Moves, sim.Force{Path: path, At: w.now()})
			})
		}
	}
}

// observers are the goroutines that observe elections.
type observers struct {
	running sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc
}

// startObserving lets a client observe all elections of the schedule.
func (w *world) startObserving(n *node) {
	for _, l := range w.locks {
		if !l.kind.elects() {
			continue
		}
		w.watch.running.Go(func() { w.observeElection(n, l) })
	}
}

// observeElection records what an observer sees, until it shall stop or its client is
// closed.
func (w *world) observeElection(n *node, l *resource) {
	e, err := (&actor{w: w, n: n, c: n.c.Load(), name: "observer"}).election(l, cmp.Or(l.kind.beside, l.kind))
	if err != nil {
		w.leave(sim.ResidueClose, "observe: "+err.Error())
		return
	}
	sight := sim.Sight{Observer: n.name + l.path, Client: n.name, Lock: l.path}
	for now, err := range say(w.words, e.Observe)(w.watch.ctx) {
		if err != nil {
			sight.Ended = errors.Is(err, client.ErrClosed)
			if sight.Ended {
				sight.Term, sight.At = 0, w.now()
				w.h.Saw(sight)
			}
			continue
		}
		sight.Term, sight.InDoubt, sight.At = now.Term, now.InDoubt, w.now()
		w.h.Saw(sight)
		w.h.Note(func() {
			w.sum.Sights++
			if now.InDoubt {
				w.sum.Doubts++
			}
		})
	}
}

// endObserving lets the observers see that all have left.
func (w *world) endObserving() {
	if slices.ContainsFunc(w.locks, func(l *resource) bool { return l.kind.elects() }) {
		time.Sleep(w.h.Timeout)
	}
	w.watch.stop()
	w.watch.running.Wait()
}
