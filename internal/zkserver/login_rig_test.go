package zkserver_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// The TestLogin tests hold for any server with a login configuration. They run on zktest
// as each release. They run on a real server alone when the environment variable of their
// kind names one: DOCENT_ZK_LOGIN_ and the kind in capitals. Such a server has the users of
// users() and enforces quotas. `go test ./conformance` in integration starts them.

// Kinds of servers.
const (
	loginOptional  = "optional"
	loginRequired  = "required"  // sessionRequireClientSASLAuth
	loginEither    = "either"    // enforce.auth.schemes=sasl,digest
	loginForgiving = "forgiving" // allowSaslFailedClients
	loginNoScheme  = "noscheme"  // no SASLAuthenticationProvider
)

// users are the names and passwords of the servers of the tests.
func users() map[string]string {
	return map[string]string{
		"docent": "s3cret", "other": "pw2", "super": "adminpw", "höß": "pässwörd", "€uro": "€", "at@realm": "pw3",
	}
}

func loginOptions(kind string) []zktest.Option {
	opts := []zktest.Option{zktest.WithEnforcedQuotas()}
	for name, password := range users() {
		opts = append(opts, zktest.WithSASLUser(name, password))
	}
	switch kind {
	case loginRequired:
		opts = append(opts, zktest.WithRequiredAuth())
	case loginEither:
		opts = append(opts, zktest.WithRequiredAuth("sasl", "digest"))
	case loginForgiving:
		opts = append(opts, zktest.WithSASLFailedClients())
	case loginNoScheme:
		opts = append(opts, zktest.WithoutSASLScheme())
	}
	return opts
}

// onLogin runs a test on the real server of a kind, or on zktest as each release.
func onLogin(t *testing.T, kind string, test func(*testing.T, subject)) {
	t.Helper()
	if addr := os.Getenv("DOCENT_ZK_LOGIN_" + strings.ToUpper(kind)); addr != "" {
		test(t, loginSubject(t, addr))
		return
	}
	for _, v := range releases() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			opts := append(loginOptions(kind), zktest.WithTick(time.Second), zktest.WithVersion(v))
			test(t, loginSubject(t, zktest.NewServer(t, opts...).Addr()))
		})
	}
}

// loginSubject makes a path for the test as the user docent.
func loginSubject(t *testing.T, addr string) subject {
	t.Helper()
	s := subject{addr: addr, version: releaseOf(t, addr), root: fmt.Sprintf("/login%d-%d", time.Now().UnixNano(), lastRoot.Add(1))}
	c := s.login(t, "docent")
	must(t, c, 1, create(s.root), 0)
	must(t, c, -11, nil, 0)
	return s
}

// login opens a session and logs in.
func (s subject) login(t *testing.T, user string) *raw {
	t.Helper()
	c := rawSession(t, s.addr)
	if err := c.login(response{user: user, password: users()[user]}); err != nil {
		t.Fatalf("login as %s: %v", user, err)
	}
	return c
}

// token sends a token of a login and returns the answer's code and token.
func (c *raw) token(p any) (code int32, token string, err error) {
	a, _, err := c.call(102, body(p))
	if err != nil {
		return 0, "", err
	}
	if a.zxid != 0 {
		return 0, "", fmt.Errorf("zxid %#x in the answer to a token", a.zxid)
	}
	d := dec{b: a.body}
	token = d.text()
	if d.short || len(d.b) > 0 {
		return 0, "", fmt.Errorf("body %x", a.body)
	}
	return a.err, token, nil
}

// response is what a client answers to a challenge, made independently of the server's own
// code. The zero values of the fields below the first line are those that work.
type response struct {
	user, password string

	uri, realm, authzid, cnonce string
	utf8                        bool // hash the name as UTF-8
	hashAuthzid                 bool // as RFC 2831 says
	edit                        func(string) string
}

// hash is MD5 of the parts with colons between them.
func hash(parts ...string) string {
	s := md5.Sum([]byte(strings.Join(parts, ":")))
	return string(s[:])
}

// make returns the response to a challenge, and the proof that the server owes.
func (r response) make(challenge string) (token, proof string) {
	or := func(v, def string) string {
		if v == "" {
			return def
		}
		return v
	}
	uri, realm := or(r.uri, "zookeeper/zk-sasl-md5"), or(r.realm, "zk-sasl-md5")
	cnonce := or(r.cnonce, "E8RyXYNNQDgqQ8oVkpVD5dzSyXwHA")
	_, rest, _ := strings.Cut(challenge, `nonce="`)
	nonce, _, _ := strings.Cut(rest, `"`)
	latin := func(s string) string {
		if r.utf8 || strings.ContainsFunc(s, func(r rune) bool { return r > 0xff }) {
			return s
		}
		var out []byte
		for _, r := range s {
			out = append(out, byte(r))
		}
		return string(out)
	}
	secret := []string{hash(latin(r.user), latin(realm), latin(r.password)), nonce, cnonce}
	if r.hashAuthzid {
		secret = append(secret, r.authzid)
	}
	prove := func(method string) string {
		digest := func(parts ...string) string { return hex.EncodeToString([]byte(hash(parts...))) }
		return digest(digest(secret...), nonce, "00000001", cnonce, "auth", digest(method, uri))
	}
	quote := func(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
	token = "charset=utf-8,username=" + quote(r.user) + ",realm=" + quote(realm) + ",nonce=" + quote(nonce) +
		",nc=00000001,cnonce=" + quote(cnonce) + ",digest-uri=" + quote(uri) + ",maxbuf=65536,response=" +
		prove("AUTHENTICATE") + ",qop=auth"
	if r.authzid != "" {
		token += ",authzid=" + quote(r.authzid)
	}
	if r.edit != nil {
		token = r.edit(token)
	}
	return token, "rspauth=" + prove("")
}

var errNoProof = errors.New("the server has not proved anything")

// refusal is the error of a login that the server refuses.
type refusal int32

// Error returns the code.
func (r refusal) Error() string { return fmt.Sprintf("refused with %d", int32(r)) }

// login runs a whole login.
func (c *raw) login(r response) error {
	code, challenge, err := c.token([]byte{})
	switch {
	case err != nil:
		return err
	case code != 0:
		return refusal(code)
	}
	token, want := r.make(challenge)
	code, proof, err := c.token([]byte(token))
	switch {
	case err != nil:
		return err
	case code != 0:
		return refusal(code)
	case proof != want:
		return errNoProof
	}
	return nil
}

// outcome is the end of a login in one word or number.
func outcome(err error) string {
	var code refusal
	switch {
	case err == nil:
		return "in"
	case errors.Is(err, errNoProof):
		return "no proof"
	case errors.As(err, &code):
		return fmt.Sprint(int32(code))
	default:
		return kindOfError(err)
	}
}

// isOver fails the test unless the connection is closed.
func isOver(t *testing.T, c *raw) {
	t.Helper()
	if _, err := c.readFrame(); kindOfError(err) != "closed" {
		t.Errorf("the connection goes on: %v", err)
	}
}

// identities are the answer to whoAmI in order, without the address.
func identities(t *testing.T, c *raw) []string {
	t.Helper()
	d := dec{b: must(t, c, 107, nil, 0).body}
	var out []string
	for n := d.int(); n > 0 && !d.short; n-- {
		if scheme, name := d.text(), d.text(); scheme != "ip" {
			out = append(out, scheme+"="+name)
		}
	}
	slices.Sort(out)
	return out
}
