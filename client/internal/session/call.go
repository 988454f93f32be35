package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/internal/wire"
)

// Do sends requests, in one write, and waits for their answers within ctx. No error of Do
// says that the session is over: Outcome does.
func (s *Session) Do(ctx context.Context, xs ...*wire.Exchange) error {
	err := s.link.Do(ctx, xs...)
	if s.cfg.Exchanged != nil {
		s.cfg.Exchanged(ctx, xs)
	}
	return err
}

// Call sends requests, in one write, and waits for their answers. It returns nil
// or a [*fate.TryError] that says what became of the first of them.
func (s *Session) Call(ctx context.Context, xs ...*wire.Exchange) error {
	return s.Outcome(ctx, xs[0], s.Do(ctx, xs...))
}

// Outcome is what became of x in a Do that ended with err.
func (s *Session) Outcome(ctx context.Context, x *wire.Exchange, err error) error {
	if x.Answered() {
		return s.Answer(x)
	}
	if over := s.Over(); over != nil && ctx.Err() == nil {
		err = over
	}
	if !x.Sent() {
		return fate.Unsent(err)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: no answer from %s yet", err, cmp.Or(s.link.Server(), "the server"))
	}
	if x.Suspect(err) { // the server may have hung up on the size of x
		err = fate.HungUp(err)
	}
	return fate.Unanswered(err)
}

// Answer is the error that the answer to x means, nil for success.
func (s *Session) Answer(x *wire.Exchange) error {
	if err := x.Err(); err != nil {
		return fate.Unanswered(err)
	}
	err := fate.OfCode(x.Reply.Code)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrSessionExpired):
		// The server is closing the session and has not run the request. The request
		// can succeed in the next session, unless the caller insists on this one.
		return fate.Unsent(cmp.Or(s.Over(), err))
	case errors.Is(err, fate.ConnectionLoss), errors.Is(err, fate.OperationTimeout), errors.Is(err, fate.RequestTimeout),
		errors.Is(err, fate.ErrReplyTooLarge):
		// The server drops a request that it could not decide in time. Nothing tells
		// whether the request was applied.
		return fate.Unanswered(err)
	default:
		return fate.Refusal(err)
	}
}

// Read is Call for a request that changes nothing. To [wire.OpExists], a missing node
// is an answer and no error.
func (s *Session) Read(ctx context.Context, x *wire.Exchange) error {
	err := s.Call(ctx, x)
	if x.Request.Op == wire.OpExists && errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// Ask is an exchange that reads the node at a full path.
func Ask(op wire.Op, full string) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: op, Path: full}}
}
