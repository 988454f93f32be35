package recipes

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// WaitError says for whom an acquire was waiting when its wait ended without the
// lock. It is part of the [*LockError] then.
type WaitError struct {
	// Ahead is the contender whose leaving was waited for, as the waiter read it when
	// it began to watch it: no request is sent once the wait has ended. It is
	// the direct predecessor. Its Holder is set if it certainly held the lock; it
	// may also hold if that is not set. For the first that waits for permits of a
	// semaphore it is a lease, one of the waiter's own session if there is one, and
	// its Data was not read. Err says how many permits were free.
	Ahead Contender
	// SameClient says that Ahead is of the session of the waiter: another goroutine
	// of this process, or the caller itself.
	SameClient bool
	Err        error // why the wait has ended

	ended bool // by its context: the caller may be within the hold that it waits for
	hint  bool // its context would re-enter that
}

// Error names the contender ahead as [BusyError] does, and the reason.
func (e *WaitError) Error() string {
	s := "waiting behind "
	if e.Ahead.Holder {
		s += "holder "
	}
	s += e.Ahead.text()
	if e.SameClient && e.ended {
		s += ", of this same client"
		switch {
		case e.hint && e.Ahead.Mode == ModeLease:
			s += " (if that lease is the caller's, release it first)"
		case e.hint:
			s += " (if that hold is the caller's, pass its context to the acquire)"
		}
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *WaitError) Unwrap() error { return e.Err }

// waited makes an error of the queue say who is ahead.
func (l *lockInternals) waited(ctx context.Context, err error) error {
	var said *seqqueue.WaitError
	if !errors.As(err, &said) {
		return err
	}
	w := &WaitError{
		Ahead:      *contenderAt(l.c, said.Path, said.Node),
		SameClient: said.Own, Err: said.Err, ended: ctx.Err() != nil, hint: !l.alone,
	}
	if said.Stat == nil {
		w.Ahead.Unreadable = true
	} else {
		fill(&w.Ahead, said.Data, said.Stat)
	}
	w.Ahead.Holder = said.Only && !isRead(l.tag) // a reader's writer may itself wait for readers
	return w
}

// waiterAhead says of a contender ahead in the queue that it waits for permits.
func waiterAhead(err error) error {
	var busy *BusyError
	if errors.As(err, &busy) {
		busy.Holder = waiter(busy.Holder)
	}
	var wait *WaitError
	if errors.As(err, &wait) {
		wait.Ahead, wait.hint = waiter(wait.Ahead), false
	}
	return err
}
