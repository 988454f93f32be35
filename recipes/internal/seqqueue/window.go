package seqqueue

import (
	"context"
	"slices"
	"sync"

	"github.com/docent-go/docent/internal/ctxerr"
)

// room bounds how many nodes one client has in one directory, of all recipes. Acquires beyond
// that wait in the process, first come, first served. They cost the server nothing. room
// decides who is let in, and does nothing else.
//
// A shared member counts until its turn has come, since a program may hold any number of
// them. Every other member counts until its node is deleted, or its hold is lost.
//
//	an acquire is   event       then it is
//	new             tryEnter    inside, if there is room and none waits; else new
//	new             enterPast   inside
//	new             await       waiting
//	waiting         (room)      inside, if it is the first that waits
//	waiting         giveUp      gone
//	inside          giveUp      gone: it was let in and did not notice
//	inside          leave       gone
type room struct {
	inside  int
	waiting []*entrant
}

// entrant is an acquire that waits for room.
type entrant struct {
	most int           // members that may be inside with it
	in   bool          // it was let in
	let  chan struct{} // closed when it is; the window's
}

// tryEnter enters if there is room for one of most, and no acquire waits.
func (r *room) tryEnter(most int) bool {
	if len(r.waiting) > 0 || r.inside >= most {
		return false
	}
	r.inside++
	return true
}

// enterPast enters past the acquires that wait, whether there is room or not.
func (r *room) enterPast() { r.inside++ }

// await puts e behind all others that wait. As the others do, it returns who is let in.
func (r *room) await(e *entrant) []*entrant {
	r.waiting = append(r.waiting, e)
	return r.admit()
}

// giveUp ends the wait of e. If e was let in meanwhile, it leaves.
func (r *room) giveUp(e *entrant) []*entrant {
	if e.in {
		return r.leave()
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(o *entrant) bool { return o == e })
	return r.admit()
}

// leave makes room for the next.
func (r *room) leave() []*entrant {
	r.inside--
	return r.admit()
}

// admit lets acquires in that wait while there is room, in their order.
func (r *room) admit() []*entrant {
	n := 0
	for ; n < len(r.waiting) && r.inside < r.waiting[n].most; n++ {
		r.waiting[n].in = true
		r.inside++
	}
	let := r.waiting[:n:n]
	r.waiting = r.waiting[n:]
	return let
}

// window is a room for goroutines. It is safe for concurrent use.
type window struct {
	chains []*chain // of its directory; guarded by chains.mu

	mu   sync.Mutex // guards the rest; never held across I/O
	room room
}

// tryEnter is that of the room.
func (w *window) tryEnter(most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.room.tryEnter(most)
}

// enterPast is that of the room.
func (w *window) enterPast() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.enterPast()
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
	wakeAll(w.room.await(e))
	return e
}

// giveUp is that of the room.
func (w *window) giveUp(e *entrant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wakeAll(w.room.giveUp(e))
}

// leave is that of the room.
func (w *window) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	wakeAll(w.room.leave())
}

// wakeAll wakes the acquires that were let in.
func wakeAll(let []*entrant) {
	for _, e := range let {
		close(e.let)
	}
}

// len is how many acquires wait.
func (w *window) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.room.waiting)
}
