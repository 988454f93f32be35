package vault_test

import (
	"context"
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

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"

	"github.com/docent-go/docent/docs/examples/ports/vault"
	"github.com/docent-go/docent/zktest"
)

// Settings that make no sense are refused, each by its name.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, in := range []map[string]string{
		{"znode_owner": "digest"},
		{"znode_owner": ":owner"},
		{"auth_info": "digest:"},
		{"tls_enabled": "perhaps"},
		{"tls_enabled": "1", "tls_verify_ip": "1"},
		{"tls_enabled": "1", "tls_min_version": "ssl"},
		{"tls_enabled": "1", "tls_ca_file": "/does/not/exist"},
		{"tls_enabled": "1", "tls_skip_verify": "perhaps"},
		{"address": "zk:port"},
	} {
		if _, err := vault.New(in, hclog.NewNullLogger()); err == nil {
			t.Errorf("%v is accepted", in)
		} else {
			t.Log(err)
		}
	}
}

// encrypted returns the port of a server that speaks TLS as localhost, and its certificate.
func encrypted(t *testing.T, srv *zktest.Server) (port, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(t.Context(), conn, srv)
		}
	}()
	_, port, err = net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, certificate
}

// relay connects a client to the server.
func relay(ctx context.Context, conn net.Conn, srv *zktest.Server) {
	defer func() { _ = conn.Close() }()
	behind, err := srv.DialContext(ctx, "tcp", "zk:2181")
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(behind, conn)
		_ = behind.Close()
	}()
	_, _ = io.Copy(conn, behind)
}

// The certificate is checked against the name in the setting address.
func TestTLS(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	port, certificate := encrypted(t, srv)
	for _, in := range []struct {
		host, skip string
		wrong      string // a word of the error
	}{
		{"localhost", "", ""},
		{"127.0.0.1", "", "127.0.0.1"},
		{"127.0.0.1", "true", ""},
	} {
		b, err := vault.New(map[string]string{
			"address": in.host + ":" + port, "tls_enabled": "true", "tls_skip_verify": in.skip,
			"tls_ca_file": certificate, "auth_info": "digest:vault:secret", "znode_owner": "auth:vault",
		}, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if in.wrong != "" {
			ctx, cancel = context.WithTimeout(ctx, time.Second)
		}
		err = b.Put(ctx, &physical.Entry{Key: "key", Value: []byte("value")})
		cancel()
		switch {
		case in.wrong == "" && err != nil:
			t.Errorf("%v: %v", in, err)
		case in.wrong != "" && (err == nil || !strings.Contains(err.Error(), "certificate") || !strings.Contains(err.Error(), in.wrong)):
			t.Errorf("%v: error %v", in, err)
		}
		if ours, ok := b.(*vault.Backend); ok {
			_ = ours.Close()
		}
	}
	if node, ok := srv.Node("/vault/_key"); !ok || string(node.Data) != "value" {
		t.Errorf("the node is %v, %v", node, ok)
	}
}
