package seqqueue

import (
	"context"
	"slices"
	"sync"

	"github.com/docent-go/docent/internal/ctxerr"
)

// window bounds how many nodes one client has in one directory. Acquires beyond that
// wait in the process, first come, first served. They cost the server nothing.
//
// A shared member counts until its turn has come, since a program may hold any number of
// them. Every other member counts until its node is deleted, or its hold is lost.
type window struct {
	mu      sync.Mutex // guards the rest; never held across I/O
	inside  int
	waiting []*entrant
}

// entrant is an acquire that waits for room.
type entrant struct {
	most int           // members that may be inside with it
	let  chan struct{} // closed when it is
}

// tryEnter enters if there is room and no acquire waits.
func (w *window) tryEnter(most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 || w.inside >= most {
		return false
	}
	w.inside++
	return true
}

// enterPast enters past the acquires that wait, whether there is room or not.
func (w *window) enterPast() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside++
}

// enter waits until e is let in, ctx ends or over is closed. If over is closed, enter reports
// false, and no error. If e is not let in, it goes on waiting until [window.giveUp].
func (w *window) enter(ctx context.Context, e *entrant, over <-chan struct{}) (bool, error) {
	select {
	case <-e.let:
		return true, nil
	case <-over:
		return false, nil
	case <-ctx.Done():
		return false, ctxerr.Ended(ctx)
	}
}

// newEntrant returns an entrant that waits behind all others.
func (w *window) newEntrant(most int) *entrant {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &entrant{most: most, let: make(chan struct{})}
	w.waiting = append(w.waiting, e)
	w.admit()
	return e
}

// giveUp ends the wait of e. If e was let in meanwhile, it leaves.
func (w *window) giveUp(e *entrant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-e.let:
		w.inside--
	default:
		w.waiting = slices.DeleteFunc(w.waiting, func(o *entrant) bool { return o == e })
	}
	w.admit()
}

// leave makes room for the next.
func (w *window) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
	w.admit()
}

// admit lets in waiting acquires while there is room, in order. The caller holds
// w.mu.
func (w *window) admit() {
	for len(w.waiting) > 0 && w.inside < w.waiting[0].most {
		w.inside++
		close(w.waiting[0].let)
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
	}
}

// len is how many acquires wait.
func (w *window) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
