package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// wrong records an answer that says what was not so.
func (w *world) wrong(text string, args ...any) {
	w.h.Note(func() { w.h.Wrong = append(w.h.Wrong, fmt.Sprintf(text, args...)) })
}

// queue is what a lock tells of its line, and lets an operator do.
type queue interface {
	Queue(ctx context.Context) ([]recipes.Contender, error)
	RequestRelease(ctx context.Context, contender recipes.Contender) error
}

// queues are the values that tell of a lock's line.
func (h handle) queues(a *actor) []queue {
	switch {
	case h.mutex != nil:
		return []queue{h.mutex}
	case h.rw != nil:
		return []queue{h.rw, say(a.w.words, h.rw.ReadLock)(), say(a.w.words, h.rw.WriteLock)()}
	case h.semaphore != nil:
		return []queue{h.semaphore}
	case h.alone != nil:
		return []queue{h.alone}
	default:
		return nil
	}
}

// requestAt asks the contender with the node at path to release.
func (a *actor) requestAt(l *resource, path string) error {
	h, err := a.handle(l)
	if err != nil {
		return err
	}
	all := h.queues(a)
	if len(all) == 0 {
		m, err := recipes.NewInterProcessMutex(a.c, a.path(l.path)) // Curator's revocation knows no recipe
		if err != nil {
			return err
		}
		all = []queue{m}
	}
	return sayOf(a.w.words, all[0], "RequestRelease").RequestRelease(a.w.ctx, recipes.Contender{Path: a.path(path)})
}

// look looks at the line of a lock, and asks somebody in it to release now and then.
func (a *actor) look(h handle) {
	if h.beside != nil && a.r.IntN(2) == 0 {
		h = *h.beside
	}
	ctx, cancel := a.limited(a.patience())
	defer cancel()
	if h.election != nil {
		a.lookAtElection(ctx, h)
		return
	}
	all := h.queues(a)
	q := all[a.r.IntN(len(all))]
	begun := a.w.now()
	line, err := sayOf(a.w.words, q, "Queue").Queue(ctx)
	if err != nil {
		return
	}
	half := h.rw != nil && q != queue(h.rw) // of a read/write lock
	a.judgeLine(h.l, begun, line, half || h.l.kind == strangers)
	if len(line) == 0 || a.r.IntN(3) > 0 {
		return
	}
	c, at := line[a.r.IntN(len(line))], a.w.now()
	if sayOf(a.w.words, q, "RequestRelease").RequestRelease(ctx, c) == nil {
		path := a.onWire(c.Path)
		a.w.h.Note(func() { a.w.asked = append(a.w.asked, sim.Force{Path: path, At: at}) })
	}
}

// lookAtElection asks who leads, or who takes part.
func (a *actor) lookAtElection(ctx context.Context, h handle) {
	begun := a.w.now()
	if a.r.IntN(2) == 0 {
		one, err := say(a.w.words, h.election.Leader)(ctx)
		if err == nil {
			a.judgeLine(h.l, begun, []recipes.Contender{one.Contender}, true)
		}
		return
	}
	all, err := say(a.w.words, h.election.Participants)(ctx)
	if err != nil {
		return
	}
	var line []recipes.Contender
	for _, p := range all {
		line = append(line, p.Contender)
	}
	a.judgeLine(h.l, begun, line, false)
}

// judgeLine compares a line with the log. Whoever is in it stood there. Whoever stood there all
// the time is in it, unless it shows a part only.
func (a *actor) judgeLine(l *resource, begun time.Duration, line []recipes.Contender, part bool) {
	listed := map[string]bool{}
	for _, c := range line {
		listed[a.onWire(c.Path)] = true
	}
	var missing string
	now := a.w.now()
	a.w.h.Note(func() {
		for _, n := range a.w.h.Nodes {
			switch {
			case n.Lock != l.path || n.Session == 0 && !listed[n.Path]:
			case listed[n.Path] && (n.Gone == Never || n.Gone >= begun):
				delete(listed, n.Path)
			case n.Made < begun && n.Gone == Never && !part:
				missing = n.Path
			}
		}
	})
	for path := range listed {
		if l.kind.isForeign(path) {
			continue
		}
		a.w.wrong("%s was listed by %s from %v to %v, and did not stand then", path, a.name, begun, now)
	}
	if missing != "" {
		a.w.wrong("%s stood, and was not listed by %s from %v to %v", missing, a.name, begun, now)
	}
}

// isForeign reports whether a node is one of those that operators make.
func (k *kind) isForeign(path string) bool {
	return slices.ContainsFunc(k.foreign, func(name string) bool { return path[len(path)-len(name):] == name })
}

