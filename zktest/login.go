package zktest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/internal/zkserver"
)

// WithSASLUser lets clients log in by SASL with the mechanism DIGEST-MD5, under this name
// and with this password. It may be given for several names; the last password of a name
// counts. The server then has the scheme "sasl" for ACLs, unless [WithoutSASLScheme] is
// given. Without any user a server answers each token of a login with a null token and no
// error, as a real server does without a JAAS file.
//
// Before 3.9.3 the logins of a real server share a name: an unknown user with the password
// of the user who was looked up last gets in (ZOOKEEPER-4839). This server does the same,
// unless it is [ZooKeeper39].
func WithSASLUser(name, password string) Option {
	return optionFunc(func(c *config) {
		if c.SASL.Users == nil {
			c.SASL.Users = map[string]string{}
		}
		c.SASL.Users[name] = password
	})
}

// WithSASLSuperUser makes the user a super user after its login, as zookeeper.superUser
// does. It may be given for several names.
func WithSASLSuperUser(name string) Option {
	return optionFunc(func(c *config) {
		if c.SASL.Super == nil {
			c.SASL.Super = map[string]bool{}
		}
		c.SASL.Super[name] = true
	})
}

// WithRequiredAuth makes the server refuse all requests of a connection that has no
// identity of one of the schemes, but auth requests and logins. The answer is
// [CodeSessionClosedSASL], whatever the scheme; the connection is closed, and the session
// lives on. A login that fails gets the same answer if "sasl" is among the schemes. That
// is what zookeeper.enforce.auth.schemes does. Without schemes it is "sasl" alone, as with
// zookeeper.sessionRequireClientSASLAuth.
func WithRequiredAuth(schemes ...string) Option {
	return optionFunc(func(c *config) {
		if len(schemes) == 0 {
			schemes = []string{"sasl"}
		}
		c.RequiredAuth = append(slices.Clip(c.RequiredAuth), schemes...)
	})
}

// WithSASLFailedClients lets a client go on whose login fails. It gets a null token and no
// error, and has no identity. That is what zookeeper.allowSaslFailedClients does. It has
// no effect if a login by SASL is required.
func WithSASLFailedClients() Option {
	return optionFunc(func(c *config) { c.SASL.KeepFailed = true })
}

// WithoutSASLScheme makes the server one that has users, and no SASLAuthenticationProvider.
// Logins succeed there, but ACLs with the scheme "sasl" are invalid, and an identity of
// that scheme does not count for "auth".
func WithoutSASLScheme() Option { return optionFunc(func(c *config) { c.noSASLScheme = true }) }

// applyLogin completes the settings of the options about logins.
func (c *config) applyLogin() {
	c.SASL.Scheme = (c.SASL.Users != nil || slices.Contains(c.RequiredAuth, "sasl")) && !c.noSASLScheme
}

// checkLogin reports names and schemes that no server has.
func (c *config) checkLogin() error {
	var errs []error
	for name := range c.SASL.Users {
		if !zkserver.ValidUser(name) {
			errs = append(errs, fmt.Errorf("zktest: %q is not a name of a user", name))
		}
	}
	for _, scheme := range c.RequiredAuth {
		if scheme != "digest" && scheme != "ip" && (scheme != "sasl" || !c.SASL.Scheme) {
			errs = append(errs, fmt.Errorf("zktest: the server does not have the scheme %q, which it shall require", scheme))
		}
	}
	return errors.Join(errs...)
}

// WrongProof lets a matching login succeed, but the last token of the server proves
// nothing: it is what a server without the password could send. Only responses to a
// challenge match, whatever the Op of m.
func (s *Server) WrongProof(m Match) *Rule {
	m.Op = OpSASL
	also := m.Where
	m.Where = func(r Request) bool { return r.Step > 1 && (also == nil || also(r)) }
	return s.rule(m, "wrong proof", func(v *zkserver.Verdict) { v.WrongProof = true })
}

// NullToken answers a matching token of a login with a null token and no error. The client
// has no identity. Servers without a JAAS file answer so, and those of
// [WithSASLFailedClients]. Only requests of type OpSASL match, whatever the Op of m.
func (s *Server) NullToken(m Match) *Rule {
	m.Op = OpSASL
	return s.rule(m, "null token", func(v *zkserver.Verdict) { v.NullToken = true })
}
