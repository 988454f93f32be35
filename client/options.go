package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/sasl"
	"github.com/docent-go/docent/retry"
)

// leastSessionTimeout is the least that a client may ask for. Servers grant more.
// With a shorter one the client would give servers up before they can answer.
const leastSessionTimeout = 100 * time.Millisecond

// WithSessionTimeout sets the session timeout to ask for, at least 100 ms. The server
// may grant less or more; [Session.Timeout] tells what it granted. If a server grants
// less, the client logs a warning: leases and holds end sooner too.
func WithSessionTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) error {
		switch {
		case d > math.MaxInt32*time.Millisecond:
			return fmt.Errorf("client: session timeout %v is out of range; servers grant 2 to 20 ticks, by default 4s to 40s", d)
		case d < leastSessionTimeout:
			return fmt.Errorf("client: session timeout %v is too short for this client, which gives a dial and a handshake a third of it: ask for %v or more, as in 15*time.Second; servers grant 2 to 20 ticks, by default 4s to 40s",
				d, leastSessionTimeout)
		}
		c.sessionTimeout = d
		return nil
	})
}

// WithLeasePolicy sets how long a lock counts as held. [Connect] fails with
// an error that matches [ErrUnsafeTimeout] if the servers grant a timeout
// that leaves no time under p.
func WithLeasePolicy(p LeasePolicy) Option {
	return optionFunc(func(c *config) error {
		switch {
		case p.SafetyMargin < 0 || p.TickTime < 0 || p.SyncLimit < 0 || p.SchedulingSlack < 0 || p.HeartbeatPeriod < 0:
			return fmt.Errorf("client: lease policy %+v has a negative field", p)
		case p.ClockRateError < 0 || p.ClockRateError >= 1:
			return fmt.Errorf("client: lease policy: clock rate error %v is not in [0, 1)", p.ClockRateError)
		case p.Heartbeat != HeartbeatWrites && p.Heartbeat != HeartbeatPings:
			return fmt.Errorf("client: lease policy: there is no heartbeat %d", p.Heartbeat)
		}
		c.lease = p
		return nil
	})
}

// WithConnectTimeout bounds how long [Connect] waits for the first session,
// besides its context. The default is the session timeout.
func WithConnectTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("client: connect timeout %v is not positive", d)
		}
		c.connectTimeout = d
		return nil
	})
}

// WithRetry sets the policy by which operations are tried again. The default is
// [retry.Default], which does not end by itself: a call without a deadline waits as
// long as the client is open. No pause exceeds a third of the session timeout.
// [Client.Retrying] gives single calls another policy.
//
// A policy that gives up by itself also bounds how long a call waits for a
// connection: as long as the pauses of the policy together. Then the call fails with
// [ErrNotConnected]. It may be repeated ([SafeToRetry]), unless an earlier try of a
// write was sent and got no answer ([UnknownOutcome]). With [retry.None] a call
// without a connection fails at once. While a call waits, [Observer] hears of no
// retry.
func WithRetry(p retry.Policy) Option {
	return optionFunc(func(c *config) error { c.policy = p; return nil })
}

// WithDialer replaces the dialer: by one for a proxy, a tunnel, or an in-process test
// server. It gets the host and port of the connect string unresolved. With [WithTLS]
// the client does the TLS handshake on the connection that it returns.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return optionFunc(func(c *config) error {
		if dial == nil {
			return errors.New("client: WithDialer needs a function")
		}
		c.dial = dial
		return nil
	})
}

// WithEnsembleTracker makes the client follow the ensemble's own list of its members,
// which reconfig changes. The client reads and watches /zookeeper/config, as
// Curator's EnsembleTracker does. It dials the servers of the list first, and those
// of the connect string when none of the list can be reached. It is off by default,
// because the addresses in the list may work only within the ensemble's own network.
//
// If the member that the client is connected to leaves the list, the client moves as
// after [Client.SetServers]. If the client is connected to an address that the list
// never had, as behind a load balancer, it stays.
//
// A list with an older version than the newest one seen is ignored. After the
// ensemble was set up from scratch, programs must connect again.
//
// If the node is missing (as in ClickHouse Keeper), may not be read, or lacks a client
// address of a member, the list stays as it is. One warning says so. It lacks them if the
// servers' zoo.cfg has a line clientPort apart from the servers' lines. With [WithTLS]
// Connect refuses the option: the list has no addresses of TLS ports.
func WithEnsembleTracker() Option {
	return optionFunc(func(c *config) error { c.tracking = true; return nil })
}

