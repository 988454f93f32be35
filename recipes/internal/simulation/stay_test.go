package simulation_test

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// stay is what an actor holds.
type stay struct {
	want  *want
	h     recipes.AnyHold
	gs    []*sim.Hold     // of each lock
	work  context.Context // of the work under the lock
	turns bool            // it may turn into a reader's
}

// granted records a hold, of each lock, and the end of its context. outer is
// what was re-entered.
func (a *actor) granted(at *sim.Attempt, w *want, h recipes.AnyHold, outer *stay) *stay {
	s := &stay{want: w, h: h, work: h.Context()}
	for i, one := range each(h) {
		p := w.parts[i]
		g := &sim.Hold{
			Actor: a.name, Client: a.n.name, In: a.in, Lock: p.l.path, Path: a.onWire(one.Path()), Token: one.FencingToken(),
			Granted: a.w.now(), Deadline: one.Deadline().Sub(a.w.start), Nested: outer != nil,
			Units: p.units, Of: p.l.of, From: at.From,
		}
		g.Ahead = a.w.ahead(p.l, g)
		a.w.h.Granted(g)
		if outer == nil {
			p.l.witness.Believe(h.Context(), g, g.Granted)
		}
		s.gs = append(s.gs, g)
	}
	a.w.h.Note(func() {
		at.Hold, at.Holds = s.gs[0], s.gs
		if outer != nil {
			at.Outer = outer.gs[0]
		}
		a.w.sum.granted(s.gs)
	})
	context.AfterFunc(h.Context(), func() { a.over(s) })
	return s
}

// over records the end of a hold's context.
func (a *actor) over(s *stay) {
	now := a.w.now()
	cause := context.Cause(s.h.Context())
	var e *client.LeaseExpiredError
	a.w.h.Note(func() {
		for _, g := range s.gs {
			g.ContextEnded, g.Cause = now, cause
			if errors.As(cause, &e) {
				g.Deadline = e.Deadline.Sub(a.w.start)
			}
		}
	})
	for _, g := range s.gs {
		// Without its cause: a loss and a release can come at one instant.
		a.w.trace.note(now, nil, text(g.Actor+": context ended of "+g.Path))
	}
}

// open visits what the locks guard. It reports whether all let it in.
func (a *actor) open(s *stay) bool {
	inside := true
	for i, g := range s.gs {
		inside = s.want.parts[i].l.witness.Open(s.h.Context(), g, a.w.now()) && inside
	}
	return inside
}

func (s *stay) shut() {
	for i, g := range s.gs {
		s.want.parts[i].l.witness.Shut(g)
	}
}

// visit works under the lock: most often shortly, now and then for longer
// than a session lasts. It returns what is held then.
func (a *actor) visit(s *stay) *stay {
	inside := a.open(s)
	if a.r.IntN(3) == 0 {
		a.reenter(s)
	}
	if s.turns && a.r.IntN(2) == 0 {
		s = a.downgrade(s)
	}
	if a.w.k.whole && a.r.IntN(3) == 0 {
		a.examine(s)
	}
	length := []time.Duration{time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond, 3 * a.w.h.Timeout}
	i := a.r.IntN(18 + a.w.style.patient)
	a.workFor(s.work, a.upTo(length[min(i/6, 3)]), a.asked(s.h))
	if a.n.link.Gate(a.w.ctx) == nil && inside {
		// A process that stood still goes on where it was.
		_ = a.open(s)
	}
	s.shut()
	return s
}

// asked is closed when the holder is asked to release. It is nil for several locks.
func (a *actor) asked(h recipes.AnyHold) <-chan struct{} {
	if one, ok := h.(interface{ Revoked() <-chan struct{} }); ok {
		return sayOf(a.w.words, one, "Revoked").Revoked()
	}
	return nil
}

// workFor takes d, but ends when the work has to, when somebody else asks for the lock, and in
// time for peace.
func (a *actor) workFor(ctx context.Context, d time.Duration, asked <-chan struct{}) {
	if left := a.w.h.Healed - a.w.now(); d > left {
		d = max(left, 0) + a.upTo(20*time.Millisecond)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-asked:
	}
}

