package sasl

import (
	"crypto/md5" //nolint:gosec // the mechanism is made of MD5; docs/sasl.md says what that is worth
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Servers of ZooKeeper have these names, whatever their host is called.
const (
	realm     = "zk-sasl-md5"
	digestURI = "zookeeper/zk-sasl-md5"
)

// Digest is one login. Formatting shows neither the password nor what is made of it.
type Digest struct {
	user, password string
	nonce          string // of the client

	stage stage
	proof string // that the server must answer
}

type stage int

const (
	fresh    stage = iota
	greeted        // the server has been asked for its challenge
	answered       // the server's challenge has been answered
	over
)

// NewDigest begins a login. The nonce must be unguessable, and another one each time.
func NewDigest(user, password, nonce string) *Digest {
	return &Digest{user: user, password: password, nonce: nonce}
}

// Next answers the server's token. If proven, the server knows the password.
func (d *Digest) Next(token []byte) (answer []byte, proven bool, err error) {
	at := d.stage
	d.stage = over
	switch {
	case at == fresh:
		d.stage = greeted
		return []byte{}, false, nil // the server speaks first
	case at == greeted && len(token) == 0:
		return nil, false, errors.New("the server offers no login: it has no section Server in the file of java.security.auth.login.config")
	case at == greeted:
		if answer, err = d.answer(token); err == nil {
			d.stage = answered
		}
		return answer, false, err
	case at == answered && len(token) == 0:
		return nil, false, errors.New("the server has let the client pass without a proof that it knows the password: " +
			"that of the client may be wrong, and the server may have zookeeper.allowSaslFailedClients")
	case at == answered:
		err = d.verify(token)
		return nil, err == nil, err
	}
	return nil, false, errors.New("a token after the end of the login")
}

// Refused is what is likely wrong if the server refuses the newest answer.
func (d *Digest) Refused() string {
	switch d.stage {
	case greeted:
		return "it does not take DIGEST-MD5: it takes another mechanism, as Kerberos, or is in FIPS mode (-Dzookeeper.fips-mode=false)"
	case answered:
		return fmt.Sprintf("user %q or the password is wrong", d.user)
	}
	return ""
}

// Format shows the user.
func (d *Digest) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "login of user %q", d.user) }

func (d *Digest) answer(challenge []byte) ([]byte, error) {
	c, err := parseChallenge(challenge)
	if err != nil {
		return nil, fmt.Errorf("the server's challenge: %w", err)
	}
	user := d.user
	if !c.utf8 {
		if user, err = latin1(d.user); err != nil {
			return nil, fmt.Errorf("user %q: %w, and the server does not take UTF-8", d.user, err)
		}
		if _, err = latin1(d.password); err != nil {
			return nil, fmt.Errorf("the password: %w, and the server does not take UTF-8", err)
		}
	}
	key := d.key(c)
	d.proof = d.response(key, c, ":"+digestURI)
	var b strings.Builder
	if c.utf8 {
		b.WriteString("charset=utf-8,")
	}
	fmt.Fprintf(&b, "username=%s,realm=%s,nonce=%s,nc=00000001,cnonce=%s,digest-uri=%s,maxbuf=65536,response=%s,qop=auth",
		quoted(user), quoted(c.realm), quoted(c.nonce), quoted(d.nonce), quoted(digestURI), d.response(key, c, "AUTHENTICATE:"+digestURI))
	return []byte(b.String()), nil
}

// key is HEX(H(A1)) of the RFC.
func (d *Digest) key(c challenge) string {
	secret := md5.Sum([]byte(hashed(d.user) + ":" + hashed(c.realm) + ":" + hashed(d.password))) //nolint:gosec // see the import
	return digest(string(secret[:]) + ":" + c.nonce + ":" + d.nonce)
}

// response is the response-value of the RFC; a2 is A2.
func (d *Digest) response(key string, c challenge, a2 string) string {
	return digest(key + ":" + c.nonce + ":00000001:" + d.nonce + ":auth:" + digest(a2))
}

