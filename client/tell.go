package client

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/client/internal/duties"
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
		n.result.Session = s.ID()
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

// count counts the bytes of requests and answers for the operation that ctx belongs to.
func count(ctx context.Context, xs []*wire.Exchange) {
	if seen, ok := ctx.Value(observationKey{}).(*observation); ok {
		for _, x := range xs {
			sent, received := x.Bytes()
			seen.result.Sent += int64(sent)
			seen.result.Received += int64(received)
		}
	}
}

// invalid is the error of an operation whose arguments are refused. The observer is
// told of it as of any other.
func (o *ops) invalid(ctx context.Context, op, path string, err error) error {
	_, seen := o.core.observe(ctx, op, path)
	return seen.end(&OpError{Op: op, Path: path, Outcome: OutcomeNeverSent, Err: err})
}

// observeStates feeds StateChange; it owns the goroutine it runs on and ends
// after Closed.
func (c *core) observeStates(ctx context.Context, first *stateEntry) {
	for ch := range c.states.from(ctx, first) {
		c.cfg.observer.StateChange(ch)
	}
}

// tellRemoval tells the observer that m is in the given state.
func (c *core) tellRemoval(m *duties.Removal, state duties.State, err error) {
	hook := c.cfg.observer.Removal
	if hook == nil {
		return
	}
	info := RemovalInfo{Path: m.What, State: RemovalState(state), Begun: m.Begun, Tries: m.Tries, Err: err}
	c.teller.Tell(func() { hook(info) })
}

// dialed returns the function that tells the observer of dials, nil without a hook.
func (c *core) dialed() func(wire.Dialed) {
	hook := c.cfg.observer.Dial
	if hook == nil {
		return nil
	}
	return func(d wire.Dialed) {
		info := DialInfo{
			Server: d.Server, Begun: d.Begun, Duration: d.Took,
			Transport: d.Transport, TLS: d.TLS, Handshake: d.Handshake,
			Session: d.SessionID, Restored: d.Reattached, Err: d.Err,
		}
		c.teller.Tell(func() { hook(info) })
	}
}
