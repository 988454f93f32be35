package client

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/retry"
)

// fault is the error of one try with what is known of its fate.
type fault struct {
	err     error
	outcome Outcome
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// pending is a call that blocks inside go-zookeeper, which knows no contexts.
// It ends by itself with its reply, its connection or its session.
type pending[T any] struct {
	s    *session
	f    func(*zk.Conn) (T, error)
	done chan struct{} // closed when v and err are set
	v    T
	err  error // nil or *fault
}

// start runs f on a goroutine of the session.
func start[T any](s *session, f func(*zk.Conn) (T, error)) *pending[T] {
	p := &pending[T]{s: s, f: f, done: make(chan struct{})}
	if !s.work(p) {
		p.err = &fault{s.over(), OutcomeNeverSent}
		close(p.done)
	}
	return p
}

func (p *pending[T]) run() {
	v, err := p.f(p.s.conn)
	if err != nil {
		p.err = p.s.fault(err)
		return
	}
	p.v = v
}

func (p *pending[T]) tell() { close(p.done) }

// wait returns what the call did, or a fault of unknown outcome when ctx ends
// first; the call then goes on by itself.
func (p *pending[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-p.done:
		return p.v, p.err
	case <-ctx.Done():
		var zero T
		return zero, &fault{ctxerr.Ended(ctx), OutcomeUnknown}
	}
}

// call is start and wait.
func call[T any](ctx context.Context, s *session, f func(*zk.Conn) (T, error)) (T, error) {
	if err := ctxerr.Ended(ctx); err != nil {
		var zero T
		return zero, &fault{err, OutcomeNeverSent}
	}
	return start(s, f).wait(ctx)
}

// fault classifies an error of go-zookeeper.
func (s *session) fault(err error) *fault {
	fate, err := outcome(err)
	if errors.Is(err, zk.ErrSessionExpired) {
		// The server is closing the session and has not run the request: of
		// use in the next session, if the caller does not insist on this one.
		s.link.End(err)
		fate = OutcomeNeverSent
	}
	if over := s.over(); over != nil && fate != OutcomeRefused {
		err = over
	}
	return &fault{err, fate}
}

// effect says what an operation may do to the tree, and so what may be done
// after a try of which the outcome is unknown.
type effect int

const (
	reads      effect = iota // nothing: repeat
	repeatable               // doing it twice is as good as once: repeat
	once                     // doing it twice shows: report the unknown outcome
	resolving                // each try finds out first what became of the last: repeat
)

// try is one attempt of an operation.
type try struct {
	s     *session
	again bool // an earlier try may have been applied
}

// do runs f until it succeeds, is refused, or may not be repeated, by the
// client's retry policy and within ctx, each time on a session that is
// connected.
func (o *ops) do(ctx context.Context, op, path string, effect effect, f func(context.Context, try) error) error {
	begun := time.Now()
	again := false // some try may have been applied
	fate := OutcomeNeverSent
	err := retry.Do(ctx, o.core.policy(), func(ctx context.Context) error {
		s, err := o.core.await(ctx, o.bound)
		if err != nil {
			return backoff.Permanent(err)
		}
		err = f(ctx, try{s, again})
		if err == nil {
			return nil
		}
		fate = OutcomeNeverSent
		var ft *fault
		if errors.As(err, &ft) {
			fate = ft.outcome
		}
		again = again || fate == OutcomeUnknown
		if over := s.over(); o.bound != nil && over != nil && fate != OutcomeRefused && ctx.Err() == nil {
			// Maybe only since the try failed, which then does not say so.
			return backoff.Permanent(&fault{over, fate})
		}
		if o.final(ctx, err, fate, effect) {
			return backoff.Permanent(err)
		}
		return err
	}, o.told(op, path)...)
	if err != nil {
		switch {
		case effect == reads && fate != OutcomeRefused:
			fate = OutcomeNeverSent // nothing to be in doubt about
		case again && effect != resolving:
			fate = OutcomeUnknown // an earlier try, whatever was said to the last
		}
		err = &OpError{Op: op, Path: path, Outcome: fate, Err: err}
	}
	if hook := o.core.cfg.observer.Operation; hook != nil {
		hook(OperationInfo{Op: op, Path: path, Duration: time.Since(begun), Err: err})
	}
	return err
}

// told has the observer told of retries, if it asked for that.
func (o *ops) told(op, path string) []retry.Option {
	hook := o.core.cfg.observer.Retry
	if hook == nil {
		return nil
	}
	return []retry.Option{retry.OnRetry(func(a retry.Attempt) {
		hook(RetryInfo{Op: op, Path: path, Attempt: a})
	})}
}

// final reports whether trying again is pointless or unsafe.
func (o *ops) final(ctx context.Context, err error, fate Outcome, effect effect) bool {
	switch {
	case ctx.Err() != nil, errors.Is(err, ErrClosed), errors.Is(err, ErrReplyTooLarge):
		return true
	case fate == OutcomeRefused:
		return !retryable(err)
	case fate == OutcomeUnknown:
		return effect == once
	default:
		return errors.Is(err, ErrInvalidPath) || errors.Is(err, zk.ErrInvalidFlags) ||
			errors.Is(err, ErrTooLarge)
	}
}
