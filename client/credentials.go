package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/client/internal/sasl"
	"github.com/docent-go/docent/internal/wire"
)

// newAuth refuses credentials that no server takes.
func newAuth(scheme, credentials string) (wire.Auth, error) {
	switch {
	case scheme == "":
		return wire.Auth{}, errors.New("there is no scheme, for example \"digest\"")
	case scheme == "digest" && !strings.Contains(credentials, ":"):
		return wire.Auth{}, errors.New("the credentials of scheme digest are \"user:password\"; without a colon the password would stand in every ACL")
	}
	return wire.Auth{Scheme: scheme, Credentials: []byte(credentials)}, nil
}

// credentials are what a client presents on every connection. They may change.
type credentials struct {
	mu   sync.Mutex
	list []wire.Auth // never changed in place
}

func (c *credentials) all() []wire.Auth {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list
}

// add adds a at the end. If instead is set, it takes the place of all others of its scheme.
func (c *credentials) add(a wire.Auth, instead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(slices.DeleteFunc(slices.Clone(c.list), func(old wire.Auth) bool {
		return old.Scheme == a.Scheme && (instead || bytes.Equal(old.Credentials, a.Credentials))
	}), a)
}

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

// DigestMD5From is [DigestMD5] with a user and a password that may change, as in a file that is
// replaced. The client calls read before every dial, within a context that ends with the time for
// the login. So a new password serves from the next connection on; the present one
// stays as it is. If read fails, or returns what [WithSASL] refuses of DigestMD5, that is no
// refusal by a server: the client tries again. Connections of several clients may call read at the same time.
func DigestMD5From(read func(ctx context.Context) (user, password string, err error)) SASL {
	return &digestMD5From{read}
}

type digestMD5From struct {
	read func(ctx context.Context) (user, password string, err error)
}

// Name is that of RFC 2831.
func (*digestMD5From) Name() string { return new(digestMD5).Name() }

// Begin asks who logs in.
func (d *digestMD5From) Begin(ctx context.Context, server string) (SASLLogin, error) {
	user, password, err := d.read(ctx)
	if err == nil {
		err = sasl.Usable(user, password)
	}
	if err != nil {
		return nil, fmt.Errorf("read the user and the password: %w", err)
	}
	return DigestMD5(user, password).Begin(ctx, server)
}

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
