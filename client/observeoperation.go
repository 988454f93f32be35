package client

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// observation is one operation, as [Observer.Operation] hears of it. It belongs to
// the goroutine of the operation. A nil observation notes nothing.
type observation struct {
	result OperationResult
	begun  time.Time
	hook   func(OperationResult)
}

type observationKey struct{}

// observe tells the observer, if it has a hook, that an operation begins. The
// operation goes on with the context that observe returns.
func (c *core) observe(ctx context.Context, op, path string) (context.Context, *observation) {
	if c.cfg.observer.Operation == nil {
		return ctx, nil
	}
	seen := &observation{begun: time.Now(), result: OperationResult{Op: op, Path: path}}
	within, hook := c.cfg.observer.Operation(ctx, OperationInfo{Op: op, Path: path})
	if within == nil {
		within = ctx
	}
	seen.hook = hook
	return context.WithValue(within, observationKey{}, seen), seen
}

// attempt notes a try in s.
func (n *observation) attempt(s *sessionState) {
	if n != nil {
		n.result.Attempts++
		n.result.Session = s.link.SessionID()
	}
}

// end tells the observer that the operation has ended, and returns err.
func (n *observation) end(err error) error {
	if n == nil || n.hook == nil {
		return err
	}
	var failed *OpError
	switch {
	case err == nil:
		n.result.Outcome = OutcomeDone
	case errors.As(err, &failed):
		n.result.Outcome = failed.Outcome
	}
	n.result.Duration, n.result.Err = time.Since(n.begun), err
	n.hook(n.result)
	return err
}

// exchange sends requests, in one write, waits for their answers, and counts the
// bytes of both for the operation that ctx belongs to.
func (s *sessionState) exchange(ctx context.Context, xs ...*wire.Exchange) error {
	err := s.link.Do(ctx, xs...)
	if s.core.cfg.observer.Operation == nil {
		return err
	}
	if seen, ok := ctx.Value(observationKey{}).(*observation); ok {
		for _, x := range xs {
			sent, received := x.Bytes()
			seen.result.Sent += int64(sent)
			seen.result.Received += int64(received)
		}
	}
	return err
}

// invalid is the error of an operation whose arguments are refused. The observer is
// told of it as of any other.
func (o *ops) invalid(ctx context.Context, op, path string, err error) error {
	_, seen := o.core.observe(ctx, op, path)
	return seen.end(&OpError{Op: op, Path: path, Outcome: OutcomeNeverSent, Err: err})
}
