package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// fault is the error of one try with what is known of its fate.
type fault struct {
	err     error
	outcome Outcome
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// fateOf is the outcome of a try that ended with err. An error that is no fault says
// that nothing was sent.
func fateOf(err error) Outcome {
	var ft *fault
	if errors.As(err, &ft) {
		return ft.outcome
	}
	return OutcomeNeverSent
}

// call sends requests, in one write, and waits for their answers. It returns nil
// or a *fault that says what became of the first of them.
func (s *sessionState) call(ctx context.Context, xs ...*wire.Exchange) error {
	return s.outcome(ctx, xs[0], s.exchange(ctx, xs...))
}

// outcome is what became of x in a Do that ended with err.
func (s *sessionState) outcome(ctx context.Context, x *wire.Exchange, err error) error {
	if x.Answered() {
		return s.answer(x)
	}
	if over := s.over(); over != nil && ctx.Err() == nil {
		err = over
	}
	if x.Sent() {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: no answer from %s yet", err, s.core.serverOf(s))
		}
		if x.Suspect(err) {
			err = &hangUpError{err}
		}
		return &fault{err, OutcomeUnknown}
	}
	return &fault{err, OutcomeNeverSent}
}

// hangUpError is the error of a request because of whose size the server may have hung up.
type hangUpError struct{ error }

func (h *hangUpError) Unwrap() error { return h.error }

// hangUps bounds the tries in a row that end so. Each costs all that the client does its
// connection.
const hangUps = 3

// oversized reports whether err is such a hang-up.
func oversized(err error) bool {
	var h *hangUpError
	return errors.As(err, &h)
}

// answer is the error that the answer to x means, nil for success.
func (s *sessionState) answer(x *wire.Exchange) error {
	if err := x.Err(); err != nil {
		return &fault{err, OutcomeUnknown}
	}
	err := codeError(x.Reply.Code)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrSessionExpired):
		// The server is closing the session and has not run the request. The request
		// can succeed in the next session, unless the caller insists on this one.
		return &fault{s.over(), OutcomeNeverSent}
	case errors.Is(err, codeConnectionLoss), errors.Is(err, codeOperationTimeout), errors.Is(err, codeRequestTimeout),
		errors.Is(err, ErrReplyTooLarge):
		// The server drops a request that it could not decide in time. Nothing tells
		// whether the request was applied.
		return &fault{err, OutcomeUnknown}
	default:
		return &fault{err, OutcomeRefused}
	}
}

// read is call for a request that changes nothing. To [wire.OpExists], a missing node
// is an answer and no error.
func (s *sessionState) read(ctx context.Context, x *wire.Exchange) error {
	err := s.call(ctx, x)
	if x.Request.Op == wire.OpExists && errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// asked is an exchange that reads the node at a full path.
func asked(op wire.Op, full string) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: op, Path: full}}
}

// effect says what an operation may do to the tree. That decides what the client may
// do after a try whose outcome is unknown.
type effect int

const (
	reads      effect = iota // nothing: repeat
	repeatable               // doing it twice is as good as once: repeat
	once                     // doing it twice shows: report the unknown outcome
	resolved                 // each try first finds out what became of the one before: repeat
)

// try is one attempt of an operation.
type try struct {
	s       *sessionState
	unknown bool // an earlier try may have been applied
}

// do runs f until it succeeds, is refused, or may not be repeated. It follows the
// client's retry policy and ends with ctx. Each try has a session that is connected.
func (o *ops) do(ctx context.Context, op, path string, effect effect, f func(context.Context, try) error) error {
	ctxerr.Require(ctx)
	ctx, seen := o.core.observe(ctx, op, path)
	return seen.end(o.perform(ctx, seen, op, path, effect, f))
}

// perform is do for an operation of which the observer has been told.
func (o *ops) perform(ctx context.Context, seen *observation, op, path string, effect effect, f func(context.Context, try) error) error {
	unknown := false // some try may have been applied
	suspects := 0    // tries in a row that were oversized, perhaps
	fate := OutcomeNeverSent
	patience := o.patience()
	err := retry.Do(ctx, patience.policy, func(ctx context.Context) error {
		s, err := o.core.await(ctx, o.session, &patience)
		if err != nil {
			fate = OutcomeNeverSent
			return retry.Permanent(err)
		}
		seen.attempt(s)
		if err = o.core.check(ctx, s); err == nil {
			err = f(ctx, try{s, unknown})
		}
		if err == nil {
			return nil
		}
		fate = fateOf(err)
		unknown = unknown || fate == OutcomeUnknown
		if over := s.over(); o.session != nil && over != nil && fate != OutcomeRefused && ctx.Err() == nil {
			// The session may have ended only after the try had failed. The error of
			// the try does not say so then.
			return retry.Permanent(&fault{over, fate})
		}
		if suspects++; !oversized(err) {
			suspects = 0
		}
		if suspects == hangUps {
			return retry.Permanent(fmt.Errorf("given up, as the server hung up on %d tries in a row: %w", hangUps, err))
		}
		if o.final(err, fate, effect) {
			return retry.Permanent(err)
		}
		return err
	}, o.retryHook(ctx, op, path)...)
	if err != nil {
		return &OpError{Op: op, Path: path, Outcome: fate.of(effect, unknown), Err: err, identities: o.core.cfg.identities()}
	}
	return nil
}

// of is the outcome of an operation whose last try had the outcome o. unknown says
// that an earlier try may have been applied.
func (o Outcome) of(effect effect, unknown bool) Outcome {
	switch {
	case effect == reads && o != OutcomeRefused && unknown:
		return OutcomeUnchanged
	case effect != reads && effect != resolved && unknown:
		return OutcomeUnknown // whatever the server said to the last try
	default:
		return o
	}
}

// retryHook is the option that tells the observer of retries, if there is a hook for
// them.
func (o *ops) retryHook(ctx context.Context, op, path string) []retry.Option {
	hook := o.core.cfg.observer.Retry
	if hook == nil {
		return nil
	}
	return []retry.Option{retry.OnRetry(func(a retry.Attempt) {
		hook(ctx, RetryInfo{Op: op, Path: path, Attempt: a})
	})}
}

// final reports whether trying again is pointless or unsafe.
func (o *ops) final(err error, fate Outcome, effect effect) bool {
	switch {
	case hopeless(err), errors.Is(err, errMoved):
		return true
	case fate == OutcomeRefused:
		return !passing(err)
	default:
		return fate == OutcomeUnknown && effect == once
	}
}
