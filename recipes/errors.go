package recipes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

var (
	// ErrBusy is matched by the [*BusyError] of a TryAcquire that found another
	// contender, which may be of the same client.
	ErrBusy = errors.New("not free")

	// ErrLost says that a hold ended before it was released. It comes with the
	// reason, such as client.ErrSessionLost or [ErrNodeDeleted].
	ErrLost = errors.New("lock lost")

	// ErrReleased says that a hold ended because it was released.
	ErrReleased = errors.New("lock released")

	// ErrNodeDeleted says that the node of the caller, and with it the lock or the
	// place in the queue, was deleted by another client.
	ErrNodeDeleted = seqqueue.ErrGone

	// ErrSequenceExhausted says that the counter of the lock's directory is
	// near its end at 2147483647. Beyond that, servers hand out equal numbers, and
	// every client would see itself first (ZOOKEEPER-3249). Let every client stop
	// and delete the directory; it starts again at 0.
	ErrSequenceExhausted = seqqueue.ErrExhausted

	// ErrForeignLock says that a lock of another recipe or library is in use
	// on the lock's path. Neither would wait for the other, so the path would be
	// held twice. The error names the node, its recipe and its library. Give each
	// recipe a path of its own; of kazoo's, see [WithKazoo]. docs/mixing.md lists
	// the recipes that are known by their names.
	ErrForeignLock = seqqueue.ErrForeign

	// ErrWouldDeadlock says that an acquire was refused because it would wait for its own
	// caller. It would wait for a hold that its context descends from, or for a waiter
	// that waits for that hold. Permits of a semaphore, of which the context holds others,
	// are refused whenever they are not free at once.
	ErrWouldDeadlock = errors.New("would wait for itself")

	// ErrSeveralSessions says that [MultiHold.Guard] was called for locks of
	// several clients, whose sessions no transaction can check at once.
	ErrSeveralSessions = errors.New("the locks are of several sessions, and a transaction is of one; guard with one of its Holds")

	errNoFunction = errors.New("recipes: the function is nil; pass the work to do while the lock is held")
)

// LockError is the error of a failed lock operation.
type LockError struct {
	Op   string // "acquire", "release", ...
	Path string // of the lock
	Err  error  // why
}

// Error names the operation, the lock and the reason.
func (e *LockError) Error() string {
	why := e.Err.Error()
	if lost, ok := e.Err.(*lossError); ok && lost.lock == e.Path { //nolint:errorlint // of itself: the path stands once
		why = ErrLost.Error() + ": " + lost.why.Error()
	}
	return "recipes: " + e.Op + " " + e.Path + ": " + strings.TrimPrefix(why, "recipes: ")
}

// Unwrap returns the reason.
func (e *LockError) Unwrap() error { return e.Err }

// lossError says which lock was lost, and why. It matches [ErrLost] and the reason.
type lossError struct {
	lock string
	why  error
}

// Error names the lock and the reason.
func (e *lossError) Error() string { return ErrLost.Error() + ": " + e.lock + ": " + e.why.Error() }

// Unwrap returns both that it matches.
func (e *lossError) Unwrap() []error { return []error{ErrLost, e.why} }

// severalError is the errors of several locks, in one line.
type severalError struct{ errs []error }

// joined joins those of errs that are not nil.
func joined(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return &severalError{errs}
}

// Error has a semicolon between the errors.
func (e *severalError) Error() string {
	texts := make([]string, len(e.errs))
	for i, err := range e.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (e *severalError) Unwrap() []error { return e.errs }

// BusyError names the contender that stood in the way of a TryAcquire. It matches [ErrBusy].
type BusyError struct {
	Holder Contender
}

// Error names the holder's node, session and data.
func (e *BusyError) Error() string {
	return ErrBusy.Error() + ": " + e.Holder.String()
}

// Is reports whether target is [ErrBusy].
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// takenAway is for a group of nodes whose creation was not answered. If some of them
// were found and others were not, another client has deleted the others.
func takenAway(err error) error {
	if errors.Is(err, zk.ErrNoNode) && client.UnknownOutcome(err) {
		return fmt.Errorf("%w: %w", ErrNodeDeleted, err)
	}
	return err
}

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

// refused reports whether a server answered the operation that failed with err,
// and changed nothing.
func refused(err error) bool {
	var op *client.OpError
	return errors.As(err, &op) && op.Outcome == client.OutcomeRefused
}

// notOver keeps err from matching ErrLost or ErrReleased. It is for an error of a hold
// that is not over, or of a transaction that may have been applied before. Such an error
// has the cause of the caller's ctx in it, and that may be the end of another hold.
func notOver(err error) error {
	if errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) {
		return &causeless{err}
	}
	return err
}

// causeless matches all that its error does but the end of a hold.
type causeless struct{ err error }

func (e *causeless) Error() string { return e.err.Error() }

// Is reports whether the error matches target, unless that is the end of a
// hold.
func (e *causeless) Is(target error) bool {
	return target != ErrLost && target != ErrReleased && errors.Is(e.err, target)
}

// As finds what the error wraps.
func (e *causeless) As(target any) bool { return errors.As(e.err, target) }

// reason is why an operation failed that was a part of another one.
func reason(err error) error {
	var of *LockError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
