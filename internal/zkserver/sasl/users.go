// Package sasl is the server's side of a login by SASL with DIGEST-MD5 (RFC 2831). It
// reads and checks tokens as the Java classes do that ZooKeeper takes for it: in their
// order, with their encodings and their faults.
package sasl

import (
	"errors"
	"maps"
	"strings"
)

// Config is what a server knows of logins. The zero Config is that of a server without a
// login configuration, which answers every token with none.
type Config struct {
	// Users has the names and passwords. If it is nil, nobody can log in.
	Users map[string]string
	// Super has the names that may do everything.
	Super map[string]bool
	// Scheme is set if ACLs may name identities of the scheme sasl.
	Scheme bool
	// KeepFailed lets a client that failed to log in go on without an identity, unless a
	// login is required.
	KeepFailed bool
}

var (
	// ErrRefused is the error of a login that the server refuses.
	ErrRefused = errors.New("zktest: login refused")
	// ErrBroken is the error of a token that real servers stumble over: they close the
	// connection without an answer.
	ErrBroken = errors.New("zktest: login broken")
)

// Users are the names and passwords of one server.
type Users struct {
	passwords map[string]string
	// shared is set if all logins share the name that was looked up last, as they do
	// before ZOOKEEPER-4839 was fixed. An unknown user has the password of that name.
	shared bool
	last   string
	known  bool // whether there is a last name
}

// NewUsers returns the users of a configuration, or nil if it has no logins.
func NewUsers(c Config, shared bool) *Users {
	if c.Users == nil {
		return nil
	}
	return &Users{passwords: maps.Clone(c.Users), shared: shared}
}

// password looks up the password of a user.
func (u *Users) password(name string) (string, bool) {
	if p, ok := u.passwords[name]; ok {
		u.last, u.known = name, true
		return p, true
	}
	if u.shared && u.known {
		return u.passwords[u.last], true
	}
	return "", false
}

// ValidName reports whether a name has the syntax of a Kerberos principal, which
// ZooKeeper asks of every identity of the scheme sasl. A name without a realm is valid
// whatever it is; with one, it is "service/host@realm" or "service@realm".
func ValidName(name string) bool {
	before, realm, found := strings.Cut(name, "@")
	if !found {
		return true
	}
	return !strings.ContainsAny(realm, "/@") && strings.Count(before, "/") <= 1
}
