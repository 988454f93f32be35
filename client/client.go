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
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/runonce"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// Client keeps a session with an ensemble. Create it with [Connect], end it
// with [Client.Close]. It is safe for concurrent use; copies that
// [Client.Namespace] returns share its session and its end.
type Client struct {
	ops
}

// core is what all namespaces of a client share. Its supervisor goroutine
// starts a session, waits for its end and starts the next.
type core struct {
	cfg     *config
	log     *slog.Logger
	servers *servers
	states  *stateLog
	journal *journal
	remover *remover
	root    *Client // the client of the connect string, without a namespace

	ctx    context.Context //nolint:containedctx // the life of the client, not of a call
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // every goroutine of the client

	mu      sync.Mutex    // guards the rest; never held across I/O
	current *session      // newest session, up or not
	isUp    bool          // current has a connection that a server accepted
	everUp  bool          // current was accepted at least once
	fatal   error         // credentials refused, until a session lives again
	closing bool          // Close was called
	local   net.Addr      // our address as the servers see it
	dead    []deadSession // given up here while a server may still keep them
	changed chan struct{} // closed and replaced at every change of the above

	closeOnce *runonce.Once
	quiet     chan struct{} // closed after Close when no goroutine of the client is left
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
// it was not reached; ending what was started takes a moment, and up to 0.4 s
// beyond ctx if a server made a session and then went silent. The client
// outlives ctx.
func Connect(ctx context.Context, connectString string, opts ...Option) (*Client, error) {
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
		changed:   make(chan struct{}),
		closeOnce: runonce.New(),
		quiet:     make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.remover = &remover{core: c}
	if cfg.observer.StateChange != nil {
		first := c.states.newest()
		c.wg.Go(func() { c.observeStates(context.WithoutCancel(ctx), first) }) // ends after Closed
	}
	c.wg.Go(func() { j.run(c.ctx) })
	c.wg.Go(c.supervise)
	cl := &Client{ops{core: c, prefix: cfg.chroot}}
	c.root = cl
	if err := cl.ready(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), failedConnect)
		defer cancel()
		_ = cl.Close(stop) // ends the session, if there is one, on the server
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), failedConnect)
		defer cancel()
		select {
		case <-c.quiet:
		case <-rest.Done(): // a hook that does not return
		}
		return nil, err
	}
	if len(cfg.auth) == 0 && len(cfg.extraACL) == 0 {
		c.log.Warn("zookeeper: nodes are created with an open ACL (world:anyone), as Curator does by default",
			"remedy", "pass client.WithAuth, or client.WithACL for an ACL of your own")
	}
	if cfg.namespace != "" {
		return cl.Namespace(cfg.namespace)
	}
	return cl, nil
}

