package aside

import (
	"log/slog"
	"sync"
)

// Teller calls hooks one after the other, on a goroutine of its own that runs while
// there are calls. A hook that blocks must not delay a lease. While it blocks, the
// first calls wait, and the others are dropped.
type Teller struct {
	journal *Journal

	mu      sync.Mutex // guards the rest; never held while a hook runs
	todo    []func()
	idle    chan struct{} // closed when the goroutine ends; nil while there is none
	dropped bool          // and that was logged
}

// NewTeller returns a teller, which says to the journal that a hook does not return.
func NewTeller(j *Journal) *Teller { return &Teller{journal: j} }

// tellerCalls bounds the calls that wait.
const tellerCalls = 1000

// Tell queues the call f. It never blocks.
func (t *Teller) Tell(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.todo) >= tellerCalls {
		if !t.dropped {
			t.journal.Say(slog.LevelWarn, "zookeeper: a hook of the Observer does not return; calls of hooks are dropped until it does")
		}
		t.dropped = true
		return
	}
	t.todo = append(t.todo, f)
	if t.idle == nil {
		t.idle = make(chan struct{})
		go t.run() // ends when everything is told
	}
}

// run calls the hooks. It holds t.mu only within next, so that a hook which panics
// ends the process with its own panic.
func (t *Teller) run() {
	for f := t.next(); f != nil; f = t.next() {
		f()
	}
}

// next returns the next call. When there is none it returns nil and notes that the
// goroutine of run ends.
func (t *Teller) next() func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.todo) == 0 {
		close(t.idle)
		t.todo, t.idle, t.dropped = nil, nil, false
		return nil
	}
	f := t.todo[0]
	t.todo[0], t.todo = nil, t.todo[1:]
	return f
}

// Wait waits until every call that was queued before has returned.
func (t *Teller) Wait() {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
