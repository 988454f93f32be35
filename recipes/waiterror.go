package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/book"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// WaitError names the contender that an acquire was waiting for when its wait ended
// without the lock. It is part of the [*LockError] then.
type WaitError struct {
	// Ahead is the contender whose leaving was waited for, as the waiter read it when
	// it began to watch it. No request is sent once the wait has ended. Ahead is the
	// direct predecessor. Its Holder is set if it certainly held the lock; it may also
	// hold if that is not set.
	//
	// The first waiter for permits of a semaphore waits for a lease. Ahead is then a
	// lease of the waiter's own session, if there is one, and otherwise any lease. Its
	// Data was not read. Err says how many permits were free.
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
		case e.hint && e.Ahead.Holder:
			s += " (if that hold is the caller's, pass its context to the acquire)"
		case e.hint:
			s += " (if the caller holds the lock, pass the context of its hold to the acquire)"
		}
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *WaitError) Unwrap() error { return e.Err }

// waited makes an error of the queue name the contender ahead.
func (l *lockInternals) waited(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var said *seqqueue.WaitError // allocated
	if !errors.As(err, &said) {
		return err
	}
	w := &WaitError{
		Ahead:      *contenderAt(l.c, said.Path, said.Node),
		SameClient: said.Own, Err: said.Err, ended: ctx.Err() != nil, hint: !l.noReentry,
	}
	w.Ahead.Unreadable = said.Hidden
	if said.Stat != nil {
		fill(&w.Ahead, said.Data, said.Stat)
	}
	w.Ahead.Holder = said.Only && !isRead(l.tag) // a reader's writer may itself wait for readers
	return w
}

// waiterAhead says of a contender ahead in the queue that it waits for permits.
func waiterAhead(err error) error {
	var busy *BusyError
	if errors.As(err, &busy) {
		busy.Holder = asWaiter(busy.Holder)
	}
	var wait *WaitError
	if errors.As(err, &wait) {
		wait.Ahead, wait.hint = asWaiter(wait.Ahead), false
	}
	return err
}

// asWaiter is a contender of the queue as one for permits: its lock is not the
// semaphore.
func asWaiter(c Contender) Contender {
	c.Holder, c.HeldSince, c.Mode = false, time.Time{}, ModeLease
	return c
}

// waited makes the end of a wait for permits say how many were free, and name one
// lease. It goes by what the waiter has read before. The lease is one of the
// waiter's own session if there is one, otherwise the oldest.
func (p permits) waited(session *client.Session, seen occupied, err error) error {
	own := func(l book.Lease) bool { return l.Stat != nil && l.Stat.EphemeralOwner == session.ID() }
	ahead := slices.MinFunc(seen.held, func(a, b book.Lease) int {
		switch mine := own(a); {
		case mine && !own(b):
			return -1
		case !mine && own(b):
			return 1
		}
		x, _ := leaseNumber(a.Name)
		y, _ := leaseNumber(b.Name)
		return cmp.Compare(x, y)
	})
	all := seen.others + p.n
	free := fmt.Sprintf("%d of %d", max(0, all-len(seen.held)), all)
	if len(seen.held) > all {
		free += fmt.Sprintf(" (%d are held: their number was lowered, or another client goes by a greater one)", len(seen.held))
	}
	number, _ := leaseNumber(ahead.Name)
	n := seqqueue.Node{Name: ahead.Name, Key: number, Tag: leaseTag}
	w := &WaitError{
		Ahead: *contenderAt(p.c, p.leases.queue.Path(n), n), SameClient: own(ahead), ended: true, hint: true,
		Err: fmt.Errorf("permits free: %s, asked for: %d: %w", free, p.n, err),
	}
	w.Ahead.Holder, w.Ahead.Unreadable = true, ahead.Stat == nil
	if ahead.Stat != nil {
		fill(&w.Ahead, nil, ahead.Stat)
		w.Ahead.QueuedSince, w.Ahead.HeldSince = time.Time{}, w.Ahead.QueuedSince
	}
	return w
}
