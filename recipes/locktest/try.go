package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// tryAcquire does not wait, names the holder that is in the way, and gets what is free.
func tryAcquire(s *suite) {
	path := s.Path()
	a, b := s.Connect("a"), s.Connect("b")
	mine, theirs := s.lock(a, path), s.rival(b, path)
	h, err := theirs.TryAcquire(s.ctx)
	s.check(err)
	before := s.Ephemerals(path)
	got, err := mine.TryAcquire(s.ctx)
	if got != nil {
		s.Fatal("held beside another")
	}
	s.want(err, recipes.ErrBusy)
	var busy *recipes.BusyError
	if !errors.As(err, &busy) || !busy.Holder.Holder || busy.Holder.Session != s.session(b) || !slices.Contains(before, busy.Holder.Path) ||
		busy.Holder.Family != recipes.FamilyDocent || busy.Holder.FencingToken != h.FencingToken() {
		s.Errorf("in the way is %+v", busy)
	}
	s.nodes(path, len(before)) // and no more
	s.check(h.Err())
	s.check(h.Release(s.ctx))
	s.eventually(func() error { // a server may be behind
		got, err = mine.TryAcquire(s.ctx)
		return err
	})
	s.check(got.Err())
	s.check(got.Release(s.ctx))
	s.nothingLeft(path, theirs)
}

// cancelled ends the context at every moment of an acquire, of a free lock and of
// one that is held. The acquire returns then, and nothing stays.
func cancelled(s *suite) {
	const steps = 48
	path := s.Path()
	a, b := s.Connect("a"), s.Connect("b")
	mine, theirs := s.lock(a, path), s.rival(b, path)
	for _, free := range []bool{true, false} {
		var h recipes.AnyHold
		if !free {
			h = s.held(theirs)
		}
		for step := range steps {
			limit := time.Duration(step) * s.RoundTrip() / 8
			ctx, cancel := context.WithTimeout(s.ctx, limit)
			got, err := mine.Acquire(ctx)
			cancel()
			var lockErr *recipes.LockError
			switch {
			case err == nil && !free:
				s.Fatalf("held beside another, after %v", limit)
			case err == nil:
				s.check(got.Err())
				s.check(got.Release(s.ctx))
			case got != nil:
				s.Errorf("a hold and an error: %v", err)
			case !errors.Is(err, context.DeadlineExceeded), !errors.As(err, &lockErr), lockErr.Op != "acquire":
				s.Errorf("limit %v: %v", limit, err)
			}
		}
		if h != nil {
			s.check(h.Err())
			s.check(h.Release(s.ctx))
		}
		s.nothingLeft(path, theirs)
	}
}

// release ends a hold once, however often and wherever it is called, and never
// another hold.
func release(s *suite) {
	path := s.Path()
	l := s.lock(s.Connect("a"), path)
	first := s.held(l)
	s.nodes(path, s.kind.Nodes)
	done := make(chan error)
	const callers = 5
	for range callers {
		go func() { done <- first.Release(s.ctx) }()
	}
	for range callers {
		if err := <-done; err != nil {
			s.Error(err)
		}
	}
	s.nodes(path, 0)
	s.want(first.Err(), recipes.ErrReleased)
	s.want(context.Cause(first.Context()), recipes.ErrReleased)
	if errors.Is(first.Err(), recipes.ErrLost) {
		s.Errorf("%v: it was not lost", first.Err())
	}
	second := s.held(l)
	s.check(first.Release(s.ctx))
	s.check(first.Close())
	s.check(second.Err())
	s.nodes(path, s.kind.Nodes)
	if second.FencingToken() <= first.FencingToken() {
		s.Errorf("token %d after %d", second.FencingToken(), first.FencingToken())
	}
	s.check(second.Close())
	s.nothingLeft(path, l)
}

var errWork = errors.New("work failed")

// do runs the work once, while the lock is held, and says how both went.
func do(s *suite) {
	path := s.Path()
	a, b := s.Connect("a"), s.Connect("b")
	l := s.lock(a, path)
	ran := 0
	err := l.Do(s.ctx, func(ctx context.Context, h recipes.AnyHold) error {
		ran++
		s.nodes(path, s.kind.Nodes)
		s.check(ctx.Err())
		s.check(h.Err())
		if h.FencingToken() == 0 || h.LockPath() == "" || h.Deadline().IsZero() {
			s.Errorf("token %d, lock %q, deadline %v", h.FencingToken(), h.LockPath(), h.Deadline())
		}
		return errWork
	})
	if ran != 1 || !errors.Is(err, errWork) || err.Error() != errWork.Error() {
		s.Errorf("ran %d times, %v", ran, err)
	}
	s.nodes(path, 0)
	func() {
		defer func() {
			if p := recover(); p != "oops" {
				s.Errorf("recovered %v", p)
			}
		}()
		_ = l.Do(s.ctx, func(context.Context, recipes.AnyHold) error { panic("oops") })
	}()
	s.nodes(path, 0)
	s.doLoses(path, a, l)

	// The end of the context is told, and does not take the lock away.
	stop := errors.New("stop now")
	ctx, cancel := context.WithCancelCause(s.ctx)
	err = l.Do(ctx, func(ctx context.Context, _ recipes.AnyHold) error {
		cancel(stop)
		<-ctx.Done()
		s.want(context.Cause(ctx), stop)
		s.nodes(path, s.kind.Nodes)
		return ctx.Err()
	})
	if s.want(err, context.Canceled); errors.Is(err, recipes.ErrLost) {
		s.Errorf("the caller's end is told as a loss: %v", err)
	}
	never := func(context.Context, recipes.AnyHold) error { return fmt.Errorf("ran without the lock") }
	s.want(l.Do(ctx, never), context.Canceled)
	h := s.held(s.rival(b, path))
	s.want(l.TryDo(s.ctx, never), recipes.ErrBusy)
	s.check(h.Release(s.ctx))
	s.eventually(func() error { // a server may be behind
		return l.TryDo(s.ctx, func(_ context.Context, h recipes.AnyHold) error { return h.Err() })
	})
	s.nothingLeft(path, l)
}

// doLoses loses the lock of a Do: its error is the loss, and never the
// cancellation by which the work was told.
func (s *suite) doLoses(path string, c *client.Client, l Lock) {
	for _, result := range []error{errWork, nil, context.Canceled, context.DeadlineExceeded} {
		err := l.Do(s.ctx, func(ctx context.Context, _ recipes.AnyHold) error {
			s.Kill(s.session(c))
			select {
			case <-ctx.Done():
				s.want(context.Cause(ctx), recipes.ErrLost)
			case <-s.ctx.Done():
				s.Error("never told")
			}
			return result
		})
		s.want(err, recipes.ErrLost)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("the loss is told as a cancellation: %v", err)
		}
		if errors.Is(result, errWork) {
			s.want(err, errWork)
		}
		s.nodes(path, 0)
	}
}
