package client_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// What cannot work is an error of Connect, and no panic.
func TestSASLOptions(t *testing.T) {
	t.Parallel()
	good := client.DigestMD5("docent", "s3cret")
	for name, tt := range map[string]struct {
		opts []client.Option
		want string
	}{
		"nil":     {[]client.Option{client.WithSASL(nil)}, "WithSASL needs a mechanism"},
		"twice":   {[]client.Option{client.WithSASL(good), client.WithSASL(good)}, "WithSASL was given twice"},
		"no user": {[]client.Option{client.WithSASL(client.DigestMD5("", "s3cret"))}, "DigestMD5: the user has no name"},
		"no text": {[]client.Option{client.WithSASL(client.DigestMD5("docent", "s3cret\xff"))}, "DigestMD5: the password is not UTF-8"},
	} {
		_, err := client.Connect(t.Context(), "zk:2181", append(tt.opts, testrig.Quiet())...)
		t.Run(name, func(t *testing.T) { t.Parallel(); wantSays(t, err, tt.want, "s3cret") })
	}
}

// A program that forbids MD5 hears of it from Connect.
func TestDigestMD5WithoutMD5(t *testing.T) {
	t.Parallel()
	if os.Getenv("DOCENT_NO_MD5") != "" {
		_, err := client.Connect(t.Context(), "zk:2181", testrig.Quiet(), client.WithSASL(client.DigestMD5("docent", "s3cret")))
		fmt.Fprintln(os.Stderr, "connect:", err)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDigestMD5WithoutMD5$")
	cmd.Env = append(os.Environ(), "DOCENT_NO_MD5=1", "GODEBUG=fips140=only")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "connect: client: DigestMD5: it needs MD5, which this program forbids") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDigestMD5IsRedacted(t *testing.T) {
	t.Parallel()
	m := client.DigestMD5("docent", "s3cret")
	begun, err := m.Begin(t.Context(), "zk:2181")
	if err != nil {
		t.Fatal(err)
	}
	cfg := struct{ Mechanism, Login any }{m, begun}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, strings.Repeat(verb, 3)+"\n", m, begun, cfg)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("m", "mechanism", m, "login", begun, "within", cfg)
	}
	b, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	for _, secret := range []string{"s3cret", hex.EncodeToString([]byte("s3cret")), strings.ToUpper(hex.EncodeToString([]byte("s3cret"))), "115 51 99"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the password shows as %q in\n%s", secret, &out)
		}
	}
	if !strings.Contains(out.String(), `DIGEST-MD5 user "docent"`) {
		t.Errorf("the user does not show:\n%s", &out)
	}
}

// A new login of one mechanism never repeats the client's nonce.
func TestDigestMD5NonceIsFresh(t *testing.T) {
	t.Parallel()
	m := client.DigestMD5("docent", "s3cret")
	seen := map[string]bool{}
	for range 100 {
		begun, err := m.Begin(context.WithoutCancel(t.Context()), "zk:2181")
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = begun.Next(nil)
		answer, _, err := begun.Next([]byte(`nonce="n",algorithm=md5-sess`))
		if err != nil {
			t.Fatal(err)
		}
		_, nonce, _ := strings.Cut(string(answer), `,cnonce="`)
		nonce, _, _ = strings.Cut(nonce, `"`)
		if len(nonce) < 20 || seen[nonce] {
			t.Fatalf("nonce %q, again %v", nonce, seen[nonce])
		}
		seen[nonce] = true
	}
}

// wantSays checks that err says one thing, and not another, as a password.
func wantSays(t testing.TB, err error, has, lacks string) {
	t.Helper()
	testrig.WantErrText(t, err, has)
	if err != nil && strings.Contains(err.Error(), lacks) {
		t.Errorf("error %q says %q", err, lacks)
	}
}
