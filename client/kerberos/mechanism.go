package kerberos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"

	"github.com/docent-go/docent/client"
)

// Mechanism logs one principal in. It is safe for concurrent use, by several clients too. It is a
// client.SASL. Formatting, logging and marshalling show who logs in, and no secret.
type Mechanism struct {
	who     string
	service string
	name    func(host string) string
	tickets *tickets
}

type settings struct {
	config  string
	service string
	name    func(host string) string
}

// An Option configures a [Mechanism].
type Option func(*settings) error

// WithConfig names the file of Kerberos' configuration. The default is that of the variable
// KRB5_CONFIG, or /etc/krb5.conf. The lines include and includedir have no effect; a file that
// has them needs the realm's KDCs itself.
func WithConfig(path string) Option {
	return func(s *settings) error {
		if path == "" {
			return errors.New("kerberos: WithConfig needs a path")
		}
		s.config = path
		return nil
	}
}

// WithService is the first part of the servers' principals, in place of zookeeper.
func WithService(name string) Option {
	return func(s *settings) error {
		if name == "" || strings.ContainsAny(name, "/@") {
			return fmt.Errorf("kerberos: %q is no name of a service", name)
		}
		s.service = name
		return nil
	}
}

// WithServerPrincipal makes a server's principal of the host in the connect string:
// "zookeeper/zk1.example.com", or with a realm behind an @. It is for servers behind an address
// or an alias.
func WithServerPrincipal(f func(host string) string) Option {
	return func(s *settings) error {
		if f == nil {
			return errors.New("kerberos: WithServerPrincipal needs a function")
		}
		s.name = f
		return nil
	}
}

// Keytab logs a principal in with its key of a file. The principal is NAME or NAME@REALM; the
// default realm is that of the configuration. The error says what is wrong with the file or the
// configuration. No KDC is asked before the first login.
func Keytab(principal, file string, opts ...Option) (*Mechanism, error) {
	return newMechanism(opts, func(cfg *config.Config) (source, error) { return newKeytabSource(cfg, principal, file) })
}

// Password logs a principal in with its password. The error says what is wrong with the
// principal or the configuration; a wrong password shows at the first login, as an error that
// matches [client.ErrAuthFailed]. The password is kept in memory, and no text shows it.
func Password(principal, password string, opts ...Option) (*Mechanism, error) {
	return newMechanism(opts, func(cfg *config.Config) (source, error) { return newPasswordSource(cfg, principal, password) })
}

// CredentialCache logs in with the tickets that kinit has put into a file. An empty path is the
// file of the variable KRB5CCNAME, or /tmp/krb5cc_UID. Somebody else has to renew the tickets there;
// the file is read again when the ticket in use is about to end.
func CredentialCache(file string, opts ...Option) (*Mechanism, error) {
	if file == "" {
		file = os.Getenv("KRB5CCNAME")
	}
	if file == "" {
		file = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	if kind, path, found := strings.Cut(file, ":"); found && !strings.Contains(kind, "/") {
		if kind != "FILE" {
			return nil, fmt.Errorf("kerberos: the credential cache is of the kind %s, and only files can be read", kind)
		}
		file = path
	}
	return newMechanism(opts, func(cfg *config.Config) (source, error) { return newCacheSource(cfg, file) })
}

func newMechanism(opts []Option, made func(*config.Config) (source, error)) (*Mechanism, error) {
	s := settings{config: os.Getenv("KRB5_CONFIG"), service: "zookeeper"}
	if s.config == "" {
		s.config = "/etc/krb5.conf"
	}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("kerberos: nil Option")
		}
		if err := o(&s); err != nil {
			return nil, err
		}
	}
	cfg, err := config.Load(s.config)
	if err != nil {
		return nil, fmt.Errorf("kerberos: configuration %s: %w", s.config, err)
	}
	from, err := made(cfg)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	return &Mechanism{who: from.who(), service: s.service, name: s.name, tickets: newTickets(from.fetch)}, nil
}

// Name is the name of Kerberos in SASL.
func (*Mechanism) Name() string { return "GSSAPI" }

// Begin takes the ticket for a server that the mechanism has, or waits for one until ctx ends. The
// error matches client.ErrAuthFailed if a KDC refuses the principal or its key. It does not
// match if no KDC answers, or the KDC does not know the server.
func (m *Mechanism) Begin(ctx context.Context, server string) (client.SASLLogin, error) {
	spn, host := m.principal(server)
	t, err := m.tickets.get(ctx, spn)
	if err != nil {
		return nil, explained(err, spn, host)
	}
	return newInitiator(t, time.Now())
}

// principal is that of a server.
func (m *Mechanism) principal(server string) (spn, host string) {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = server
	}
	if m.name != nil {
		return m.name(host), host
	}
	return m.service + "/" + strings.TrimSuffix(host, "."), host
}

// Close forgets the tickets, and fetches no more. Logins fail from then on; connections that
// stand are not affected. A request to a KDC that is under way ends by itself.
func (m *Mechanism) Close() error {
	m.tickets.close()
	return nil
}

// String says who logs in.
func (m *Mechanism) String() string { return "GSSAPI principal " + m.who }

// Format hides what is secret from every verb.
func (m *Mechanism) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, m.String()) }

// LogValue hides what is secret from slog.
func (m *Mechanism) LogValue() slog.Value { return slog.StringValue(m.String()) }

// MarshalText hides what is secret from encoders. It never fails.
func (m *Mechanism) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