func digest(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// verify compares the server's last token with what only one that knows the password can
// answer.
func (d *Digest) verify(token []byte) error {
	var proofs []string
	err := directives(string(token), func(name, value string) {
		if name == "rspauth" {
			proofs = append(proofs, value)
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("the server's proof: %w", err)
	case len(proofs) != 1:
		return errors.New("the server's last token is no proof that it knows the password")
	case subtle.ConstantTimeCompare([]byte(proofs[0]), []byte(d.proof)) != 1:
		return errors.New("the server's proof is wrong: it does not know the password")
	}
	return nil
}

// hashed is s as it goes into a hash. The JDK follows section 2.1.2.1 of the RFC: what has a
// place in ISO 8859-1 is hashed in that, even when both sides take UTF-8.
func hashed(s string) string {
	if l, err := latin1(s); err == nil {
		return l
	}
	return s
}

func latin1(s string) (string, error) {
	var b strings.Builder
	for _, r := range s {
		if r > 0xff {
			return "", errors.New("it has letters outside of ISO 8859-1")
		}
		_ = b.WriteByte(byte(r)) //nolint:gosec // it is at most 0xff
	}
	return b.String(), nil
}

// quoted is s as a quoted-string.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Usable says why a user and a password could log in to no server, or nil.
func Usable(user, password string) (err error) {
	switch {
	case user == "":
		return errors.New("the user has no name")
	case !utf8.ValidString(user):
		return errors.New("the user's name is not UTF-8")
	case password == "":
		return errors.New("the password is empty")
	case !utf8.ValidString(password):
		return errors.New("the password is not UTF-8")
	}
	// With GODEBUG=fips140=only MD5 panics. That a program can ask for the mode is of Go 1.26.
	defer func() {
		if recover() != nil {
			err = errors.New("it needs MD5, which this program forbids (GODEBUG=fips140=only)")
		}
	}()
	_ = digest("")
	return nil
}

// challenge is what a server has sent first.
type challenge struct {
	realm, nonce string
	utf8         bool
}

// parseChallenge reads a digest-challenge of RFC 2831, section 2.1.1.
func parseChallenge(token []byte) (challenge, error) {
	var realms, nonces, algorithms, qops, charsets []string
	known := map[string]*[]string{"realm": &realms, "nonce": &nonces, "algorithm": &algorithms, "qop": &qops, "charset": &charsets}
	err := directives(string(token), func(name, value string) {
		if list := known[name]; list != nil {
			*list = append(*list, value)
		}
	})
	if err != nil {
		return challenge{}, err
	}
	once := func(values []string, want string) bool { return len(values) == 1 && strings.EqualFold(values[0], want) }
	switch {
	case len(nonces) != 1 || nonces[0] == "":
		return challenge{}, fmt.Errorf("it has %d nonces, and must have one", len(nonces))
	case !once(algorithms, "md5-sess"):
		return challenge{}, errors.New("its algorithm is not md5-sess")
	case len(charsets) > 0 && !once(charsets, "utf-8"):
		return challenge{}, errors.New("its charset is not utf-8")
	case len(qops) > 0 && !slices.ContainsFunc(qops, offersAuth): // none means auth
		return challenge{}, errors.New("it offers no login without a security layer (qop auth)")
	}
	c := challenge{realm: realm, nonce: nonces[0], utf8: len(charsets) == 1}
	if len(realms) > 0 && !slices.Contains(realms, realm) {
		c.realm = realms[0]
	}
	return c, nil
}

// offersAuth reports whether a list of qop-values has auth.
func offersAuth(qops string) bool {
	for qop := range strings.SplitSeq(qops, ",") {
		if strings.EqualFold(strings.TrimSpace(qop), "auth") {
			return true
		}
	}
	return false
}

// directives calls f with every name=value of a list with commas. A value is a token or a
// quoted-string. Names come in lower case.
func directives(s string, f func(name, value string)) error {
	const blanks = " \t\r\n"
	for {
		s = strings.TrimLeft(s, blanks+",")
		if s == "" {
			return nil
		}
		name, rest, found := strings.Cut(s, "=")
		name = strings.TrimSpace(name)
		if !found || name == "" || strings.ContainsAny(name, blanks+`,"`) {
			return errors.New("it is no list of name=value")
		}
		value, rest, err := value(strings.TrimLeft(rest, blanks))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s = strings.TrimLeft(rest, blanks)
		if s != "" && s[0] != ',' {
			return fmt.Errorf("%s: there is no comma behind its value", name)
		}
		f(strings.ToLower(name), value)
	}
}

// value splits s behind the value that it begins with.
func value(s string) (value, rest string, err error) {
	if s == "" || s[0] != '"' {
		end := strings.IndexAny(s, ", \t\r\n")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], nil
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		_ = b.WriteByte(s[i])
	}
	return "", "", errors.New("its quotation has no end")
}
