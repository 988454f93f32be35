package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// hangUps bounds the tries in a row that end because a server may have hung up on their size. Each costs all that the client does its
// connection.
const hangUps = 3

// effect says what an operation may do to the tree. That decides what the client may
// do after a try whose outcome is unknown.
type effect int

const (
	reads      effect = iota // nothing: repeat
	presents                 // no node, only what the connection is: repeat
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
	ctx, seen := o.core.cfg.observer.observe(ctx, op, path)
	return seen.end(o.perform(ctx, seen, op, path, effect, f))
}

// perform is do for an operation of which the observer has been told.
func (o *ops) perform(ctx context.Context, seen *observation, op, path string, effect effect, f func(context.Context, try) error) error {
	if o.core.cfg.readOnly && effect != reads && effect != presents {
		return &OpError{Op: op, Path: path, Outcome: OutcomeNeverSent, Err: ErrReadOnly}
	}
	unknown := false // some try may have been applied
	suspects := 0    // tries in a row for whose size the server hung up, perhaps
	known := fate.NeverSent
	patience := o.patience()
	err := retry.Do(ctx, patience.policy, func(ctx context.Context) error {
		s, err := o.core.await(ctx, o.session, &patience)
		if err != nil {
			known = fate.NeverSent
			return retry.Permanent(err)
		}
		seen.tried(s.ID())
		if err = o.core.check(ctx, s); err == nil {
			err = f(ctx, try{s, unknown})
		}
		if err == nil {
			return nil
		}
		// While no server has said what it is, one may have hung up because it wants a login.
		if known = fate.Of(err); known == fate.Unknown && effect == once && s.Product() == "" {
			err = s.withReason(ctx, err)
		}
		unknown = unknown || known == fate.Unknown
		if over := s.Over(); o.session != nil && over != nil && known != fate.Refused && ctx.Err() == nil {
			// The session may have ended only after the try had failed. The error of
			// the try does not say so then.
			return retry.Permanent(&fate.TryError{Err: over, Outcome: known})
		}
		if suspects++; !fate.IsHangUp(err) {
			suspects = 0
		}
		if suspects == hangUps {
			return retry.Permanent(fmt.Errorf("given up, as the server hung up on %d tries in a row: %w", hangUps, err))
		}
		if o.final(err, known, effect) {
			return retry.Permanent(err)
		}
		return err
	}, o.retryHook(ctx, op, path)...)
	if err != nil {
		return &OpError{Op: op, Path: path, Outcome: Outcome(known).of(effect, unknown), Err: err, identities: o.core.cfg.identities()}
	}
	return nil
}

// check does for a lazy client what Connect does for others. Each call checks until
// one call has found nothing wrong.
func (c *core) check(ctx context.Context, s *sessionState) error {
	if c.checked.Load() {
		return nil
	}
	if err := c.cfg.lease.lease().Check(s.Link().Timeout()); err != nil {
		return fate.Unsent(err)
	}
	if c.cfg.chroot != "" {
		switch err := c.lookUp(ctx, s); {
		case errors.Is(err, zk.ErrNoAuth): // as in ready
		case fate.Is(err, fate.Unknown): // the outcome of the question; the call itself was not sent
			return fate.Unsent(errors.Unwrap(err))
		case err != nil:
			return err
		}
	}
	c.checked.Store(true)
	return nil
}

// lookUp asks whether the chroot exists.
func (c *core) lookUp(ctx context.Context, s *sessionState) error {
	x := session.Ask(wire.OpExists, cmp.Or(c.cfg.chroot, "/"))
	if err := s.Read(ctx, x); err != nil {
		return err
	}
	if stat(x) == nil {
		return fate.Unsent(noChroot(c.cfg.chroot))
	}
	return nil
}

// invalid is the error of an operation whose arguments are refused. The observer is
// told of it as of any other.
func (o *ops) invalid(ctx context.Context, op, path string, err error) error {
	_, seen := o.core.cfg.observer.observe(ctx, op, path)
	return seen.end(&OpError{Op: op, Path: path, Outcome: OutcomeNeverSent, Err: err})
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
func (o *ops) final(err error, known fate.Outcome, effect effect) bool {
	switch {
	case hopeless(err), errors.Is(err, errMoved):
		return true
	case known == fate.Refused:
		return !fate.Passing(err)
	default:
		return known == fate.Unknown && effect == once
	}
}

// patience is that of one call. A pause is capped, so that a session survives it.
func (o *ops) patience() patience {
	p := o.core.cfg.policy
	if o.policy != nil {
		p = *o.policy
	}
	return patience{policy: p.WithCap(o.core.servers.Timeout() / 3)}
}
