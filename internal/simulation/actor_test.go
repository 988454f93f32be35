package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/client"
	sim "github.com/docent-go/docent/internal/simulation"
	"github.com/docent-go/docent/recipes"
)

// actor is one goroutine that wants locks.
type actor struct {
	w     *world
	n     *node
	name  string
	r     *rand.Rand
	lag   time.Duration
	locks []*recipes.InterProcessMutex
}

func newActor(w *world, n *node, j int) *actor {
	a := &actor{w: w, n: n, name: fmt.Sprintf("%s.%d", n.name, j), lag: lags[j]}
	a.r = generator(w.seed, a.name)
	for _, l := range w.locks {
		m, err := recipes.NewInterProcessMutex(n.c.Load(), l.path, recipes.WithNodeData([]byte(a.name)))
		if err != nil {
			w.t.Fatal(err)
		}
		a.locks = append(a.locks, m)
	}
	return a
}

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
			a.acquire(i, Never)
			time.Sleep(a.upTo(50 * time.Millisecond))
		}
	}
}

const Never = sim.Never

// attempt calls for a lock in one of the ways there are.
func (a *actor) attempt(lock int) {
	switch a.r.IntN(8) {
	case 0, 1:
		a.acquire(lock, Never)
	case 2, 3:
		a.acquire(lock, a.patience())
	case 4:
		a.try(lock, Never)
	case 5:
		a.try(lock, a.patience())
	case 6:
		a.do(lock, Never)
	default:
		a.do(lock, a.patience())
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
	return lagging{ctx, a.lag}, cancel
}

func (a *actor) begin(call string, lock int) *sim.Attempt {
	at := &sim.Attempt{Actor: a.name, Client: a.n.name, Lock: a.w.locks[lock].path, Call: call, Begun: a.w.now()}
	a.w.h.Begin(at)
	return at
}

func (a *actor) end(ctx context.Context, at *sim.Attempt, patience time.Duration, err error) {
	now := a.w.now()
	over := ctx.Err() != nil
	var busy *recipes.BusyError
	if errors.As(err, &busy) {
		busy.Holder.Path = a.n.names.onWire(busy.Holder.Path) // as the history knows it
	}
	a.w.h.Note(func() {
		at.Ended, at.Err = now, err
		if over {
			at.ContextEnded = now
			if patience != Never {
				at.ContextEnded = at.Begun + patience
			}
		}
		a.w.sum.count(at)
	})
	a.w.trace.attempt(at)
}

// granted records a hold and the end of its context.
func (a *actor) granted(at *sim.Attempt, h *recipes.Hold, outer *sim.Hold) *sim.Hold {
	g := &sim.Hold{
		Actor: a.name, Client: a.n.name, Lock: at.Lock, Path: a.n.names.onWire(h.Path()), Token: h.FencingToken(),
		Granted: a.w.now(), Deadline: h.Deadline().Sub(a.w.start), Nested: outer != nil,
	}
	g.Ahead = a.w.ahead(g)
	a.w.h.Granted(g)
	a.w.h.Note(func() { at.Hold, at.Outer = g, outer })
	context.AfterFunc(h.Context(), func() {
		now := a.w.now()
		cause := context.Cause(h.Context())
		var e *client.LeaseExpiredError
		a.w.h.Note(func() {
			g.ContextEnded, g.Cause = now, cause
			if errors.As(cause, &e) {
				g.Deadline = e.Deadline.Sub(a.w.start)
			}
		})
		// Without its cause: a loss and a release can come at one instant.
		a.w.trace.note(now, nil, text(g.Actor+": context ended of "+g.Path))
	})
	return g
}

func (a *actor) acquire(lock int, patience time.Duration) {
	ctx, cancel := a.limited(patience)
	defer cancel()
	at := a.begin("acquire", lock)
	h, err := a.locks[lock].Acquire(ctx)
	a.obtained(ctx, at, lock, patience, h, err)
}

func (a *actor) try(lock int, patience time.Duration) {
	ctx, cancel := a.limited(patience)
	defer cancel()
	at := a.begin("try", lock)
	h, err := a.locks[lock].TryAcquire(ctx)
	a.obtained(ctx, at, lock, patience, h, err)
}

func (a *actor) obtained(ctx context.Context, at *sim.Attempt, lock int, patience time.Duration, h *recipes.Hold, err error) {
	if err != nil {
		a.end(ctx, at, patience, err)
		return
	}
	g := a.granted(at, h, nil)
	a.end(ctx, at, patience, nil)
	a.visit(lock, h, g)
	a.release(h, g)
}

// do runs the work as a function under the lock.
func (a *actor) do(lock int, patience time.Duration) {
	ctx, cancel := a.limited(patience)
	defer cancel()
	at := a.begin("do", lock)
	var g *sim.Hold
	errWork := errors.New("work")
	fails := a.r.IntN(8) == 0
	err := a.locks[lock].Do(ctx, func(work context.Context) error {
		h, err := a.locks[lock].Acquire(work) // the way to the hold itself
		if err != nil {
			return err
		}
		g = a.granted(at, h, nil)
		a.visitUntil(work, lock, h, g)
		a.w.h.Note(func() { g.Leaving = a.w.now() })
		if err := h.Close(); err != nil {
			return err
		}
		if fails {
			return errWork
		}
		return nil
	})
	now := a.w.now()
	if g != nil {
		if err == errWork { //nolint:errorlint // alone: the release did not fail
			err = nil
		}
		a.w.h.Note(func() { g.Released, g.ReleaseErr = now, err })
		err = nil
	}
	a.end(ctx, at, patience, err)
}

// visit works under the lock: most often shortly, now and then for longer
// than a session lasts.
func (a *actor) visit(lock int, h *recipes.Hold, g *sim.Hold) { a.visitUntil(h.Context(), lock, h, g) }

func (a *actor) visitUntil(work context.Context, lock int, h *recipes.Hold, g *sim.Hold) {
	w := a.w.locks[lock].witness
	inside := w.Open(h.Context(), g, a.w.now())
	if a.r.IntN(3) == 0 {
		a.reenter(lock, h, g)
	}
	length := []time.Duration{time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond, 3 * a.w.h.Timeout}
	i := a.r.IntN(18 + a.w.style.patient)
	a.workFor(work, a.upTo(length[min(i/6, 3)]))
	if a.n.link.Gate(a.w.ctx) == nil && inside {
		// A process that stood still goes on where it was.
		_ = w.Open(h.Context(), g, a.w.now())
	}
	w.Shut(g)
}

// workFor takes d, but ends when the work has to, and in time for peace.
func (a *actor) workFor(ctx context.Context, d time.Duration) {
	if left := a.w.h.Healed - a.w.now(); d > left {
		d = max(left, 0) + a.upTo(20*time.Millisecond)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// reenter acquires the lock that is held once more.
func (a *actor) reenter(lock int, h *recipes.Hold, outer *sim.Hold) {
	at := a.begin("re-enter", lock)
	inner, err := a.locks[lock].Acquire(h.Context())
	if err != nil {
		a.w.h.Note(func() { at.Outer = outer })
		a.end(h.Context(), at, Never, err)
		return
	}
	g := a.granted(at, inner, outer)
	a.end(h.Context(), at, Never, nil)
	a.workFor(inner.Context(), a.upTo(5*time.Millisecond))
	a.release(inner, g)
}

// release gives the lock back, in one of the ways there are.
func (a *actor) release(h *recipes.Hold, g *sim.Hold) {
	a.w.h.Note(func() { g.Leaving = a.w.now() })
	var err error
	if a.r.IntN(2) == 0 {
		err = h.Close()
	} else {
		ctx, cancel := context.WithTimeout(a.w.ctx, a.upTo(a.w.h.Timeout))
		err = h.Release(ctx)
		cancel()
	}
	now := a.w.now()
	a.w.h.Note(func() { g.Released, g.ReleaseErr = now, err })
	a.w.trace.note(now, err, text(a.name+": released "+g.Path))
}
