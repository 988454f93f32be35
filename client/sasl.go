package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/docent-go/docent/client/internal/sasl"
	"github.com/docent-go/docent/internal/wire"
)

// SASL is a mechanism with which a client logs in, as [DigestMD5]. Kerberos is in the module
// github.com/docent-go/docent/client/kerberos. A mechanism of one's own implements the interface.
// One SASL may serve several clients, so its methods are safe for concurrent use.
type SASL interface {
	// Name is the name that SASL has for the mechanism. It stands in errors. If the
	// mechanism is a [fmt.Stringer], its text says in errors who logs in. Neither may show
	// a secret.
	Name() string

	// Begin starts one login with a server, "host:port" as in the connect string. It is
	// called before every dial, and may take time of its own, as for a ticket. It returns
	// when ctx ends. After an error the client does not dial that server now. The error says nothing about the
	// credentials unless it matches [ErrAuthFailed].
	Begin(ctx context.Context, server string) (SASLLogin, error)
}

// SASLLogin is one login on one connection. One goroutine uses it, within the time of the
// handshake, so it must not block. If it has a method Refused() string, that says in errors
// what is likely wrong after the server has refused the newest answer.
type SASLLogin interface {
	// Next answers a token of the server. The token is nil before the first, and if the
	// server has sent null. If proven is true, the server has shown that it knows the user,
	// nothing is sent any more, and the client is logged in. Nothing else makes a login: an
	// empty token without a proof is an error of Next. After an error Next is not called
	// again, and the error matches [ErrAuthFailed] for the client.
	Next(token []byte) (answer []byte, proven bool, err error)
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
		if d, ok := m.(*digestMD5); ok {
			if err := sasl.Usable(d.user, d.password); err != nil {
				return fmt.Errorf("client: DigestMD5: %w", err)
			}
		}
		c.sasl = m
		return nil
	})
}

// DigestMD5 is the mechanism DIGEST-MD5 of ZooKeeper's DigestLoginModule. It hides the password
// on the wire, and nothing else: use [WithTLS] as well. Servers in FIPS mode refuse it. Formatting, logging
// and marshalling show the user, and not the password.
//
// [WithSASL] refuses an empty user or password, text that is not UTF-8, and a program that forbids MD5 (GODEBUG=fips140=only).
func DigestMD5(user, password string) SASL { return &digestMD5{user, password} }

type digestMD5 struct{ user, password string }

// Name is that of RFC 2831.
func (*digestMD5) Name() string { return "DIGEST-MD5" }

// Begin takes no time and never fails.
func (d *digestMD5) Begin(context.Context, string) (SASLLogin, error) {
	return sasl.NewDigest(d.user, d.password, rand.Text()), nil
}

// String says who logs in.
func (d *digestMD5) String() string { return fmt.Sprintf("DIGEST-MD5 user %q", d.user) }

// Format hides the password from every verb.
func (d *digestMD5) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, d.String()) }

// LogValue hides the password from slog.
func (d *digestMD5) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalText hides the password from JSON and other encoders. It never fails.
func (d *digestMD5) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// login is a SASLLogin with a server.
type login struct {
	SASLLogin
	name string
}

// Name is the mechanism and the server.
func (l login) Name() string { return l.name }

// Refused is what the login says about that.
func (l login) Refused() string {
	if says, ok := l.SASLLogin.(interface{ Refused() string }); ok {
		return says.Refused()
	}
	return ""
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
