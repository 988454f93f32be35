package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/clock"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// Defaults of [Connect].
const (
	// DefaultSessionTimeout is the timeout that a client asks for, unless
	// [WithSessionTimeout] says otherwise. Servers limit it to 2..20 ticks, 4..40 s
	// by default.
	DefaultSessionTimeout = 15 * time.Second
	// DefaultMaxRequest is the largest request in bytes unless
	// [WithMaxRequest] says otherwise: the default of a server's
	// jute.maxbuffer.
	DefaultMaxRequest = 0xfffff
	// DefaultMaxReply is the largest reply in bytes unless [WithMaxReply]
	// says otherwise.
	DefaultMaxReply = 4 << 20
)

type config struct {
	servers        []string
	chroot         string
	namespace      string
	sessionTimeout time.Duration
	connectTimeout time.Duration // 0: the session timeout
	lazy           bool          // Connect does not wait
	tracking       bool          // the servers follow the configuration of the ensemble
	policy         retry.Policy
	tls            *tls.Config
	dial           func(ctx context.Context, network, address string) (net.Conn, error) // by WithDialer; else lookup and connect
	lookup         func(ctx context.Context, network, host string) ([]netip.Addr, error)
	connect        func(ctx context.Context, network, address string) (net.Conn, error)
	auth           []wire.Auth
	sasl           SASL
	defaultACL     []zk.ACL // of a node that the caller gave no ACL; never changed
	openACL        bool     // no option set it
	defaultData    []byte
	hasDefaultData bool
	name           string
	maxRequest     int
	maxReply       int
	logger         *slog.Logger
	observer       Observer
	lease          LeasePolicy
	clock          *clock.Clock
	rand           func() float64
	hasRand        bool
}

// where is what the servers of the client are made of.
func (c *config) where() where.Config {
	return where.Config{
		Servers: c.servers, Timeout: c.sessionTimeout, TLS: c.tls, Dial: c.dial, Lookup: c.lookup, Connect: c.connect, Rand: c.rand,
	}
}

// An Option configures [Connect].
type Option interface{ apply(*config) error }

type optionFunc func(*config) error

func (f optionFunc) apply(c *config) error { return f(c) }

func newConfig(connectString string, opts []Option) (*config, error) {
	servers, chroot, err := where.Parse(connectString, ValidatePath)
	if err != nil {
		return nil, err
	}
	cfg := &config{
		servers:        servers,
		chroot:         chroot,
		sessionTimeout: DefaultSessionTimeout,
		policy:         retry.Default(),
		maxRequest:     DefaultMaxRequest,
		maxReply:       DefaultMaxReply,
		logger:         slog.Default(),
		lookup:         net.DefaultResolver.LookupNetIP,
		connect:        new(net.Dialer).DialContext,
		clock:          clock.System(),
		rand:           rand.Float64,
	}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("client: a nil Option was given to Connect")
		}
		if err := o.apply(cfg); err != nil {
			return nil, err
		}
	}
	if err := cfg.checkAuth(); err != nil {
		return nil, err
	}
	if cfg.tracking && cfg.tls != nil {
		return nil, errors.New("client: WithEnsembleTracker with WithTLS: the ensemble's configuration names only the ports without TLS; pass new servers to Client.SetServers instead")
	}
	if cfg.connectTimeout == 0 {
		cfg.connectTimeout = cfg.sessionTimeout
	}
	if cfg.defaultACL == nil {
		cfg.openACL = len(cfg.auth) == 0 && cfg.sasl == nil
		cfg.defaultACL = zk.WorldACL(zk.PermAll)
		if !cfg.openACL {
			cfg.defaultACL = zk.AuthACL(zk.PermAll)
		}
	}
	if cfg.hasRand { // a policy may have its own
		cfg.policy = cfg.policy.WithRand(cfg.rand)
	}
	return cfg, nil
}

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
//	<address of this host> pid=<process id> client=<name>
//
// instead of the address alone; recipes.Contender reads it back. Other libraries
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

// dataOf is the default data of a client at an address, if the program has not said
// another. Every create of a recipe needs it, so it is made once a connection.
func (c *config) dataOf(local net.Addr) []byte {
	tcp, isTCP := local.(*net.TCPAddr)
	switch {
	case c.name != "" && isTCP:
		return fmt.Appendf(nil, "%s pid=%d client=%s", tcp.IP, os.Getpid(), c.name)
	case c.name != "":
		return fmt.Appendf(nil, "? pid=%d client=%s", os.Getpid(), c.name) // a dialer of its own kind
	case isTCP:
		return []byte(tcp.IP.String())
	default:
		return nil
	}
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
