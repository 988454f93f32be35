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
// A member that others may share the lock with counts until its turn has come. Every
// other member counts until its node is deleted, or its hold is lost.
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

// tryEnter enters if there is room and no one waits.
func (w *window) tryEnter(most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 || w.inside >= most {
		return false
	}
	w.inside++
	return true
}

// push enters whether there is room or not.
func (w *window) push() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside++
}

// enter waits for room until ctx or over ends. It reports false, and no error, if over did;
// then e keeps its place until [window.withdraw].
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

// queue takes the last place among the waiting acquires.
func (w *window) queue(most int) *entrant {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &entrant{most: most, let: make(chan struct{})}
	w.waiting = append(w.waiting, e)
	w.admit()
	return e
}

// withdraw gives up the place of e, or the room if it was let in meanwhile.
func (w *window) withdraw(e *entrant) {
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

// exit makes room for the next.
func (w *window) exit() {
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

// len is how many wait.
func (w *window) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
