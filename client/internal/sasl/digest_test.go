package sasl_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docent-go/docent/client/internal/sasl"
)

// The exchange of a server of release 3.8.0 with a login that it accepted.
const (
	seenChallenge = `realm="zk-sasl-md5",nonce="GhzoIJA2TypCrr+ONg/l1u/rsv7h/h8o9sNG6ZNf",charset=utf-8,algorithm=md5-sess`
	seenNonce     = "E8RyXYNNQDgqQ8oVkpVD5dzSyXwHA/jW"
	seenAnswer    = `charset=utf-8,username="docent",realm="zk-sasl-md5",nonce="GhzoIJA2TypCrr+ONg/l1u/rsv7h/h8o9sNG6ZNf",nc=00000001,` +
		`cnonce="E8RyXYNNQDgqQ8oVkpVD5dzSyXwHA/jW",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=89f3c93cd8ac327c333a0990af7c534b,qop=auth`
	seenProof = "rspauth=2236d38fe8d84947dfe903463600123a"
)

// answered is a login that has got as far as its answer.
func answered(t *testing.T, user, password, challenge string) (*sasl.Digest, string) {
	t.Helper()
	d := sasl.NewDigest(user, password, seenNonce)
	if first, proven, err := d.Next(nil); first == nil || len(first) != 0 || proven || err != nil {
		t.Fatalf("first token %q, %v, %v; want an empty one that is not null", first, proven, err)
	}
	answer, proven, err := d.Next([]byte(challenge))
	if err != nil || proven {
		t.Fatalf("answer to %s: %v, %v", challenge, proven, err)
	}
	return d, string(answer)
}

func TestDigestAsSeen(t *testing.T) {
	t.Parallel()
	d, answer := answered(t, "docent", "s3cret", seenChallenge)
	if answer != seenAnswer {
		t.Errorf("answer\n%s, want\n%s", answer, seenAnswer)
	}
	if rest, proven, err := d.Next([]byte(seenProof)); rest != nil || !proven || err != nil {
		t.Errorf("after the proof: %q, %v, %v", rest, proven, err)
	}
	if _, proven, err := d.Next([]byte(seenProof)); proven || err == nil {
		t.Errorf("after the end: %v, %v", proven, err)
	}
}

