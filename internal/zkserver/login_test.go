package zkserver_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/zktest"
)

func acl(perms int32, scheme, id string) []rawACL { return []rawACL{{perms, scheme, id}} }

func createFor(path string, list []rawACL) []byte { return body(path, []byte{}, list, int32(0)) }

func TestLoginChallenge(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		form := regexp.MustCompile(`^realm="zk-sasl-md5",nonce="[A-Za-z0-9+/]{40}",charset=utf-8,algorithm=md5-sess$`)
		seen := map[string]bool{}
		for range 3 {
			code, challenge, err := rawSession(t, srv.addr).token([]byte{})
			if err != nil || code != 0 || !form.MatchString(challenge) || seen[challenge] {
				t.Errorf("challenge %q, code %d, %v", challenge, code, err)
			}
			seen[challenge] = true
		}
	})
}

// TestLoginResponses sends every kind of response, right and wrong.
func TestLoginResponses(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		for name, tc := range responses() {
			c := rawSession(t, srv.addr)
			r := tc.r
			if r.user == "" {
				r.user, r.password = "docent", "s3cret"
			}
			if got := outcome(c.login(r)); got != tc.want {
				t.Errorf("%s: %s, want %s", name, got, tc.want)
			}
			switch tc.want {
			case "in":
				id := r.user
				if got := identities(t, c); !slices.Contains(got, "sasl="+id) {
					t.Errorf("%s: is %v, want sasl=%s", name, got, id)
				}
				must(t, c, -11, nil, 0)
			default:
				isOver(t, c)
			}
		}
	})
}

type responseCase struct {
	r    response
	want string
}

func edited(edit func(string) string, want string) responseCase {
	return responseCase{response{edit: edit}, want}
}

func replaced(old, now, want string) responseCase {
	return edited(func(s string) string { return strings.Replace(s, old, now, 1) }, want)
}

