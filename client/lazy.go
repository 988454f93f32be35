package client

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// WithLazyConnect makes [Connect] return at once with a client that is
// [Connecting], like Curator's start: for a service that starts before, or
// without, its servers. Connect refuses only wrong options and connect strings.
// [WithConnectTimeout] has no effect then.
//
// Calls wait for a server until their context ends, or until a retry policy that
// gives up by itself does. What Connect would have refused they refuse, with
// nothing sent, until the cause is gone: a chroot that does not exist with [ErrNoChroot], credentials that the
// servers refuse with [ErrAuthFailed], a granted session timeout that is too short
// for the [LeasePolicy] with [ErrUnsafeTimeout]. What keeps the servers from being
// reached is logged meanwhile, and told by the errors of calls whose context ends.
func WithLazyConnect() Option {
	return optionFunc(func(c *config) error { c.lazy = true; return nil })
}

// check is what Connect checks, for a client that has not waited for it. Each
// call asks until one has found nothing wrong.
func (c *core) check(ctx context.Context, s *sessionState) error {
	if c.checked.Load() {
		return nil
	}
	if err := c.cfg.lease.check(s.link.Timeout()); err != nil {
		return &fault{err, OutcomeNeverSent}
	}
	if c.cfg.chroot != "" {
		x := asked(wire.OpExists, c.cfg.chroot)
		err := s.read(ctx, x)
		switch {
		case errors.Is(err, zk.ErrNoAuth): // as in ready
		case err != nil:
			var ft *fault
			if errors.As(err, &ft) && ft.outcome == OutcomeUnknown { // of the question; the call itself was not sent
				return &fault{ft.err, OutcomeNeverSent}
			}
			return err
		case stat(x) == nil:
			return &fault{noChroot(c.cfg.chroot), OutcomeNeverSent}
		}
	}
	c.checked.Store(true)
	return nil
}
