package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// WithAuth adds credentials, for example ("digest", "user:password"). They
// are presented on every connection before anything else is sent. Unless
// [WithDefaultACL] says otherwise, what this client creates is then open to those
// who present the credentials, and to nobody else (scheme auth). They are never
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

// WithDefaultACL sets the ACL of everything that this client creates without one
// of its own, parents included. It replaces the default, which is open to the
// world, or with [WithAuth] open to those who present the credentials, and adds
// nothing to it: zk.AuthACL(zk.PermAll) is the entry that [WithAuth] stands for.
// An ACL without an entry is refused.
func WithDefaultACL(acl ...zk.ACL) Option {
	return optionFunc(func(c *config) error {
		if len(acl) == 0 {
			return fmt.Errorf("client: WithDefaultACL: %w", errEmptyACL)
		}
		c.defaultACL = slices.Clone(acl)
		return nil
	})
}
