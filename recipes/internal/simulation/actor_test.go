package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// actor is one goroutine that wants locks.
type actor struct {
	w     *world
	n     *node
	name  string
	r     *rand.Rand
	lag   time.Duration
	late  *lateness // nil if it never comes late
	c     *client.Client
	in    string // the namespace of c, as a path; "" if there is none
	locks []handle
}

func newActor(w *world, n *node, j int) *actor {
	a := &actor{w: w, n: n, name: fmt.Sprintf("%s.%d", n.name, j), lag: lags[j]}
	a.r = generator(w.seed, a.name)
	if w.late {
		a.late = &lateness{r: generator(w.seed, "late "+a.name)}
	}
	a.c = n.c.Load()
	if w.named && generator(w.seed, "namespace of "+a.name).IntN(2) == 0 {
		in, err := a.c.Namespace(locksRoot[1:])
		if err != nil {
			w.t.Fatal(err)
		}
		a.c, a.in = in, locksRoot
	}
	for _, l := range w.locks {
		h, err := a.handle(l)
		if err != nil {
			w.t.Fatal(err)
		}
		a.locks = append(a.locks, h)
	}
	return a
}

// path is a path of the servers as the actor's client has it.
func (a *actor) path(onWire string) string { return strings.TrimPrefix(onWire, a.in) }

// onWire is a path of the actor's client as the servers have it.
func (a *actor) onWire(path string) string { return a.in + a.n.names.onWire(path) }

// upTo draws a time, to the nanosecond, so that no two actors act at one
// instant.
func (a *actor) upTo(d time.Duration) time.Duration { return 1 + time.Duration(a.r.Int64N(int64(d))) }

func (a *actor) work() {
	n := a.n
	time.Sleep(a.upTo(500 * time.Millisecond))
	for a.w.now() < a.w.h.Healed && !n.closed.Load() {
		a.attempt(a.r.IntN(len(a.locks)))
		time.Sleep(a.upTo([]time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second}[a.r.IntN(3)]))
		_ = n.link.Gate(a.w.ctx) // ends with the schedule
	}
	time.Sleep(time.Until(a.w.start.Add(a.w.h.Calm)) + a.upTo(time.Second))
	for range peacefulRounds {
		if n.closed.Load() {
			return
		}
		for i := range a.locks {
			a.acquire(a.choose(i), Never)
			time.Sleep(a.upTo(50 * time.Millisecond))
		}
		if a.w.k.whole {
			a.addInPeace()
		}
	}
}

const Never = sim.Never

// attempt calls for a lock in one of the ways there are.
func (a *actor) attempt(lock int) {
	w := a.choose(lock)
	ways := 8
	if a.w.k.whole {
		ways = 12
	}
	switch a.r.IntN(ways) {
	case 0, 1:
		a.acquire(w, Never)
	case 2, 3:
		a.acquire(w, a.patience())
	case 4:
		a.try(w, Never)
	case 5:
		a.try(w, a.patience())
	case 6:
		a.do(w, Never)
	case 8:
		a.run(w, a.patience())
	case 9:
		a.look(a.locks[lock])
	case 10:
		a.count()
	default:
		a.do(w, a.patience())
	}
}

// patience draws how long a context lasts: from less than a round trip to
// more than a session.
func (a *actor) patience() time.Duration {
	return a.upTo([]time.Duration{3 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second, 2 * a.w.h.Timeout}[a.r.IntN(4)])
}

// limited returns a context that ends after d, by its deadline or by being
// cancelled.
func (a *actor) limited(d time.Duration) (context.Context, context.CancelFunc) {
	var ctx context.Context
	var cancel context.CancelFunc
	switch {
	case d == Never:
		ctx, cancel = context.WithCancel(a.w.ctx)
	case a.r.IntN(2) == 0:
		ctx, cancel = context.WithTimeout(a.w.ctx, d)
	default:
		ctx, cancel = context.WithCancel(a.w.ctx)
		t := time.AfterFunc(d, cancel)
		stop := cancel
		cancel = func() { t.Stop(); stop() }
	}
	if a.late != nil {
		ctx = context.WithValue(ctx, ofLateness{}, a.late)
	}
	return lagging{ctx, a.lag}, cancel
}

func (a *actor) begin(call string, w *want) *sim.Attempt {
	at := &sim.Attempt{
		Actor: a.name, Client: a.n.name, Lock: w.lock(), Call: call, Begun: a.w.now(), Units: w.parts[0].units, Recipe: w.recipe,
	}
	if len(w.parts) > 1 {
		at.Locks = w.paths()
	}
	a.w.h.Begin(at)
	return at
}

func (a *actor) end(ctx context.Context, at *sim.Attempt, patience time.Duration, err error) {
	now := a.w.now()
	over := ctx.Err() != nil
	var busy *recipes.BusyError
	if errors.As(err, &busy) {
		busy.Holder.Path = a.onWire(busy.Holder.Path) // as the history knows it
	}
	a.w.h.Note(func() {
		at.Ended, at.Err = now, err
		if over {
			at.ContextEnded = now
			if patience != Never {
				at.ContextEnded = at.Begun + max(patience, 0)
			}
		}
		a.w.sum.count(at)
	})
	a.w.trace.attempt(at)
}

func (a *actor) acquire(w *want, patience time.Duration) {
	ctx, cancel := a.limited(patience)
	defer cancel()
	at := a.begin("acquire", w)
	h, err := w.acquire(ctx)
	a.obtained(ctx, at, w, patience, h, err)
}

func (a *actor) try(w *want, patience time.Duration) {
	ctx, cancel := a.limited(patience)
	defer cancel()
	at := a.begin("try", w)
	h, err := w.try(ctx)
	a.obtained(ctx, at, w, patience, h, err)
}

func (a *actor) obtained(ctx context.Context, at *sim.Attempt, w *want, patience time.Duration, h recipes.AnyHold, err error) {
	if err != nil {
		a.end(ctx, at, patience, err)
		return
	}
	s := a.granted(at, w, h, nil)
	a.end(ctx, at, patience, nil)
	s.turns = w.read != nil
	a.release(a.visit(s))
}

// errWork is what a function under a lock fails with.
var errWork = errors.New("work")

// do runs the work as a function under the lock.
func (a *actor) do(w *want, patience time.Duration) {
	ctx, cancel := a.limited(patience)
	defer cancel()
	do, call := w.do, "do"
	if a.w.k.whole && w.tryDo != nil && a.r.IntN(3) == 0 {
		do, call = w.tryDo, "try do"
	}
	at := a.begin(call, w)
	var s *stay
	fails := a.r.IntN(8) == 0
	err := do(ctx, func(work context.Context, h recipes.AnyHold) error {
		s = a.granted(at, w, h, nil)
		s.work = work
		_ = a.visit(s) // it stays what it is
		a.leaving(s)
		if fails {
			return errWork
		}
		return nil
	})
	now := a.w.now()
	if s != nil {
		if err == errWork { //nolint:errorlint // alone: the release did not fail
			err = nil
		}
		a.w.h.Note(func() { s.released(now, err) })
		err = nil
	}
	a.end(ctx, at, patience, err)
}
