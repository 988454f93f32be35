package shared

import "slices"

// turns decides which operations the next write of an atom carries, and with whose
// context somebody waits for the lock of PromotedToLock. It is a machine without I/O,
// clock, goroutine or context: its methods are events, and return orders.
//
// One batch of operations at a time has the turn to write. An operation is in one state:
//
//	state    the operation                            goes on to
//	queued   waits for the turn                       trying: take; left
//	trying   is in the turn, without the lock         told: finish; wanting: lost; left
//	wanting  lost its tries, out of the turn          holding: take; told: refused; left
//	holding  is in the turn, under the lock           told: finish; wanting: lost; left
//	told     has its result, or an error
//	left     its caller waits no more
//
// A caller may be inside a hold of the lock, for which the others wait, and only the lock
// can tell. So every operation that wants the lock asks for it, with its caller's context.
// Its ask is in one state:
//
//	state    the ask                                  goes on to
//	none     is not there                             asking: lost
//	asking   waits for the lock                       granted; none: refused, take, left
//	granted  has the lock, and waits for the turn     using: take; none: refused, take
//	using    gives its hold to the batch in the turn  none: finish, lost
//
// The first ask that is granted ends the tries of a batch without the lock, and goes
// ahead of the queue. Its batch takes all that want the lock. So no operation waits for
// a batch that waits for the lock.
type turns[K any] struct {
	turn  turn
	queue []*seat[K] // queued
	batch []*seat[K] // trying or holding, and those of the batch that are told or left
	want  []*seat[K] // wanting
	asks  []*seat[K] // granted or using, the first first
	open  int        // how many of the batch are neither told nor left
}

// seat is one operation in turns.
type seat[K any] struct {
	who   K
	stage stage
	ask   ask
	asked int  // how often it has asked; tells an answer from one to an earlier ask
	sent  bool // it is part of a write whose outcome is open
}

type turn uint8

const (
	resting turn = iota // nobody calls take
	between             // take is called next
	bare                // a batch without the lock has it
	locked              // a batch under the lock has it
)

type stage uint8

const (
	queued stage = iota
	trying
	wanting
	holding
	told
	left
)

type ask uint8

const (
	none ask = iota
	asking
	granted
	using
)

// orders are what is to be done after an event.
type orders[K any] struct {
	start   bool // somebody has to call take
	ask     []K  // wait for the lock
	recall  []K  // end these waits
	release []K  // these holds of the lock are of no more use
	hurry   bool // the batch in the turn begins no other try
	stop    bool // nobody waits for the batch in the turn
}

// arrive queues s.
func (t *turns[K]) arrive(s *seat[K]) (o orders[K]) {
	t.queue = append(t.queue, s)
	o.start = t.wake()
	return o
}

// wake reports whether somebody has to call take.
func (t *turns[K]) wake() bool {
	if t.turn != resting {
		return false
	}
	t.turn = between
	return true
}

// take gives the turn to the next batch. owner is the operation whose hold of the lock it
// has, nil if none. Without a batch there is nothing to do until the next order to start.
func (t *turns[K]) take() (batch []*seat[K], owner *seat[K], o orders[K]) {
	if len(t.asks) > 0 && len(t.want) > 0 {
		owner = t.asks[0]
	}
	for _, s := range t.asks {
		if s != owner {
			s.ask = none
			o.release = append(o.release, s.who)
		}
	}
	t.asks = t.asks[:0]
	switch {
	case owner != nil:
		owner.ask = using
		t.asks = append(t.asks, owner)
		t.turn, t.batch, t.want = locked, t.want, nil
	case len(t.queue) > 0:
		t.turn, t.batch, t.queue = bare, t.queue, nil
	default:
		t.turn = resting
		return nil, nil, o
	}
	t.open = len(t.batch)
	for _, s := range t.batch {
		s.stage = trying
		if owner != nil {
			s.stage = holding
		}
		if s.ask == asking {
			s.ask = none
			o.recall = append(o.recall, s.who)
		}
	}
	return t.batch, owner, o
}

// waits reports whether s belongs into the next try of the batch.
func (s *seat[K]) waits() bool { return s.stage == trying || s.stage == holding }

// tell says that s, which has waited, has its result. The others of the batch go on.
func (t *turns[K]) tell(s *seat[K]) {
	t.open--
	s.stage, s.sent = told, false
}

// unsend says that nothing of the batch was written.
func (t *turns[K]) unsend() {
	for _, s := range t.batch {
		s.sent = false
	}
}

// finish ends the turn: the batch has its results.
func (t *turns[K]) finish() (o orders[K]) {
	for _, s := range t.batch {
		if s.waits() {
			t.tell(s)
		}
	}
	t.end(&o)
	return o
}

// lost ends the turn, after unsend: nothing was written, and the tries, or the hold, are over. Those of
// the batch who are not told want the lock.
func (t *turns[K]) lost() (o orders[K]) {
	batch := t.batch
	t.end(&o)
	for _, s := range batch {
		if s.waits() {
			s.stage, s.ask = wanting, asking
			s.asked++
			t.want = append(t.want, s)
			o.ask = append(o.ask, s.who)
		}
	}
	return o
}

func (t *turns[K]) end(o *orders[K]) {
	t.asks = slices.DeleteFunc(t.asks, func(s *seat[K]) bool {
		if s.ask != using {
			return false
		}
		s.ask = none
		o.release = append(o.release, s.who)
		return true
	})
	t.turn, t.batch, t.open = between, nil, 0
}

// granted says that the n-th ask of s has the lock. It reports whether that is of use.
func (t *turns[K]) granted(s *seat[K], n int) (use bool, o orders[K]) {
	if s.ask != asking || s.asked != n {
		return false, o
	}
	s.ask = granted
	t.asks = append(t.asks, s)
	o.hurry = t.turn == bare
	o.start = t.wake()
	return true, o
}

// refused says that the n-th ask of s does not get the lock, or that its hold is over
// before it has the turn. It reports whether s is told.
func (t *turns[K]) refused(s *seat[K], n int) (tell bool, o orders[K]) {
	if s.asked != n || s.ask != asking && s.ask != granted {
		return false, o
	}
	if s.ask == granted {
		t.asks = without(t.asks, s)
		o.release = append(o.release, s.who)
	}
	s.ask = none
	if tell = s.stage == wanting; tell {
		t.want = without(t.want, s)
		s.stage = told
	}
	return tell, o
}

// leave says that the caller of s waits no more.
func (t *turns[K]) leave(s *seat[K]) (o orders[K]) {
	switch s.stage {
	case queued:
		t.queue = without(t.queue, s)
	case wanting:
		t.want = without(t.want, s)
		if s.ask == asking {
			s.ask = none
			o.recall = append(o.recall, s.who)
		}
	case trying, holding:
		t.open--
		o.stop = t.open == 0
	}
	s.stage = left
	return o
}

func without[K any](seats []*seat[K], s *seat[K]) []*seat[K] {
	return slices.DeleteFunc(seats, func(o *seat[K]) bool { return o == s })
}