func responses() map[string]responseCase {
	const refused, broken = "-115", "closed"
	return map[string]responseCase{
		"right":                   {response{}, "in"},
		"wrong password":          {response{user: "docent", password: "S3cret"}, refused},
		"no password":             {response{user: "docent"}, refused},
		"other user's password":   {response{user: "docent", password: "pw2"}, refused},
		"another host in the uri": {response{uri: "zookeeper/127.0.0.1"}, refused},
		"the uri in capitals":     {response{uri: "ZooKeeper/ZK-sasl-md5"}, "in"},
		"another realm":           {response{realm: "realm"}, refused},
		"the realm in capitals":   {response{realm: "ZK-SASL-MD5"}, refused},
		"authzid, not hashed":     {response{authzid: "docent"}, refused},
		"authzid":                 {response{authzid: "docent", hashAuthzid: true}, "in"},
		"authzid of another user": {response{authzid: "other", hashAuthzid: true}, "in"}, // and is docent all the same
		"ISO 8859-1":              {response{user: "höß", password: "pässwörd"}, "in"},
		"ISO 8859-1 as UTF-8":     {response{user: "höß", password: "pässwörd", utf8: true}, refused},
		"beyond ISO 8859-1":       {response{user: "€uro", password: "€"}, "in"},
		"a name with a realm":     {response{user: "at@realm", password: "pw3"}, "in"},
		"without charset":         replaced("charset=utf-8,", "", "in"),
		"another charset":         replaced("charset=utf-8,", "charset=iso-8859-1,", refused),
		"a charset in capitals":   replaced("charset=utf-8,", "charset=UTF-8,", refused),
		"without realm":           replaced(`realm="zk-sasl-md5",`, "", refused),
		"empty realm":             replaced(`realm="zk-sasl-md5",`, `realm="",`, refused),
		"without username":        replaced("username=", "x=", refused),
		"without nonce":           replaced(",nonce=", ",x=", refused),
		"another nonce":           replaced(`,nonce="`, `,nonce="x`, refused),
		"without cnonce":          replaced(",cnonce=", ",x=", refused),
		"another cnonce":          replaced(`,cnonce="`, `,cnonce="x`, refused),
		"without uri":             replaced(",digest-uri=", ",x=", refused),
		"without response":        replaced(",response=", ",x=", refused),
		"response in capitals":    edited(capitalResponse, refused),
		"without nc":              replaced("nc=00000001,", "", "in"),
		"another nc":              replaced("nc=00000001,", "nc=00000002,", "in"), // Java looks for nonce-count
		"nonce-count":             replaced("nc=00000001,", "nonce-count=00000001,", "in"),
		"another nonce-count":     replaced("nc=00000001,", "nonce-count=00000002,", refused),
		"nonce-count is hex":      replaced("nc=00000001,", "nonce-count=x,", broken),
		"nonce-count too large":   replaced("nc=00000001,", "nonce-count=80000000,", broken),
		"without maxbuf":          replaced("maxbuf=65536,", "", "in"),
		"maxbuf is no number":     replaced("maxbuf=65536,", "maxbuf=x,", broken),
		"maxbuf is negative":      replaced("maxbuf=65536,", "maxbuf=-1,", "in"),
		"maxbuf is empty":         replaced("maxbuf=65536,", "maxbuf=,", broken),
		"without qop":             replaced(",qop=auth", "", "in"),
		"another qop":             replaced(",qop=auth", ",qop=auth-int", refused),
		"unknown qop":             replaced(",qop=auth", ",qop=x", refused),
		"unknown directive":       replaced(",qop=auth", `,qop=auth,cipher="3des",what=ever`, "in"),
		"username twice":          replaced(",qop=auth", `,qop=auth,username="docent"`, refused),
		"auth-param twice":        replaced(",qop=auth", `,auth-param=1,auth-param=2`, refused),
		"unknown twice":           replaced(",qop=auth", ",what=1,what=2", "in"),
		"key in capitals":         replaced("username=", "USERNAME=", "in"),
		"spaces":                  edited(func(s string) string { return " ,, " + strings.ReplaceAll(s, ",", " ,\t") }, "in"),
		"spaces for commas":       edited(func(s string) string { return strings.ReplaceAll(s, ",", "\r\n ") }, "in"),
		"spaces around =":         replaced(",cnonce=", ",cnonce =  ", "in"),
		"comma at the end":        edited(func(s string) string { return s + "," }, "in"),
		"a key at the end":        edited(func(s string) string { return s + ",x" }, "in"),
		"a space after that":      edited(func(s string) string { return s + ",x " }, refused),
		"a key with a comma":      replaced("charset=utf-8,", "x,", refused),
		"an empty key":            replaced("charset=utf-8,", "=x,", refused),
		"nothing behind =":        edited(func(s string) string { return s + ",x=" }, refused),
		"text behind a quote":     replaced(`realm="zk-sasl-md5",`, `realm="zk-sasl-md5"x,`, refused),
		"space behind a quote":    replaced(`realm="zk-sasl-md5",`, `realm="zk-sasl-md5" `, "in"),
		"an open quote":           edited(func(s string) string { return s + `,x="` }, refused),
		"an escape at the end":    edited(func(s string) string { return s + `,x="\` }, refused),
		"escapes":                 replaced(`realm="zk-sasl-md5"`, `realm="\z\k-sasl-md5"`, "in"),
		"values without quotes":   replaced(`realm="zk-sasl-md5"`, `realm=zk-sasl-md5`, "in"),
		"quoted charset":          replaced("charset=utf-8,", `charset="utf-8",`, "in"),
		"the longest":             edited(func(s string) string { return s + ",x=" + strings.Repeat("x", 4096-3-len(s)) }, "in"),
		"too long":                edited(func(s string) string { return s + ",x=" + strings.Repeat("x", 4096-2-len(s)) }, refused),
		"nothing":                 edited(func(string) string { return "" }, refused),
		"no directives":           edited(func(string) string { return "hello" }, refused),
	}
}

func capitalResponse(s string) string {
	before, rest, _ := strings.Cut(s, "response=")
	return before + "response=" + strings.ToUpper(rest[:32]) + rest[32:]
}

// TestLoginUnknownUser shows ZOOKEEPER-4839. An unknown user has the password of the user
// who was looked up last.
//
//nolint:paralleltest,tparallel // on a real server the last user is that of any test
func TestLoginUnknownUser(t *testing.T) {
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		if got := outcome(rawSession(t, srv.addr).login(response{user: "nobody", password: "nothing"})); got != "-115" {
			t.Errorf("unknown user: %s", got)
		}
		want := "in"
		if srv.version == zktest.ZooKeeper39 {
			want = "-115"
		}
		srv.login(t, "docent")
		c := rawSession(t, srv.addr)
		if got := outcome(c.login(response{user: "nobody", password: "s3cret"})); got != want {
			t.Errorf("unknown user with the password of the last: %s, want %s", got, want)
		}
	})
}

func TestLoginFirstToken(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		c := rawSession(t, srv.addr)
		if code, token, err := c.token([]byte("what")); code != 0 || !strings.HasPrefix(token, "realm=") || err != nil {
			t.Errorf("a token before the challenge: %d %q %v", code, token, err)
		}
		c = rawSession(t, srv.addr)
		if code, token, err := c.token(make([]byte, 4097)); code != -115 || token != "<null>" || err != nil {
			t.Errorf("a long token before the challenge: %d %q %v", code, token, err)
		}
		isOver(t, c)
		c = rawSession(t, srv.addr)
		if _, _, err := c.token(null{}); kindOfError(err) != "closed" {
			t.Errorf("a null token: %v", err)
		}
		c = rawSession(t, srv.addr)
		if _, _, err := c.call(102, nil); kindOfError(err) != "closed" {
			t.Errorf("a request without a token: %v", err)
		}
		c = rawSession(t, srv.addr)
		for range 2 { // the second is an empty response
			_, _, err := c.token([]byte{})
			if err != nil {
				t.Error(err)
			}
		}
		isOver(t, c)
	})
}

func TestLoginTwice(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		c := srv.login(t, "docent")
		if code, token, err := c.token([]byte{}); code != -115 || token != "<null>" || err != nil {
			t.Errorf("a second login: %d %q %v", code, token, err)
		}
		isOver(t, c)
	})
}

// TestLoginOfConnection checks that rights belong to the connection, and that a login may
// come at any time of it.
func TestLoginOfConnection(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		path := srv.root + "/mine"
		c := srv.login(t, "docent")
		must(t, c, 1, createFor(path, acl(31, "sasl", "docent")), 0)
		must(t, c, 4, exists(path), 0)
		_ = c.Close()
		again := dialRaw(t, srv.addr)
		if err := again.handshake(0, 30_000, c.session, c.password); err != nil {
			t.Fatal(err)
		}
		must(t, again, 4, exists(path), -102)
		if err := again.login(response{user: "docent", password: "s3cret"}); err != nil {
			t.Fatal(err)
		}
		must(t, again, 4, exists(path), 0)
		must(t, srv.login(t, "other"), 4, exists(path), -102)
		must(t, srv.login(t, "super"), 4, exists(path), 0) // the name super matches every id
	})
}

// TestLoginMixes puts requests, an auth request and pings between the tokens.
func TestLoginMixes(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		c := rawSession(t, srv.addr)
		must(t, c, 4, exists("/"), 0)
		_, challenge, err := c.token([]byte{})
		if err != nil {
			t.Fatal(err)
		}
		must(t, c, 4, exists("/"), 0)
		must(t, c, 11, nil, 0)
		must(t, c, 100, body(int32(0), "digest", []byte("u:p")), 0)
		token, want := response{user: "docent", password: "s3cret"}.make(challenge)
		if code, proof, err := c.token([]byte(token)); code != 0 || proof != want || err != nil {
			t.Fatalf("%d %q %v", code, proof, err)
		}
		if got := fmt.Sprint(identities(t, c)); got != "[digest=u sasl=docent]" {
			t.Errorf("is %s", got)
		}
		must(t, c, 1, createFor(srv.root+"/both", acl(31, "auth", "")), 0)
		d := dec{b: must(t, c, 6, body(srv.root+"/both"), 0).body}
		got := showACL(&d)
		if !strings.Contains(got, "31:sasl:docent") || !strings.Contains(got, "31:digest:u:") {
			t.Errorf("auth: became %s", got)
		}
	})
}

func TestLoginScheme(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		c := rawSession(t, srv.addr)
		must(t, c, 1, createFor(srv.root+"/a", acl(31, "auth", "")), -114)
		if _, _, err := c.call(100, body(int32(0), "sasl", []byte("docent"))); err != nil {
			t.Error(err)
		}
		isOver(t, c)
		c = srv.login(t, "docent")
		for id, code := range map[any]int32{
			"docent": 0, "docent@R": 0, "docent/h@R": 0, "": 0, "a/b/c": 0, "a/b/c@R": -114, "a@b@c": -114, "a@b/c": -114,
			"@": 0, "DOCENT": 0, null{}: -5,
		} {
			list := []rawACL{{31, "sasl", id}, {31, "world", "anyone"}}
			path := srv.root + "/id"
			must(t, c, 1, body(path, []byte{}, list, int32(0)), code)
			if code == 0 {
				must(t, c, 2, body(path, int32(-1)), 0)
			}
		}
		must(t, c, 1, createFor(srv.root+"/auth", acl(31, "auth", "")), 0)
		d := dec{b: must(t, c, 6, body(srv.root+"/auth"), 0).body}
		if got := showACL(&d); got != `["31:sasl:docent"]` {
			t.Errorf("auth: became %s", got)
		}
		must(t, rawSession(t, srv.addr), 6, body(srv.root+"/auth"), -102)
	})
}

// TestLoginWithoutScheme is about a server that has a JAAS file, and no
// SASLAuthenticationProvider.
func TestLoginWithoutScheme(t *testing.T) {
	t.Parallel()
	onLogin(t, loginNoScheme, func(t *testing.T, srv subject) {
		c := srv.login(t, "docent")
		must(t, c, 1, createFor(srv.root+"/a", acl(31, "sasl", "docent")), -114)
		must(t, c, 1, createFor(srv.root+"/a", acl(31, "auth", "")), -114)
		if got := identities(t, c); !slices.Contains(got, "sasl=") { // the provider tells the name
			t.Errorf("is %v", got)
		}
	})
}
