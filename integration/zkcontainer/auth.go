package zkcontainer

import (
	"crypto/sha1" //nolint:gosec // the scheme digest of ZooKeeper is made of it
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

const (
	jaasFile  = "/conf/jaas.conf"
	superUser = "super"
)

// WithSuperuser gives the servers a superuser, whom no ACL binds: a client that adds the
// authentication "digest" with "super:" and the password.
func WithSuperuser(password string) Option {
	return func(s *settings) error {
		if password == "" {
			return errors.New("the superuser's password is empty")
		}
		user := superUser + ":" + password
		hash := sha1.Sum([]byte(user)) //nolint:gosec // as above
		s.system["zookeeper.DigestAuthenticationProvider.superDigest"] = superUser + ":" + base64.StdEncoding.EncodeToString(hash[:])
		s.super = user
		return nil
	}
}

// WithSASLDigest lets these users, with their passwords, log in by SASL with DIGEST-MD5.
// Clients without SASL still get a session, and nodes with ACLs for everybody; to keep them
// out set the property sessionRequireClientSASLAuth to "true". Calls add up.
func WithSASLDigest(users map[string]string) Option {
	return func(s *settings) error {
		if len(users) == 0 {
			return errors.New("there are no users for SASL")
		}
		for name, password := range users {
			if name == "" || strings.ContainsAny(name, "\"\\=; ") || strings.ContainsAny(password, "\"\\") || strings.ContainsFunc(name+password, unicode.IsControl) {
				return fmt.Errorf("user %q or the password has a character that a JAAS file cannot have", name)
			}
		}
		maps.Copy(s.users, users)
		s.properties["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
		s.system["java.security.auth.login.config"] = jaasFile
		s.system["zookeeper.fips-mode"] = "false" // which forbids DIGEST-MD5
		return nil
	}
}

// jaas is the text of the servers' JAAS file.
func (s *settings) jaas() []byte {
	var b strings.Builder
	b.WriteString("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required")
	for _, name := range slices.Sorted(maps.Keys(s.users)) {
		fmt.Fprintf(&b, "\n  \"user_%s\"=\"%s\"", name, s.users[name]) // Java does not know all that %q escapes
	}
	b.WriteString(";\n};\n")
	return []byte(b.String())
}

// authenticate makes the session the superuser's, if there is one.
func (s *session) authenticate(set *settings) error {
	if set.super == "" {
		return nil
	}
	body := appendBytes(appendString(make([]byte, 4), "digest"), []byte(set.super))
	_, err := s.exchange(xidAuth, opAuth, body)
	return err
}