// examine lets a holder ask its hold, and work with it.
func (a *actor) examine(s *stay) {
	ctx, cancel := context.WithTimeout(s.work, a.patience())
	defer cancel()
	switch a.r.IntN(4) {
	case 0:
		a.guard(ctx, s)
	case 1:
		begun := a.w.now()
		if sayOf(a.w.words, s.h, "Confirm").Confirm(ctx) == nil {
			a.confirmed(s, begun)
		}
	case 2:
		a.examineOne(ctx, s)
	default:
		if d := sayOf(a.w.words, s.h, "Deadline").Deadline(); d.IsZero() != (s.h.Err() != nil) || sayOf(a.w.words, s.h, "Context").Context() == nil {
			a.w.wrong("a hold of %s has no deadline or no context", a.name)
		}
		select {
		case <-sayOf(a.w.words, s.h, "Jeopardy").Jeopardy():
		default:
		}
		if several, is := s.h.(*recipes.MultiHold); is && len(say(a.w.words, several.Holds)()) != len(s.gs) {
			a.w.wrong("a hold of %d locks has others", len(s.gs))
		}
	}
}

// guard writes what only the holder may write.
func (a *actor) guard(ctx context.Context, s *stay) {
	g, l := s.gs[0], s.want.parts[0].l
	token := fmt.Appendf(nil, "%d", g.Token)
	results, err := sayOf(a.w.words, s.h, "Guard").Guard(ctx, client.SetOp(l.guarded(), token, client.AnyVersion).In(a.n.c.Load()))
	if err != nil || g.From != nil {
		return
	}
	a.w.h.Note(func() {
		a.w.h.Writes = append(a.w.h.Writes, sim.Write{Hold: g, Zxid: results[0].Stat.Mzxid})
	})
}

// guarded is the node that holders of the lock write.
func (l *resource) guarded() string { return "/guarded" + l.path[len(locksRoot):] }

// makeGuarded makes these nodes.
func (w *world) makeGuarded() {
	for _, l := range w.locks {
		if err := w.alone.Create(l.guarded(), nil); err != nil {
			w.t.Fatal(err)
		}
	}
}

// confirmed judges a confirmation: the nodes stood when it was asked for.
func (a *actor) confirmed(s *stay, begun time.Duration) {
	for _, g := range s.gs {
		gone := Never
		a.w.h.Note(func() {
			for _, n := range a.w.h.Nodes {
				if n.Path == g.Path && n.Czxid == g.Token {
					gone = n.Gone
				}
			}
		})
		if gone != Never && gone < begun {
			a.w.wrong("%v is confirmed at %v, and its node was gone at %v", g, begun, gone)
		}
	}
}

// examineOne asks what only the hold of one lock knows.
func (a *actor) examineOne(ctx context.Context, s *stay) {
	if lease, is := s.h.(*recipes.Lease); is {
		a.examineLease(ctx, s, lease)
	}
	h, is := s.h.(interface {
		Exclusive() bool
		OnRevoke(f func()) (stop func() bool)
	})
	if !is {
		return
	}
	if _, reads := s.h.(*recipes.Hold); sayOf(a.w.words, h, "Exclusive").Exclusive() == s.want.shared && (reads || s.gs[0].From == nil) {
		a.w.wrong("%v says whether it is exclusive: %v", s.gs[0], h.Exclusive())
	}
	var started atomic.Bool
	stop := sayOf(a.w.words, h, "OnRevoke").OnRevoke(func() { started.Store(true) })
	a.workFor(ctx, a.upTo(10*time.Millisecond), nil)
	if stop() && started.Load() {
		a.w.wrong("OnRevoke of %v has run what it says to have kept from running", s.gs[0])
	}
}

func (a *actor) examineLease(ctx context.Context, s *stay, lease *recipes.Lease) {
	paths, n := say(a.w.words, lease.Paths)(), say(a.w.words, lease.Permits)()
	if len(paths) != n || n != s.gs[0].Units {
		a.w.wrong("a lease of %d permits has %d, with the nodes %v", s.gs[0].Units, n, paths)
	}
	data, err := say(a.w.words, lease.Data)(ctx)
	if err == nil && !bytes.HasPrefix(data, []byte(a.n.name)) && !bytes.HasPrefix(data, []byte("__REVOKE__")) {
		a.w.wrong("the lease of %s has the data %q", a.name, data)
	}
}

// run leads an election again and again, for as long as the actor has patience. Other locks
// are no elections: there it takes the lock once.
func (a *actor) run(w *want, patience time.Duration) {
	if w.election == nil {
		a.do(w, patience)
		return
	}
	ctx, cancel := a.limited(patience)
	defer cancel()
	until, released := a.w.now()+patience, false
	at := a.begin("do", w)
	err := say(a.w.words, w.election.Run)(ctx, func(work context.Context, t *recipes.Term) error {
		if at == nil { // Run has gone on after a loss
			at = a.begin("do", w)
		}
		s := a.granted(at, w, t, nil)
		s.work = work
		a.end(ctx, at, until-at.Begun, nil)
		if leads := say(a.w.words, w.election.Leading)(); leads != (t.Err() == nil) {
			a.w.wrong("%v leads: %v", s.gs[0], leads)
		}
		a.release(a.visit(s))
		released = s.gs[0].ReleaseErr == nil // else Run tries that again, and goes on if the term was lost
		if at = nil; a.r.IntN(3) == 0 {
			return errWork
		}
		if released {
			at = a.begin("do", w)
		}
		return nil
	})
	if at != nil {
		a.end(ctx, at, until-at.Begun, err)
	} else if !errors.Is(err, errWork) && released {
		a.w.wrong("Run of %s returns %v, and its function has failed with another error", a.name, err)
	}
}
