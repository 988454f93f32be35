package client

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/client/internal/aside"
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
func (o *Observer) observe(ctx context.Context, op, path string) (context.Context, *observation) {
	if o.Operation == nil {
		return ctx, nil
	}
	seen := &observation{begun: time.Now(), result: OperationResult{Op: op, Path: path}}
	within, hook := o.Operation(ctx, OperationInfo{Op: op, Path: path})
	if within == nil {
		within = ctx
	}
	seen.hook = hook
	return context.WithValue(within, observationKey{}, seen), seen
}

// tried notes a try in a session.
func (n *observation) tried(session int64) {
	if n != nil {
		n.result.Attempts++
		n.result.Session = session
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

// observeStates feeds StateChange; it owns the goroutine it runs on and ends
// after Closed.
func (o *Observer) observeStates(ctx context.Context, states *stateLog, first *stateEntry) {
	for ch := range states.from(ctx, first) {
		o.StateChange(ch)
	}
}

// tellRemoval tells the observer that m is in the given state.
func (o *Observer) tellRemoval(t *aside.Teller, m *duties.Removal, state duties.State, err error) {
	hook := o.Removal
	if hook == nil {
		return
	}
	info := RemovalInfo{Path: m.What, State: RemovalState(state), Begun: m.Begun, Tries: m.Tries, Err: err}
	t.Tell(func() { hook(info) })
}

// tellHeartbeat tells the observer of a heartbeat.
func (o *Observer) tellHeartbeat(t *aside.Teller, info HeartbeatInfo) {
	if hook := o.Heartbeat; hook != nil {
		t.Tell(func() { hook(info) })
	}
}

// dialed returns the function that tells the observer of dials, nil without a hook.
func (o *Observer) dialed(t *aside.Teller) func(wire.Dialed) {
	hook := o.Dial
	if hook == nil {
		return nil
	}
	return func(d wire.Dialed) {
		info := DialInfo{
			Server: d.Server, Begun: d.Begun, Duration: d.Took,
			Transport: d.Transport, TLS: d.TLS, Handshake: d.Handshake,
			Session: d.SessionID, Restored: d.Reattached, Err: d.Err,
		}
		t.Tell(func() { hook(info) })
	}
}
