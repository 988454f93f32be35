package wire_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// tlsConfigs returns a server's and a client's configuration.
func tlsConfigs(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"s"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool, ServerName: "s"}
}

// The kill switch must not wait for the alert with which TLS says goodbye. A peer
// that does not read would hold it up for five seconds.
func TestKillSwitchOverTLSIsPrompt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		serverTLS, clientTLS := tlsConfigs(t)
		r := newRig(t, func(cfg *wire.Config) {
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, s string) (net.Conn, error) {
				nc, _ := dial(ctx, s)
				tc := tls.Client(nc, clientTLS)
				return tc, tc.HandshakeContext(ctx)
			}
		})
		go func() {
			p := <-r.peers
			p.conn = tls.Server(p.conn, serverTLS)
			p.expect(withReadOnly(connectRequest(0)))
			p.write(connectResponse(sessionID, timeout))
		}()
		c, err := r.link.Dial("tcp", "s:1", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(connectRequest(0)); err != nil {
			t.Fatal(err)
		}
		r.wantRead(c, connectResponse(sessionID, timeout))
		start := time.Now()
		r.link.End(errKilled)
		if took := time.Since(start); took != 0 {
			t.Errorf("End took %v", took)
		}
		r.wantOver(errKilled)
	})
}
