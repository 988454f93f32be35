package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/runonce"
)

// Client keeps a session with an ensemble. Create it with [Connect], end it
// with [Client.Close]. It is safe for concurrent use; copies that
// [Client.Namespace] returns share its session and its end.
type Client struct {
	ops
}

// failedConnect is how long a Connect that failed waits for a server to end
// the session it may have, and then for what it started.
const failedConnect = 200 * time.Millisecond

// Connect starts a client for the servers of a connect string,
// "host:port,host:port/chroot" (the port defaults to 2181, the chroot is
// optional and must exist), and waits until one of them has accepted a
// session. It waits no longer than ctx, nor than one session timeout or what
// [WithConnectTimeout] says.
//
// On error nothing is left running, and the error names every server and why
// it was not reached. It matches the error of ctx only if that has ended, and
// [ErrNotConnected] if the time was up without. Ending what was started takes a
// moment, and up to 0.4 s beyond ctx if a server made a session and then went
// silent. The client outlives ctx.
//
// With [WithLazyConnect] it does not wait, and calls check what it would have.
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
	j := newJournal(cfg.logger)
	c := &core{
		cfg:       cfg,
		log:       cfg.logger,
		servers:   newServers(cfg, j),
		journal:   j,
		states:    newStateLog(time.Now()),
		lasting:   newLastingWatches(),
		changed:   make(chan struct{}),
		lacking:   map[feature]bool{},
		closeOnce: runonce.New(),
		idle:      make(chan struct{}),
		quiet:     make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.remover, c.parents, c.teller = newRemover(c), newParents(c), &teller{journal: j}
	if cfg.observer.StateChange != nil {
		first := c.states.newest()
		c.told.Go(func() { c.observeStates(context.WithoutCancel(ctx), first) }) // ends after Closed
	}
	c.told.Go(func() { j.run(c.ctx) })
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
		j.say(slog.LevelDebug, "zookeeper: nodes are created with an open ACL (world:anyone), as Curator does by default",
			"remedy", "pass client.WithAuth, or client.WithDefaultACL for an ACL of your own")
	}
	if cfg.namespace != "" {
		return cl.Namespace(cfg.namespace)
	}
	return cl, nil
}

// ready waits for the first session and checks the chroot, or leaves both to the
// first calls.
func (c *Client) ready(ctx context.Context) error {
	cfg := c.core.cfg
	if cfg.lazy {
		return nil
	}
	c.core.checked.Store(true) // here, and so by no call
	wctx, cancel := context.WithTimeout(ctx, cfg.connectTimeout)
	defer cancel()
	// The caller asks an error whether its own context has ended, not ours.
	late := func() bool { return wctx.Err() != nil && ctx.Err() == nil }
	s, err := c.core.await(wctx, nil, nil)
	switch {
	case err != nil && late():
		return fmt.Errorf("client: connect: %w: no session within %v: %s", trimmed{ErrNotConnected}, cfg.connectTimeout, c.core.servers.report())
	case err != nil:
		return fmt.Errorf("client: connect: %w", trimmed{err})
	}
	if err := cfg.lease.check(s.link.Timeout()); err != nil {
		return fmt.Errorf("client: connect: %w", trimmed{err})
	}
	if cfg.chroot == "" && len(cfg.auth) == 0 {
		return nil
	}
	// Any answer also shows that the credentials, sent before the question,
	// were not refused. Since 3.8.4 and 3.9.2 exists takes READ
	// (ZOOKEEPER-2590): that a server refuses it for lack of rights, and not for
	// lack of a node, shows that the node is there.
	ok, _, err := c.Exists(wctx, "/")
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return nil
	case errors.Is(err, ErrAuthFailed):
		return fmt.Errorf("client: connect: %w", trimmed{err})
	case err != nil && late():
		return fmt.Errorf("client: connect: %w: there was a session, but its server has not answered within %v", trimmed{ErrNotConnected}, cfg.connectTimeout)
	case err != nil:
		return fmt.Errorf("client: connect: look up the chroot: %w", trimmed{err})
	case !ok:
		return noChroot(cfg.chroot)
	default:
		return nil
	}
}

// trimmed drops the package prefix of an error that is wrapped once more.
type trimmed struct{ error }

func (t trimmed) Error() string { return strings.TrimPrefix(t.error.Error(), "client: ") }
func (t trimmed) Unwrap() error { return t.error }

// defaultData is inside.Functions.DefaultData. The address is not known before the
// first connection of a client [WithLazyConnect].
func defaultData(c *Client) []byte {
	if c.core.cfg.hasDefaultData {
		return slices.Clone(c.core.cfg.defaultData)
	}
	c.core.mu.Lock()
	local := c.core.local
	c.core.mu.Unlock()
	tcp, isTCP := local.(*net.TCPAddr)
	switch {
	case c.core.cfg.name != "" && isTCP:
		return fmt.Appendf(nil, "%s pid=%d client=%s", tcp.IP, os.Getpid(), c.core.cfg.name)
	case c.core.cfg.name != "":
		return fmt.Appendf(nil, "? pid=%d client=%s", os.Getpid(), c.core.cfg.name) // a dialer of its own kind
	case isTCP:
		return []byte(tcp.IP.String())
	default:
		return nil
	}
}

// Conn returns the zk.Conn of the present session, for what this package does
// not offer, or nil while there is none. It is replaced with every session
// and its session never changes. Its watches are not used by this client, but the
// servers keep them together: on a path that this client watches too, a removal of
// the client's watch ([OneShotWatch.Stop], [Changes.Close]) takes the other along, and
// before ZooKeeper 3.9 the other replaces a persistent one. Its
// AddAuth can wedge it for good (use [WithAuth]) and its Close ends the
// session. Paths are the server's: neither chroot nor namespace applies.
//
// What is called on it goes through go-zookeeper's own queue and codec: a call
// knows no context, reads its arguments after it has returned, loses the
// connection by an answer above [WithMaxReply], and a malformed answer of a
// server can end the process.
func (c *Client) Conn() *zk.Conn {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if _, accepted := c.core.live(); !accepted {
		return nil
	}
	return c.core.current.conn
}

// debugLogger passes what go-zookeeper says to the debug level: whatever
// matters of it is a state change or the error of an operation.
type debugLogger struct{ journal *journal }

func (d debugLogger) Printf(format string, args ...any) {
	d.journal.say(slog.LevelDebug, "zookeeper: "+fmt.Sprintf(format, args...))
}
