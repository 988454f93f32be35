package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/shown"
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
	readOnly       bool          // servers without a quorum will do
	tracking       bool          // the servers follow the configuration of the ensemble
	policy         retry.Policy
	tls            *tls.Config
	dial           func(ctx context.Context, network, address string) (net.Conn, error) // by WithDialer; else lookup and connect
	lookup         func(ctx context.Context, network, host string) ([]netip.Addr, error)
	connect        func(ctx context.Context, network, address string) (net.Conn, error)
	auth           credentials
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
		cfg.openACL = len(cfg.auth.all()) == 0 && cfg.sasl == nil
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

// hostName is the part of a client's data that says what this host calls itself.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return ""
	}
	return " host=" + name
}

// dataOf is the default data of a client at an address, if the program has not said
// another. Every create of a recipe needs it, so it is made once a connection.
func (c *config) dataOf(local net.Addr) []byte {
	tcp, isTCP := local.(*net.TCPAddr)
	switch {
	case c.name != "" && isTCP:
		return fmt.Appendf(nil, "%s pid=%d%s client=%s", tcp.IP, os.Getpid(), hostName(), c.name)
	case c.name != "":
		return fmt.Appendf(nil, "? pid=%d%s client=%s", os.Getpid(), hostName(), c.name) // a dialer of its own kind
	case isTCP:
		return []byte(tcp.IP.String())
	default:
		return nil
	}
}

// login is how the client logs in, nil without [WithSASL].
func (c *config) login() func(ctx context.Context, server string) (wire.Login, error) {
	m := c.sasl
	if m == nil {
		return nil
	}
	return func(ctx context.Context, server string) (wire.Login, error) {
		name := m.Name() + " with " + server
		begun, err := m.Begin(ctx, server)
		if err == nil && begun == nil {
			err = errors.New("the mechanism has begun no login")
		}
		if err != nil {
			return nil, &wire.LoginError{Login: name, Err: err}
		}
		return login{begun, name}, nil
	}
}

// checkAuth refuses credentials that no request can carry: a server would hang up, in
// every handshake.
func (c *config) checkAuth() error {
	for _, a := range c.auth.all() {
		if err := c.fits(a); err != nil {
			return fmt.Errorf("client: WithAuth: %w", err)
		}
	}
	return nil
}

// authOverhead is what a request with credentials has beside them, in bytes.
const authOverhead = 20

func (c *config) fits(a wire.Auth) error {
	n := authOverhead + len(a.Scheme) + len(a.Credentials)
	if n <= c.maxRequest {
		return nil
	}
	return fmt.Errorf("%w: a request of %d bytes with the credentials of scheme %s; requests have %d at most (client.WithMaxRequest, and jute.maxbuffer on the servers)",
		ErrTooLarge, n, a.Scheme, c.maxRequest)
}

// mostIdentities bounds how many identities one error names.
const mostIdentities = 5

// identities are who the client is by WithSASL, and the schemes that WithAuth presents,
// with the user name for scheme digest. ACLs show that name anyway. It is "" without
// either, and no secret is part of it.
func (c *config) identities() string {
	var said []string
	if c.sasl != nil {
		who := c.sasl.Name()
		if says, ok := c.sasl.(fmt.Stringer); ok {
			who = says.String()
		}
		said = append(said, bySASL+shown.Short(who))
	}
	auth := c.auth.all()
	for i, a := range auth {
		if i == mostIdentities {
			said = append(said, fmt.Sprintf("and %d more", len(auth)-i))
			break
		}
		what := "scheme " + shown.Short(a.Scheme)
		if user, _, ok := strings.Cut(string(a.Credentials), ":"); ok && a.Scheme == "digest" {
			what = fmt.Sprintf(digestUser+" %q", shown.Short(user))
		}
		said = append(said, what)
	}
	return strings.Join(said, ", ")
}

// checkable is how many of the nodes fit into one transaction, at least one.
func (c *config) checkable(full []string) int {
	const each, around = 32, 64 // more than a check and a transaction have beside paths
	size := around
	for i, path := range full {
		if size += each + len(path); i > 0 && size > c.maxRequest {
			return i
		}
	}
	return len(full)
}
