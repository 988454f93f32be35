package simulation

import (
	"context"
	"sync"
	"time"
)

// Witness is a resource guarded by a lock. It sees which holders work on it. It
// does not trust the lock. It is safe for concurrent use.
type Witness struct {
	lock string
	h    *History

	mu      sync.Mutex             // guards the rest
	newest  int64                  // token that ever worked here
	alone   int64                  // the newest token of a holder that worked alone
	inside  map[*Hold]func() error // why they no longer believe
	belief  map[*Hold]func() error // of all holds, also of those that do not visit
	refused int
}

// NewWitness returns the resource of a lock.
func NewWitness(lock string, h *History) *Witness {
	return &Witness{lock: lock, h: h, inside: map[*Hold]func() error{}, belief: map[*Hold]func() error{}}
}

// Believe compares a hold that was just granted with every other one that is still believed in,
// in the order in which the clients say so within an instant. It records a meeting if they are
// too many.
func (w *Witness) Believe(belief context.Context, g *Hold, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var believers []*Hold
	for other, theirs := range w.belief {
		if theirs() != nil {
			delete(w.belief, other)
			continue
		}
		believers = append(believers, other)
	}
	if belief.Err() != nil {
		return
	}
	if others := crowd(g, believers); others != nil {
		w.h.Note(func() {
			w.h.Visits = append(w.h.Visits, Meeting{Lock: w.lock, In: others, Entered: g, At: at})
		})
	}
	w.belief[g] = belief.Err
}

// Open lets a holder in. If the holder believes to hold the lock, by its hold's
// context, Open counts the visitors that believe so too. It records a meeting if
// they are too many beside the holder. It reports false for a token older than
// one that has been here and excludes it: a fenced resource serves it no longer.
func (w *Witness) Open(belief context.Context, g *Hold, at time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if belief.Err() == nil {
		var believers []*Hold
		for other, theirs := range w.inside {
			same := other == g || other.Token == g.Token && other.alone()
			if !same && theirs() == nil {
				believers = append(believers, other)
			}
		}
		if others := crowd(g, believers); others != nil {
			w.h.Note(func() {
				w.h.Visits = append(w.h.Visits, Meeting{Lock: w.lock, In: others, Entered: g, At: at})
			})
		}
	}
	if g.Token < w.alone || g.alone() && g.Token < w.newest {
		w.refused++
		return false
	}
	w.newest = max(w.newest, g.Token)
	if g.alone() {
		w.alone = g.Token
	}
	w.inside[g] = belief.Err
	return true
}

// Shut takes a visitor out.
func (w *Witness) Shut(g *Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inside, g)
}

// Refused returns how many visits were turned away for an old token.
func (w *Witness) Refused() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}
