package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// encrypted is the address of a port that speaks TLS for srv, and the file with its
// certificate, which is valid for so long.
func encrypted(t *testing.T, srv *zktest.Server, valid time.Duration) (addr, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, text, text, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	front(t, srv, in)
	return in.Addr().String(), ca
}

// front makes a listener another address of srv.
func front(t *testing.T, srv *zktest.Server, in net.Listener) {
	t.Helper()
	t.Cleanup(func() { _ = in.Close() })
	go func() { // ends with the listener
		for conn, err := in.Accept(); err == nil; conn, err = in.Accept() {
			go forward(t, srv, conn)
		}
	}()
}

func forward(t *testing.T, srv *zktest.Server, conn net.Conn) {
	t.Helper()
	out, err := srv.DialContext(t.Context(), "tcp", srv.Addr())
	if err != nil {
		_ = conn.Close()
		return
	}
	go func() {
		_, _ = io.Copy(out, conn)
		_ = out.Close()
	}()
	_, _ = io.Copy(conn, out)
	_ = conn.Close()
}

func TestCheckEncryption(t *testing.T) {
	t.Parallel()
	srv := server(t)
	addr, ca := encrypted(t, srv, 365*24*time.Hour)
	s := do(t, nil, "check", "--servers", addr, "--tls-ca", ca)
	if s.code != 0 || !strings.Contains(s.out, "TLS 1.3") || !strings.Contains(s.out, "3.9.5") || strings.Contains(s.out, "warn") {
		t.Errorf("%+v", s)
	}
	addr, ca = encrypted(t, srv, 24*time.Hour)
	if s := do(t, nil, "check", "--servers", addr, "--tls-ca", ca); s.code != 0 || !strings.Contains(s.out, "replace it") {
		t.Errorf("a certificate that ends soon: %+v", s)
	}
	if s := do(t, srv, "check", "--auth", "digest:a:b"); s.code != 0 || !strings.Contains(s.out, "in clear") {
		t.Errorf("credentials in clear: %+v", s)
	}
}

func TestCheckChrootAndServers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	create(t, srv, "/app", "")
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front(t, srv, other)
	s := do(t, nil, "check", "--servers", srv.Addr()+","+other.Addr().String()+"/app")
	if s.code != 0 || !strings.Contains(s.out, "/app exists") || !strings.Contains(s.out, "answers: 3.9.5-zktest standalone") {
		t.Errorf("%+v", s)
	}
	if s := do(t, nil, "check", "--servers", srv.Addr()+"/none"); s.code != exitFailure || !strings.Contains(s.out, "chroot does not exist") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "check", "locks"); s.code != exitUsage || !strings.Contains(s.err, `starts with "/"`) || s.out != "" {
		t.Errorf("a relative path: %+v", s)
	}
}

func TestCheckLease(t *testing.T) {
	t.Parallel()
	if s := do(t, server(t), "check", "--session-timeout", "6s"); s.code != 0 || !strings.Contains(s.out, "shorter --grace") {
		t.Errorf("too short for docent run: %+v", s)
	}
	if s := do(t, server(t, zktest.WithTick(3*time.Second)), "check"); s.code != 0 || !strings.Contains(s.out, "is 3s") || !strings.Contains(s.out, "warn") {
		t.Errorf("a long tick: %+v", s)
	}
	if s := do(t, server(t), "check"); s.code != 0 || !strings.Contains(s.out, "tickTime 2s") {
		t.Errorf("%+v", s)
	}
}

// A right that is missing makes the check fail, and so the command.
func TestCheckRights(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithAuth("digest", "a:b"))
	if _, err := c.Create(t.Context(), "/locks", nil); err != nil {
		t.Fatal(err)
	}
	if s := do(t, srv, "check", "/locks"); s.code != exitFailure || !strings.Contains(s.out, "fail") || !strings.Contains(s.err, "a check has failed") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "check", "/locks", "--auth", "digest:a:b"); s.code != 0 {
		t.Errorf("with credentials: %+v", s)
	}
}

// Shells get paths one level at a time, and the nodes of contenders.
func TestCompletion(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithName("billing"))
	create(t, srv, "/app", "")
	create(t, srv, "/apple", "")
	create(t, srv, "/app/config", "")
	latch, err := recipes.NewLeaderLatch(c, "/app/leader")
	if err != nil {
		t.Fatal(err)
	}
	term, err := latch.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Close() })
	node := filepath.Base(term.Path())
	for _, tt := range []struct {
		args []string
		want string // the first lines
	}{
		{[]string{"ls", "/ap"}, "/app\n/apple\n:6\n"},
		{[]string{"queue", "/app/"}, "/app/config\n/app/leader\n:6\n"},
		{[]string{"queue", "/app/config", ""}, ":4\n"},
		{[]string{"run", "/app/l"}, "/app/leader\n:6\n"},
		{[]string{"elect", "/app/leader", "--", "/bin/t"}, ":0\n"},
		{[]string{"evict", "/app/leader", ""}, node + "\tholds billing"},
		{[]string{"watch", "/none/x"}, ":6\n"},
		{[]string{"ls", "-o", ""}, "table\nwide\njson\njsonl\n:4\n"},
		{[]string{"run", "--on-loss", ""}, "term\nkill\nwarn\n:4\n"},
	} {
		s := do(t, srv, append([]string{"__complete"}, tt.args...)...)
		if s.code != 0 || !strings.HasPrefix(s.out, tt.want) {
			t.Errorf("%v: %q, want %q", tt.args, s.out, tt.want)
		}
	}
}