// WithNamespace puts every path of this client under /name, as Curator's namespace
// does. The first node that a client creates in it makes the missing nodes of /name,
// as [WithParents] does, also in a transaction. Until then reads find no node, "/"
// included.
func WithNamespace(name string) Option {
	return optionFunc(func(c *config) error {
		if err := validNamespace(name); err != nil {
			return err
		}
		c.namespace = name
		return nil
	})
}

// WithDefaultData sets the data that recipes write into their nodes. The default is
// the textual address of this host as the servers see it, like Curator's.
func WithDefaultData(data []byte) Option {
	return optionFunc(func(c *config) error {
		c.defaultData, c.hasDefaultData = slices.Clone(data), true
		return nil
	})
}

// WithName names the client for people that look at its nodes. Recipes then write
// into them
//
//	<address of this host> pid=<process id> host=<its host name> client=<name>
//
// instead of the address alone; recipes.Contender reads it back. A host name with blanks is
// left out. Other libraries
// ignore the data. The name is printable text on one line, of at most 128 bytes. If
// [WithDefaultData] is given, it replaces this.
func WithName(name string) Option {
	return optionFunc(func(c *config) error {
		unprintable := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
		if name == "" || len(name) > 128 || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unprintable) {
			return fmt.Errorf("client: name %q must be printable text of 1 to 128 bytes without spaces around it", name)
		}
		c.name = name
		return nil
	})
}

// WithMaxRequest sets the largest request in bytes. Raise it together with
// the servers' jute.maxbuffer.
func WithMaxRequest(bytes int) Option {
	return optionFunc(func(c *config) error {
		if bytes < 1024 {
			return fmt.Errorf("client: largest request of %d bytes is too small, the least is 1024", bytes)
		}
		c.maxRequest = bytes
		return nil
	})
}

// WithMaxReply sets the largest reply in bytes. An operation that gets a larger one
// fails with [ErrReplyTooLarge]. A list of more than about 60,000 lock nodes needs
// more than the default.
//
// go-zookeeper makes two buffers of 1.5 MiB for each session, for users of [Client.Conn].
// They count to Go's heap, and so to GOMEMLIMIT, though little of them is resident. The one
// for replies is no larger than this limit.
func WithMaxReply(bytes int) Option {
	return optionFunc(func(c *config) error {
		if bytes < 1024 {
			return fmt.Errorf("client: largest reply of %d bytes is too small, the least is 1024", bytes)
		}
		c.maxReply = bytes
		return nil
	})
}

// WithLogger sets the logger. The default is [slog.Default]. Warnings are outages,
// lost sessions, expired leases, and a session timeout that a server has shortened.
// Connections are info. An open default ACL and all lines of go-zookeeper are debug.
func WithLogger(l *slog.Logger) Option {
	return optionFunc(func(c *config) error {
		if l == nil {
			return errors.New("client: WithLogger needs a logger; slog.New(slog.DiscardHandler) is a silent one")
		}
		c.logger = l
		return nil
	})
}

// WithObserver sets hooks for metrics and traces.
func WithObserver(o Observer) Option {
	return optionFunc(func(c *config) error { c.observer = o; return nil })
}

// WithRand replaces the source of randomness (backoff, order of servers) by f. f
// returns numbers in [0, 1) and must be safe for concurrent use. A simulation can
// replay it. No number that must be unguessable comes from it.
func WithRand(f func() float64) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errors.New("client: WithRand needs a function")
		}
		c.rand, c.hasRand = f, true
		return nil
	})
}

// WithTLS encrypts every connection. If ServerName is not set, the host of the
// connect string takes its place. So certificates are checked against the configured
// name and not against the address that it resolves to.
//
// The functions of cfg, such as GetClientCertificate, are called for every new
// connection, so they can read files that have changed meanwhile. docs/tls.md has
// that code, the servers' settings, and ACLs for certificates.
func WithTLS(cfg *tls.Config) Option {
	return optionFunc(func(c *config) error {
		if cfg == nil {
			return errors.New("client: WithTLS needs a *tls.Config")
		}
		c.tls = cfg.Clone()
		return nil
	})
}

