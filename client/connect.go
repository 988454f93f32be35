package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/watches"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/runonce"
)

// failedConnect is how long a Connect that failed waits for a server to end the
// session that it may have. It then waits as long again for the goroutines of the
// client.
const failedConnect = 200 * time.Millisecond

// Connect starts a client for the servers of a connect string,
// "host:port,host:port/chroot", and waits until one of them has accepted a session.
// The port defaults to 2181, and a host stands for a server at each of its addresses.
// The chroot is optional and must exist. Connect waits until ctx ends, at most for
// one session timeout, or for the time given to [WithConnectTimeout].
//
// On error no client is left, and the error names every server and why it was not
// reached. The error matches that of ctx only if ctx has ended. It matches
// [ErrNotConnected] if the time was up before that. To end what was started takes a
// moment. It takes up to 0.4 s beyond ctx if a server made a session and then went
// silent. The client outlives ctx.
//
// With [WithLazyConnect] Connect does not wait, and the first calls check what
// Connect would have checked.
//
// A nil ctx panics, here and in every call that takes one.
func Connect(ctx context.Context, connectString string, opts ...Option) (*Client, error) {
	ctxerr.Require(ctx)
	cfg, err := newConfig(connectString, opts)
	if err != nil {
		return nil, err
	}
	if err := ctxerr.Ended(ctx); err != nil {
		return nil, fmt.Errorf("client: connect: %w", err)
	}
	j := aside.NewJournal(cfg.logger)
	c := &core{
		cfg:       cfg,
		log:       cfg.logger,
		servers:   where.New(cfg.where(), j),
		journal:   j,
		states:    newStateLog(time.Now()),
		changed:   make(chan struct{}),
		closeOnce: runonce.New(),
		idle:      make(chan struct{}),
		quiet:     make(chan struct{}),
	}
	own := cfg.dataOf(nil)
	c.ownData.Store(&own)
	c.local.Store(new(net.Addr))
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.watches = watches.New(c.awaitSession)
	c.teller = aside.NewTeller(j)
	c.owe()
	if cfg.observer.StateChange != nil {
		first := c.states.newest()
		c.told.Go(func() { cfg.observer.observeStates(context.WithoutCancel(ctx), c.states, first) }) // ends after Closed
	}
	c.told.Go(func() { j.Run(c.ctx) })
	c.wg.Go(c.supervise)
	if cfg.tracking {
		c.wg.Go(c.trackEnsemble)
	}
	cl := &Client{ops{core: c, prefix: cfg.chroot}}
	c.root = cl
	if err := cl.ready(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), failedConnect)
		defer cancel()
		_ = cl.CloseContext(stop) // ends the session, if there is one, on the server
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), failedConnect)
		defer cancel()
		select {
		case <-c.quiet:
		case <-rest.Done(): // a hook or log handler that does not return
		}
		return nil, err
	}
	if cfg.openACL {
		j.Say(slog.LevelDebug, "zookeeper: nodes are created with an open ACL (world:anyone), as Curator does by default",
			"remedy", "pass client.WithAuth, or client.WithDefaultACL for an ACL of your own")
	}
	if cfg.namespace != "" {
		return cl.Namespace(cfg.namespace)
	}
	return cl, nil
}

// ready waits for the first session and checks the chroot. A lazy client leaves both
// to the first calls.
func (c *Client) ready(ctx context.Context) error {
	cfg := c.core.cfg
	if cfg.lazy {
		return nil
	}
	c.core.checked.Store(true) // done here, and so by no call
	wctx, cancel := context.WithTimeout(ctx, cfg.connectTimeout)
	defer cancel()
	// An error matches that of ctx only if the caller's own context has ended.
	late := func() bool { return wctx.Err() != nil && ctx.Err() == nil }
	s, err := c.core.await(wctx, nil, nil)
	switch {
	case err != nil && late():
		return fmt.Errorf("client: connect: %w: no session within %v: %s", fate.Trimmed(ErrNotConnected), cfg.connectTimeout, c.core.servers.Report())
	case err != nil:
		return fmt.Errorf("client: connect: %w", fate.Trimmed(err))
	}
	if err := cfg.lease.lease().Check(s.Link().Timeout()); err != nil {
		return fmt.Errorf("client: connect: %w", fate.Trimmed(err))
	}
	if cfg.chroot == "" && len(cfg.auth.all()) == 0 {
		return nil
	}
	// Any answer also shows that the servers accept the credentials, which were sent
	// before the question. Since 3.8.4 and 3.9.2 exists takes READ (ZOOKEEPER-2590).
	// A refusal for lack of rights, and not for lack of a node, shows that the node
	// is there.
	err = c.do(wctx, "exists", "/", reads, func(ctx context.Context, t try) error { return c.core.lookUp(ctx, t.s) })
	switch {
	case err == nil, errors.Is(err, zk.ErrNoAuth):
		return nil
	case errors.Is(err, ErrNoChroot):
		return noChroot(cfg.chroot)
	case errors.Is(err, ErrAuthFailed):
		return fmt.Errorf("client: connect: %w", fate.Trimmed(err))
	case late():
		return fmt.Errorf("client: connect: %w: there was a session, but its server has not answered within %v", fate.Trimmed(ErrNotConnected), cfg.connectTimeout)
	case cfg.chroot == "":
		return fmt.Errorf("client: connect: %w", fate.Trimmed(err))
	default:
		return fmt.Errorf("client: connect: look up the chroot: %w", fate.Trimmed(err))
	}
}
