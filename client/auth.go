package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/shown"
	"github.com/docent-go/docent/internal/wire"
)

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
		if scheme == "" {
			return errors.New("client: WithAuth needs a scheme, for example \"digest\"")
		}
		if scheme == "digest" && !strings.Contains(credentials, ":") {
			return errors.New("client: WithAuth: the credentials of scheme digest are \"user:password\"; without a colon the password would stand in every ACL")
		}
		c.auth = append(c.auth, wire.Auth{Scheme: scheme, Credentials: []byte(credentials)})
		return nil
	})
}

// authOverhead is what a request with credentials has beside them, in bytes.
const authOverhead = 20

// checkAuth refuses credentials that no request can carry: a server would hang up, in
// every handshake.
func (c *config) checkAuth() error {
	for _, a := range c.auth {
		if n := authOverhead + len(a.Scheme) + len(a.Credentials); n > c.maxRequest {
			return fmt.Errorf("client: WithAuth: %w: a request of %d bytes with the credentials of scheme %s; requests have %d at most (client.WithMaxRequest, and jute.maxbuffer on the servers)",
				ErrTooLarge, n, a.Scheme, c.maxRequest)
		}
	}
	return nil
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

// How identities begin.
const (
	bySASL     = "SASL "
	digestUser = "digest user"
)

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
	for i, a := range c.auth {
		if i == mostIdentities {
			said = append(said, fmt.Sprintf("and %d more", len(c.auth)-i))
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

// noRights says what to do about a refusal for lack of rights. A server takes a wrong
// password of scheme digest for another identity and does not say so
// (DigestAuthenticationProvider hashes the password that it is given).
func noRights(identities string) string {
	if identities == "" {
		return " (the ACL of the node or of its parent does not allow it, and this client presents no credentials: pass them with client.WithAuth or client.WithSASL, or have the ACL changed)"
	}
	if strings.HasPrefix(identities, bySASL) && !strings.Contains(identities, digestUser) { // a server has said that they are right
		return fmt.Sprintf(" (the ACL of the node or of its parent does not allow it to %s: log in as another user, or have the ACL changed)", identities)
	}
	return fmt.Sprintf(" (the ACL of the node or of its parent does not allow it to %s; a wrong password looks the same, because a server takes it for another identity: check client.WithAuth, or have the ACL changed)", identities)
}