// The example of RFC 2831, section 4, has another name of the service. So it is the formula
// of this test that is compared with it.
func TestReferenceIsTheRFCs(t *testing.T) {
	t.Parallel()
	got := reference("chris", "elwood.innosoft.com", "secret", "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "AUTHENTICATE:imap/elwood.innosoft.com")
	if want := "d388dad90d4bbd760a152321f2143af7"; got != want {
		t.Errorf("response %s, want %s", got, want)
	}
}

// reference is the response of RFC 2831; user, realm and password are bytes as they are hashed.
func reference(user, realm, password, nonce, cnonce, a2 string) string {
	h := func(s string) string { sum := md5.Sum([]byte(s)); return string(sum[:]) }
	x := func(s string) string { return hex.EncodeToString([]byte(h(s))) }
	return x(x(h(user+":"+realm+":"+password)+":"+nonce+":"+cnonce) + ":" + nonce + ":00000001:" + cnonce + ":auth:" + x(a2))
}

func TestDigestChallenges(t *testing.T) {
	t.Parallel()
	const auth = "AUTHENTICATE:zookeeper/zk-sasl-md5"
	for _, tt := range []struct {
		name, user, password, challenge string
		has                             string // of the answer
		response                        string // "" if the challenge is to be refused
		err                             string
	}{
		{"other order, more directives, blanks", "u", "p", `maxbuf=65536 , algorithm=md5-sess,, stale=true,cipher="3des,rc4",nonce="n", realm="zk-sasl-md5",charset=utf-8`, `nonce="n"`, reference("u", "zk-sasl-md5", "p", "n", seenNonce, auth), ""},
		{"names in capitals", "u", "p", `NONCE="n",Algorithm=MD5-SESS`, `username="u"`, reference("u", "zk-sasl-md5", "p", "n", seenNonce, auth), ""},
		{"escapes", "u", "p", `nonce="a\"b\\c",algorithm="md5-sess"`, `nonce="a\"b\\c"`, reference("u", "zk-sasl-md5", "p", `a"b\c`, seenNonce, auth), ""},
		{"escapes in the name", `q"b\u`, "p", seenChallenge, `username="q\"b\\u"`, reference(`q"b\u`, "zk-sasl-md5", "p", "GhzoIJA2TypCrr+ONg/l1u/rsv7h/h8o9sNG6ZNf", seenNonce, auth), ""},
		{"no realm", "u", "p", `nonce="n",algorithm=md5-sess,charset=utf-8`, `realm="zk-sasl-md5"`, reference("u", "zk-sasl-md5", "p", "n", seenNonce, auth), ""},
		{"several realms", "u", "p", `realm="a",realm="zk-sasl-md5",nonce="n",algorithm=md5-sess`, `realm="zk-sasl-md5"`, reference("u", "zk-sasl-md5", "p", "n", seenNonce, auth), ""},
		{"another realm", "u", "p", `realm="a,b",nonce="n",algorithm=md5-sess`, `realm="a,b"`, reference("u", "a,b", "p", "n", seenNonce, auth), ""},
		{"layers beside none", "u", "p", `nonce="n",algorithm=md5-sess,qop="auth-int, auth"`, "qop=auth", reference("u", "zk-sasl-md5", "p", "n", seenNonce, auth), ""},
		{"letters of ISO 8859-1", "höß", "pässwörd", seenChallenge, `username="höß"`, reference("h\xf6\xdf", "zk-sasl-md5", "p\xe4ssw\xf6rd", "GhzoIJA2TypCrr+ONg/l1u/rsv7h/h8o9sNG6ZNf", seenNonce, auth), ""},
		{"other letters", "höß", "€", seenChallenge, `username="höß"`, reference("h\xf6\xdf", "zk-sasl-md5", "€", "GhzoIJA2TypCrr+ONg/l1u/rsv7h/h8o9sNG6ZNf", seenNonce, auth), ""},
		{"ISO 8859-1 only", "höß", "p", `nonce="n",algorithm=md5-sess`, "username=\"h\xf6\xdf\"", reference("h\xf6\xdf", "zk-sasl-md5", "p", "n", seenNonce, auth), ""},
		{"name outside of ISO 8859-1", "€", "p", `nonce="n",algorithm=md5-sess`, "", "", "does not take UTF-8"},
		{"password outside of ISO 8859-1", "u", "€", `nonce="n",algorithm=md5-sess`, "", "", "the password"},
		{"layers only", "u", "p", `nonce="n",algorithm=md5-sess,qop="auth-int,auth-conf"`, "", "", "security layer"},
		{"no nonce", "u", "p", `algorithm=md5-sess`, "", "", "0 nonces"},
		{"empty nonce", "u", "p", `nonce="",algorithm=md5-sess`, "", "", "nonces"},
		{"two nonces", "u", "p", `nonce="a",nonce="b",algorithm=md5-sess`, "", "", "2 nonces"},
		{"no algorithm", "u", "p", `nonce="n"`, "", "", "md5-sess"},
		{"another algorithm", "u", "p", `nonce="n",algorithm=md5`, "", "", "md5-sess"},
		{"another charset", "u", "p", `nonce="n",algorithm=md5-sess,charset=utf-16`, "", "", "charset"},
		{"no list", "u", "p", `hello`, "", "", "name=value"},
		{"nameless", "u", "p", `="n"`, "", "", "name=value"},
		{"unended", "u", "p", `nonce="n`, "", "", "no end"},
		{"no comma", "u", "p", `nonce="n" algorithm=md5-sess`, "", "", "no comma"},
		{"rspauth at once", "u", "p", seenProof, "", "", "nonces"},
		{"empty", "u", "p", "", "", "", "offers no login"},
	} {
		d := sasl.NewDigest(tt.user, tt.password, seenNonce)
		_, _, _ = d.Next(nil)
		answer, proven, err := d.Next([]byte(tt.challenge))
		switch {
		case proven:
			t.Errorf("%s: proven", tt.name)
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) || answer != nil {
				t.Errorf("%s: %q, %v; want %q", tt.name, answer, err, tt.err)
			}
		case err != nil || !strings.Contains(string(answer), tt.has) || !strings.Contains(string(answer), ",response="+tt.response+","):
			t.Errorf("%s: %q, %v; want %q with response %s", tt.name, answer, err, tt.has, tt.response)
		}
	}
}