// reenter calls once more for what is held, or for what can never be had beside
// it.
func (a *actor) reenter(s *stay) {
	if s.want.within == nil {
		return
	}
	at := a.begin("re-enter", s.want)
	h, err := s.want.within(s.h.Context())
	a.w.h.Note(func() { at.Outer, at.Hopeless, at.Asks, at.Units = s.gs[0], s.want.hopeless, s.want.asks, s.want.more })
	if err != nil {
		a.end(s.h.Context(), at, Never, err)
		return
	}
	want := *s.want
	if want.more != 0 {
		want.parts = []part{{want.parts[0].l, want.more}}
	}
	inner := a.granted(at, &want, h, s)
	a.end(s.h.Context(), at, Never, nil)
	length := 5 * time.Millisecond
	if a.w.k.whole {
		length = []time.Duration{length, time.Second}[a.r.IntN(2)]
	}
	a.workFor(inner.work, a.upTo(length), nil)
	a.release(inner)
}

// downgrade turns a writer's stay into a reader's, in one of two ways.
func (a *actor) downgrade(s *stay) *stay {
	w, ok := s.h.(*recipes.WriteHold)
	if !ok {
		return s
	}
	patience := Never
	if a.r.IntN(3) == 0 {
		patience = a.patience()
	}
	ctx, cancel := a.limited(patience)
	defer cancel()
	turn := as(a, w.Downgrade)
	if a.r.IntN(3) == 0 && !a.w.noReentry { // Curator's way: both for a moment
		ctx, patience, turn = lagging{w.Context(), a.lag}, Never, s.want.read.acquire
	}
	at := a.begin("downgrade", s.want.read)
	a.w.h.Note(func() { at.From = s.gs[0] })
	h, err := turn(ctx)
	if err != nil {
		a.end(ctx, at, patience, err)
		return s
	}
	r := a.granted(at, s.want.read, h, nil)
	a.end(ctx, at, patience, nil)
	_ = a.open(r)
	a.leaving(s)
	err = sayOf(a.w.words, w, "Close").Close() // or what the downgrade's own release said
	now := a.w.now()
	a.w.h.Note(func() { s.released(now, err) })
	s.shut()
	return r
}

func (a *actor) leaving(s *stay) {
	a.w.h.Note(func() {
		for _, g := range s.gs {
			g.Leaving = a.w.now()
		}
	})
}

// released says of each lock how its release ended.
func (s *stay) released(at time.Duration, err error) {
	for i, g := range s.gs {
		g.Released, g.ReleaseErr = at, s.want.errorOf(err, s.want.parts[i].l)
	}
}

// outlast re-enters what is held, releases the outer hold before the inner one, and reports
// whether that was possible.
func (a *actor) outlast(s *stay) bool {
	if s.want.within == nil || s.want.hopeless || s.gs[0].Nested || s.h.Err() != nil {
		return false
	}
	at := a.begin("re-enter", s.want)
	h, err := s.want.within(s.h.Context())
	a.w.h.Note(func() { at.Outer, at.From = s.gs[0], s.gs[0].From })
	if err != nil {
		a.end(s.h.Context(), at, Never, err)
		return false
	}
	inner := a.granted(at, s.want, h, s)
	a.end(s.h.Context(), at, Never, nil)
	a.w.h.Note(func() {
		for _, g := range s.gs {
			g.Stays = true
		}
	})
	a.leaving(s)
	err = sayOf(a.w.words, s.h, "Close").Close()
	now := a.w.now()
	a.w.h.Note(func() { s.released(now, err) })
	for i, g := range inner.gs {
		inner.want.parts[i].l.witness.Believe(h.Context(), g, now)
	}
	a.workFor(inner.h.Context(), a.upTo(300*time.Millisecond), a.asked(h))
	a.leaving(inner)
	err = sayOf(a.w.words, h, "Close").Close()
	now = a.w.now()
	a.w.h.Note(func() { inner.released(now, err) })
	return true
}

// release gives the locks back, in one of the ways there are.
func (a *actor) release(s *stay) {
	if a.w.k.whole && a.r.IntN(8) == 0 && a.outlast(s) {
		return
	}
	a.leaving(s)
	var err error
	if t, ok := s.h.(*recipes.Term); ok {
		if a.succeeded(s, t) {
			return
		}
		a.leaving(s)
	}
	if a.r.IntN(2) == 0 {
		err = sayOf(a.w.words, s.h, "Close").Close()
	} else {
		ctx, cancel := context.WithTimeout(a.w.ctx, a.upTo(a.w.h.Timeout))
		err = sayOf(a.w.words, s.h, "Release").Release(ctx)
		cancel()
	}
	now := a.w.now()
	a.w.h.Note(func() { s.released(now, err) })
	for _, g := range s.gs {
		a.w.trace.note(now, g.ReleaseErr, text(a.name+": released "+g.Path))
	}
}
