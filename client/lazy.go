package client

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// WithLazyConnect makes [Connect] return at once with a client that is [Connecting],
// like Curator's start. It is for a service that starts before its servers, or
// without them. Connect refuses only wrong options and connect strings.
// [WithConnectTimeout] has no effect then.
//
// Calls wait for a server until their context ends, or until a retry policy that gives up
// by itself does. They refuse what Connect would have refused, with nothing sent, until
// the cause is gone. That is a chroot that does not exist ([ErrNoChroot]), or credentials
// that the servers refuse ([ErrAuthFailed]). It is also a granted session timeout too
// short for the [LeasePolicy] ([ErrUnsafeTimeout]). Meanwhile the client logs why the
// servers are not reached; the errors of calls whose context ends say it too.
func WithLazyConnect() Option {
	return optionFunc(func(c *config) error { c.lazy = true; return nil })
}

// check does for a lazy client what Connect does for others. Each call checks until
// one call has found nothing wrong.
func (c *core) check(ctx context.Context, s *sessionState) error {
	if c.checked.Load() {
		return nil
	}
	if err := c.cfg.lease.lease().Check(s.link.Timeout()); err != nil {
		return &fault{err, OutcomeNeverSent}
	}
	if c.cfg.chroot != "" {
		var ft *fault
		switch err := c.lookUp(ctx, s); {
		case errors.Is(err, zk.ErrNoAuth): // as in ready
		case errors.As(err, &ft) && ft.outcome == OutcomeUnknown: // the outcome of the question; the call itself was not sent
			return &fault{ft.err, OutcomeNeverSent}
		case err != nil:
			return err
		}
	}
	c.checked.Store(true)
	return nil
}

// lookUp asks whether the chroot exists.
func (c *core) lookUp(ctx context.Context, s *sessionState) error {
	x := asked(wire.OpExists, cmp.Or(c.cfg.chroot, "/"))
	if err := s.read(ctx, x); err != nil {
		return err
	}
	if stat(x) == nil {
		return &fault{noChroot(c.cfg.chroot), OutcomeNeverSent}
	}
	return nil
}