// ready waits for the first session and checks the chroot.
func (c *Client) ready(ctx context.Context) error {
	cfg := c.core.cfg
	wctx, cancel := context.WithTimeoutCause(ctx, cfg.connectTimeout, fmt.Errorf("no session within %v", cfg.connectTimeout))
	defer cancel()
	s, err := c.core.connected(wctx)
	if err != nil {
		return fmt.Errorf("client: connect: %w", trimmed{err})
	}
	if err := cfg.lease.check(s.link.Timeout()); err != nil {
		return fmt.Errorf("client: connect: %w", trimmed{err})
	}
	if cfg.chroot == "" && len(cfg.auth) == 0 {
		return nil
	}
	// Any answer also shows that the credentials, sent before the question,
	// were not refused.
	ok, _, err := c.Exists(wctx, "/")
	switch {
	case errors.Is(err, ErrAuthFailed):
		return fmt.Errorf("client: connect: the servers refuse what WithAuth gave: %w", trimmed{err})
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

// supervise owns the succession of sessions. It ends after Close.
func (c *core) supervise() {
	backoff := retry.Exponential(firstRoundPause, c.cfg.sessionTimeout/6+1).WithRand(c.cfg.rand).BackOff()
	for c.ctx.Err() == nil {
		s, err := c.startSession()
		if errors.Is(err, ErrClosed) {
			return
		}
		if err != nil { // go-zookeeper refuses our own arguments
			c.log.Error("zookeeper: cannot start a session", "reason", err)
			return
		}
		<-s.ctx.Done()
		<-s.link.Over()    // later than its context if Close was called
		c.wg.Go(s.dispose) // up to a second; the next session need not wait for it
		if c.wasUp(s) && !errors.Is(s.link.Cause(), ErrAuthFailed) {
			backoff.Reset()
			continue
		}
		// Refused before it was one: do not hammer the servers.
		t := time.NewTimer(backoff.NextBackOff())
		select {
		case <-t.C:
		case <-c.ctx.Done():
		}
		t.Stop()
	}
}

func (c *core) broadcast() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// setCurrent reports false when the client is being closed: then there is no
// next session, and the one that Close ends is the last.
func (c *core) setCurrent(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.current, c.isUp, c.everUp = s, false, false
	c.states.add(StateChange{State: Connecting, At: time.Now()})
	c.broadcast()
	return true
}

func (c *core) wasUp(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current == s && c.everUp
}

// sessionUp reports whether s is still wanted.
func (c *core) sessionUp(s *session, h wire.Handshake) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != s || s.link.Cause() != nil {
		return false
	}
	c.isUp, c.everUp, c.local, c.fatal = true, true, h.LocalAddr, nil
	c.states.add(StateChange{State: Connected, Session: h.SessionID, At: time.Now()})
	c.broadcast()
	c.buryLocked()
	if !h.Reattached {
		c.wg.Go(s.watchLease) // ends with the session
	}
	return true
}

func (c *core) sessionDown(s *session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != s || !c.isUp || c.closing {
		return
	}
	c.isUp = false
	c.states.add(StateChange{State: Suspended, Session: s.link.SessionID(), Err: err, At: time.Now()})
	c.broadcast()
}

// sessionOver ends s's context in the same step as the state, so that whoever
// the broadcast wakes finds both.
func (c *core) sessionOver(s *session, cause error) {
	c.mu.Lock()
	c.isUp = false // a session is replaced only after it is over
	if errors.Is(cause, ErrAuthFailed) {
		c.fatal = cause
	}
	lost := c.everUp && !c.closing
	if lost {
		c.states.add(StateChange{State: Lost, Session: s.link.SessionID(), Err: cause, At: time.Now()})
	}
	s.cancel(cause)
	c.broadcast()
	c.mu.Unlock()
	if lost {
		c.journal.say(slog.LevelWarn, "zookeeper: session lost", "session", sessionID(s.link.SessionID()), "reason", cause)
	}
}

// connected waits for a session with a connection.
func (c *core) connected(ctx context.Context) (*session, error) {
	return c.await(ctx, nil)
}

// await waits until bound, or the current session if bound is nil, has a
// connection.
func (c *core) await(ctx context.Context, bound *session) (*session, error) {
	for {
		c.mu.Lock()
		s, up, closing, fatal, changed := c.current, c.isUp, c.closing, c.fatal, c.changed
		c.mu.Unlock()
		switch {
		case bound != nil && bound.ctx.Err() != nil:
			return nil, context.Cause(bound.ctx)
		case closing:
			return nil, ErrClosed
		case up && (bound == nil || s == bound):
			return s, nil
		case bound == nil && fatal != nil:
			return nil, fatal
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w: %s", ErrNotConnected, ctxerr.Ended(ctx), c.servers.report())
		}
	}
}

// policy is the retry policy with sleeps that leave a session time to live.
func (c *core) policy() retry.Policy { return c.cfg.policy.WithCap(c.servers.timeout() / 3) }

// DefaultData is what recipes write into their nodes unless they are given
// data: that of [WithDefaultData], else the textual address of this host as
// the servers see it, with more behind it if the client was named by
// [WithName]. Curator writes its own host's address in the same form.
func (c *Client) DefaultData() []byte {
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
// and its session never changes. Its watches are not used by this client; its
// AddAuth can wedge it for good (use [WithAuth]) and its Close ends the
// session. Paths are the server's: neither chroot nor namespace applies.
func (c *Client) Conn() *zk.Conn {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if !c.core.everUp {
		return nil
	}
	return c.core.current.conn
}

// Root returns the client of the connect string itself: its paths start at
// the chroot. Clients that share a session have the same Root.
func (c *Client) Root() *Client { return c.core.root }

// ServerPath maps a path to the one that servers and other clients know: with
// the chroot and the namespace in front.
func (c *Client) ServerPath(path string) (string, error) { return c.full(path) }

// Logger returns the logger of [WithLogger].
func (o *ops) Logger() *slog.Logger { return o.core.log }

// debugLogger passes what go-zookeeper says to the debug level: whatever
// matters of it is a state change or the error of an operation.
type debugLogger struct{ journal *journal }

func (d debugLogger) Printf(format string, args ...any) {
	d.journal.say(slog.LevelDebug, "zookeeper: "+fmt.Sprintf(format, args...))
}
