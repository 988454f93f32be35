package load

import "sync/atomic"

// witness knows how much of one lock is held, whatever the lock believes.
type witness struct {
	limit    int64
	inside   atomic.Int64
	overlaps atomic.Int64
	released atomic.Int64 // when release was called last, or 0
}

// enter says that a contender holds so much of the lock.
func (w *witness) enter(weight int64) {
	if w.inside.Add(weight) > w.limit {
		w.overlaps.Add(1)
	}
}

// leave says that a contender is about to release so much.
func (w *witness) leave(weight int64) { w.inside.Add(-weight) }

// weights returns the limit of a lock, and what one acquire takes of it. A writer takes
// as much as all readers together.
func (s *Spec) weights() (limit, lock, write int64) {
	switch s.Kind {
	case ReadWrite:
		return int64(s.Contenders), 1, int64(s.Contenders)
	case Semaphore:
		return int64(s.Limit), int64(s.Permits), 0
	case Counter, Promoted:
		return int64(s.Contenders), 1, 0
	case Mutex, Multi:
	}
	return 1, 1, 0
}