// What is no proof of the server is no login, whatever the server says.
func TestDigestProofs(t *testing.T) {
	t.Parallel()
	for proof, want := range map[string]string{
		"":                          "without a proof",
		"rspauth=":                  "wrong",
		"rspauth=" + seenNonce:      "wrong",
		seenProof + "," + seenProof: "no proof",
		seenProof + "0":             "wrong",
		"ok=yes":                    "no proof",
		seenChallenge:               "no proof",
		"rspauth":                   "name=value",
		strings.ToUpper(seenProof):  "wrong",
	} {
		d, _ := answered(t, "docent", "s3cret", seenChallenge)
		rest, proven, err := d.Next([]byte(proof))
		if rest != nil || proven || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, %v; want %q", proof, rest, proven, err, want)
		}
		if _, proven, _ := d.Next([]byte(seenProof)); proven {
			t.Errorf("%q: a later proof counts", proof)
		}
	}
}

func TestRefusedSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	d := sasl.NewDigest("docent", "s3cret", seenNonce)
	said := []string{d.Refused()}
	for _, token := range []string{"", seenChallenge, seenProof} {
		_, _, _ = d.Next([]byte(token))
		said = append(said, d.Refused())
	}
	for i, want := range []string{"", "fips-mode=false", `user "docent" or the password is wrong`, ""} {
		if !strings.Contains(said[i], want) || want == "" && said[i] != "" {
			t.Errorf("after %d tokens: %q, want %q", i, said[i], want)
		}
	}
}

func TestDigestIsRedacted(t *testing.T) {
	t.Parallel()
	d, answer := answered(t, "docent", "s3cret", seenChallenge)
	text := fmt.Sprintf("%v %+v %#v %s %q %x %d", d, d, d, d, d, d, d)
	for _, secret := range []string{"s3cret", hex.EncodeToString([]byte("s3cret")), seenProof[8:], seenNonce} {
		if strings.Contains(text, secret) {
			t.Errorf("%q shows %q", text, secret)
		}
	}
	if !strings.Contains(text, "docent") || strings.Contains(answer, "s3cret") {
		t.Errorf("%q, answer %q", text, answer)
	}
}

func TestUsable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ user, password, want string }{
		{"u", "p", ""}, {"", "p", "no name"}, {"u", "", "password is empty"}, {"\xff", "p", "UTF-8"}, {"u", "s3cret\xff", "UTF-8"},
	} {
		err := sasl.Usable(tt.user, tt.password)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%q, %q: %v, want %q", tt.user, tt.password, err, tt.want)
		}
	}
}

// A program that forbids MD5 gets an error and no panic.
func TestUsableWithoutMD5(t *testing.T) {
	t.Parallel()
	if os.Getenv("DOCENT_NO_MD5") != "" {
		fmt.Fprintln(os.Stderr, "usable:", sasl.Usable("u", "p"))
		return
	}
	for mode, want := range map[string]string{"only": "usable: it needs MD5", "on": "usable: <nil>"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUsableWithoutMD5$")
		cmd.Env = append(os.Environ(), "DOCENT_NO_MD5=1", "GODEBUG=fips140="+mode)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("fips140=%s: %v\n%s", mode, err, out)
		}
	}
}