// WithAuth adds credentials, for example ("digest", "user:password"). The client
// presents them on every connection before it sends anything else. The nodes that
// this client creates are then open to clients with these credentials and to no other
// client (scheme auth), unless [WithDefaultACL] says otherwise. Credentials are never
// logged.
//
// With [WithTLS], WithAuth("x509", "") takes the client's certificate for
// credentials: nodes are then open to clients with that subject. A server that
// gets no certificate refuses that, with [ErrAuthFailed].
func WithAuth(scheme, credentials string) Option {
	return optionFunc(func(c *config) error {
		a, err := newAuth(scheme, credentials)
		if err != nil {
			return fmt.Errorf("client: WithAuth: %w", err)
		}
		c.auth.add(a, false)
		return nil
	})
}

// WithDefaultACL sets the ACL of every node that this client creates without an ACL
// of its own, parents included. It replaces the default and adds nothing to it. The
// default is open to the world, or with [WithAuth] and [WithSASL] to every client that presents the
// credentials: the entry for the latter is zk.AuthACL(zk.PermAll). Prefer that to
// zk.DigestACL, which hashes with SHA-1: on servers with digestAlg=SHA-256 even the
// client that made the node could not read it. An ACL without an entry is refused.
func WithDefaultACL(acl ...zk.ACL) Option {
	return optionFunc(func(c *config) error {
		if len(acl) == 0 {
			return fmt.Errorf("client: WithDefaultACL: %w", errEmptyACL)
		}
		c.defaultACL = slices.Clone(acl)
		return nil
	})
}

// WithSASL lets the client log in with m, on every connection, before it sends anything else
// and before it says that it is connected. The server must prove that it knows the user. The
// nodes that this client creates are then open to clients with the same id, and to no other
// client (scheme auth), unless [WithDefaultACL] says otherwise. With [WithAuth] the client has
// several ids, and each of them opens its nodes.
//
// If a server refuses the login, or gives no proof, Connect and calls fail with
// [ErrAuthFailed]. The error names the mechanism and the server. The client tries again, with
// pauses of up to a session timeout. If a server refuses the login of a session that stands, that
// session goes on as after a lost connection: the client tries the servers until one takes it, or its time is over. If the mechanism cannot begin, as
// without a ticket, that is no refusal: the client tries the next server.
func WithSASL(m SASL) Option {
	return optionFunc(func(c *config) error {
		switch {
		case m == nil:
			return errors.New("client: WithSASL needs a mechanism, for example client.DigestMD5(user, password)")
		case c.sasl != nil:
			return errors.New("client: WithSASL was given twice: a connection takes one login")
		}
		switch d := m.(type) {
		case *digestMD5:
			if err := sasl.Usable(d.user, d.password); err != nil {
				return fmt.Errorf("client: DigestMD5: %w", err)
			}
		case *digestMD5From:
			if d.read == nil {
				return errors.New("client: DigestMD5From needs a function")
			}
		}
		c.sasl = m
		return nil
	})
}

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

// WithReadOnly makes a client that only reads, and that reads from servers without a quorum as
// well (readonlymode.enabled=true and localSessionsEnabled=true on the servers). Without it
// such servers refuse a client, and the client goes on to the next one.
//
// All calls that write fail with [ErrReadOnly], whatever the server is, so nothing can be held:
// programs that also hold something have a second client. What a server without a quorum
// shows may be arbitrarily old; [Session.ReadOnly] and [StateChange] tell. [Client.Sync] fails
// there with the code -119, and so a cache of package recipes/cache is not Synced.
//
// No session passes between the two kinds of servers. If the quorum is lost, the client first
// tries to continue its session, and it reads again when the session timeout has passed. If
// the quorum is back, the server closes the connection, and a new session begins. The client
// does not look for a better server while one without a quorum answers.
func WithReadOnly() Option {
	return optionFunc(func(c *config) error { c.readOnly = true; return nil })
}
