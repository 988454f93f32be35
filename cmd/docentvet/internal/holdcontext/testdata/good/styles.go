package good

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/recipes"
)

type logger struct{}

func (logger) Infof(context.Context, string, ...any) {}

func logged(ctx context.Context, lock *recipes.InterProcessMutex, l logger) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	l.Infof(ctx, "held %s", hold.LockPath())
	return nil
}

// The hold is released by a function before the work.
func value(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	release := hold.Close
	if err := release(); err != nil {
		return err
	}
	return sell(ctx, 1)
}

func literal(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	stop := func() { hold.Close() }
	stop()
	return sell(ctx, 1)
}

func timed(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	time.AfterFunc(time.Second, func() { hold.Close() })
	return sell(ctx, 1)
}

type service struct {
	err  error
	hold *recipes.Hold
}

func (s *service) field(ctx context.Context, lock *recipes.InterProcessMutex) {
	var hold *recipes.Hold
	hold, s.err = lock.Acquire(ctx)
	if s.err != nil {
		_ = sell(ctx, 0)
		return
	}
	hold.Close()
}

func (s *service) kept(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	s.hold = hold
	return sell(ctx, 1)
}

func merge(a, b context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancel(a)
	context.AfterFunc(b, cancel)
	return both, cancel
}

func merged(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	work, cancel := merge(ctx, hold.Context())
	defer cancel()
	return sell(work, hold.FencingToken())
}

func detached(ctx context.Context, lock *recipes.InterProcessMutex) (err error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(context.WithoutCancel(ctx)), sell(ctx, 2)) }()
	return sell(context.WithoutCancel(ctx), 1) // on purpose
}

func branches(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	switch {
	case errors.Is(err, recipes.ErrBusy):
		return sell(ctx, 0)
	case err != nil:
		return errors.Join(err, sell(ctx, 0))
	}
	if err := hold.Close(); err != nil {
		return err
	}
	return sell(ctx, 1)
}

func reassigned(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	ctx = hold.Context()
	return sell(ctx, 1)
}

func given(ctx context.Context, hold *recipes.Hold) error {
	defer hold.Close()
	return sell(ctx, 1)
}

func fieldsFromContext(context.Context) []any { return nil }

func observed(ctx context.Context, lock *recipes.InterProcessMutex, l logger) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	l.Infof(ctx, "held", fieldsFromContext(ctx)...)
	return nil
}

func (s *service) Acquire(ctx context.Context) (*recipes.Hold, error) { return s.hold, s.err }

func (s *service) Release(ctx context.Context) error { return s.hold.Release(ctx) }

func wrapped(ctx context.Context, s *service) (int64, error) {
	hold, err := s.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	return hold.FencingToken(), s.Release(ctx)
}

// A lock of a program's own is taken as one of the library is.
func taken(ctx context.Context, lock *recipes.InterProcessMutex, s *service) error {
	first, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	defer second.Close()
	return sell(second.Context(), 1)
}
