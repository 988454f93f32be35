package sasl

import (
	"bytes"
	"crypto/md5" //nolint:gosec // DIGEST-MD5 is MD5
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// The constants that ZooKeeper's servers and clients put in place of a realm and of the
// name of the server.
const (
	realm = "zk-sasl-md5"
	uri   = "zookeeper/zk-sasl-md5"
)

const (
	maxToken   = 4096
	nonceBytes = 30
	nonceCount = 1
)

// step is what a login waits for.
type step int

const (
	stepHello    step = iota // a token that says nothing
	stepResponse             // the response to the challenge
	stepOver                 // nothing: every token is refused
)

// Login is the login of one connection.
type Login struct {
	users *Users
	step  step
	nonce string

	user   string
	proven bool
}

// NewLogin begins a login. The nonce is made from 30 random bytes.
func (u *Users) NewLogin(random func() byte) *Login {
	b := make([]byte, nonceBytes)
	for i := range b {
		b[i] = random()
	}
	return &Login{users: u, nonce: base64.StdEncoding.EncodeToString(b)}
}

// User returns the name that has logged in, and false while none has.
func (l *Login) User() (string, bool) { return l.user, l.proven }

// Challenged reports whether the next token is the response to a challenge.
func (l *Login) Challenged() bool { return l.step == stepResponse }

// Answer takes the client's next token and returns the server's answer.
func (l *Login) Answer(token []byte) ([]byte, error) {
	if len(token) > maxToken {
		return nil, ErrRefused
	}
	switch l.step {
	case stepHello: // the real server does not look at the token
		l.step = stepResponse
		return []byte(`realm="` + realm + `",nonce="` + l.nonce + `",charset=utf-8,algorithm=md5-sess`), nil
	case stepResponse:
		l.step = stepOver
		return l.verify(token)
	case stepOver:
	}
	return nil, ErrRefused
}

// verify checks the response to the challenge. The order of the checks is seen where a
// response has two faults.
func (l *Login) verify(token []byte) ([]byte, error) {
	d, ok := parse(token)
	if !ok {
		return nil, ErrRefused
	}
	if charset, ok := d["charset"]; ok && charset != "utf-8" {
		return nil, ErrRefused
	}
	if !number(d, "maxbuf", 10, nil) {
		return nil, ErrBroken
	}
	_, named := d["username"]
	cnonce, once := d["cnonce"]
	if !named || d["realm"] != realm || d["nonce"] != l.nonce || !once {
		return nil, ErrRefused
	}
	var count int64 = nonceCount
	if !number(d, "nonce-count", 16, &count) {
		return nil, ErrBroken
	}
	qop, chosen := d["qop"]
	if count != nonceCount || chosen && qop != "auth" || !strings.EqualFold(d["digest-uri"], uri) {
		return nil, ErrRefused
	}
	user := text(d["username"])
	password, known := l.users.password(user)
	if !known {
		return nil, ErrRefused
	}
	secret := slices.Concat(sum(latin1(user), latin1(realm), latin1(password)), []byte(":"+l.nonce+":"+cnonce))
	if authzid, ok := d["authzid"]; ok {
		secret = append(secret, ":"+authzid...)
	}
	prove := func(method string) string {
		return hexSum(hexSum(string(secret)), l.nonce, "00000001", cnonce, "auth", hexSum(method, d["digest-uri"]))
	}
	if d["response"] != prove("AUTHENTICATE") {
		return nil, ErrRefused
	}
	if !ValidName(user) {
		return nil, ErrBroken
	}
	l.user, l.proven = user, true
	return []byte("rspauth=" + prove("")), nil
}

// number reads a directive that must be a number if it is there.
func number(d map[string]string, key string, base int, to *int64) bool {
	v, ok := d[key]
	if !ok {
		return true
	}
	n, err := strconv.ParseInt(v, base, 32)
	if to != nil {
		*to = n
	}
	return err == nil
}

// sum is the MD5 of some parts with colons between them.
func sum(parts ...[]byte) []byte {
	s := md5.Sum(bytes.Join(parts, []byte(":"))) //nolint:gosec // DIGEST-MD5 is MD5
	return s[:]
}

func hexSum(parts ...string) string {
	s := md5.Sum([]byte(strings.Join(parts, ":"))) //nolint:gosec // DIGEST-MD5 is MD5
	return hex.EncodeToString(s[:])
}

// text is a directive as Java reads it: bytes that are not UTF-8 become U+FFFD.
func text(s string) string { return string([]rune(s)) }

// latin1 returns the bytes of a name or password that are hashed: ISO 8859-1 if every
// character is of that, or else UTF-8 (RFC 2831 section 2.1.2.1).
func latin1(s string) []byte {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return []byte(s)
		}
		out = append(out, byte(r))
	}
	return out
}

// Spoil returns an answer of the same length that proves nothing.
func Spoil(answer []byte) []byte {
	out := bytes.Clone(answer)
	last := &out[len(out)-1]
	if *last == '0' {
		*last = '1'
	} else {
		*last = '0'
	}
	return out
}
