package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// relayTLS puts TLS with a certificate for the given name in front of a server,
// and returns its port and the pool that trusts it.
func relayTLS(t *testing.T, srv *zktest.Server, name string) (port string, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(cert)
	return listenTLS(t, srv, &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}), trust
}

// listenTLS passes connections on to a server and returns its port.
func listenTLS(t *testing.T, srv *zktest.Server, cfg *tls.Config) (port string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go relay(t.Context(), srv, conn)
		}
	}()
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}

func relay(ctx context.Context, srv *zktest.Server, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	up, err := srv.DialContext(ctx, "", "")
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(up, conn)
		_ = up.Close()
	}()
	_, _ = io.Copy(conn, up)
}

// The certificate is checked against the name in the connect string, whatever
// address it has.
func TestTLS(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	port, trust := relayTLS(t, srv, "zk1.example")
	byName := func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}
	for _, tt := range []struct {
		name, host string
		config     *tls.Config
		want       string // part of the error, "" for success
	}{
		{"right name", "zk1.example", &tls.Config{RootCAs: trust}, ""},
		{"wrong name", "zk2.example", &tls.Config{RootCAs: trust}, "zk1.example, not zk2.example"},
		{"name given", "zk2.example", &tls.Config{RootCAs: trust, ServerName: "zk1.example"}, ""},
		{"not trusted", "zk1.example", &tls.Config{RootCAs: x509.NewCertPool()}, "unknown authority"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			given := tt.config.ServerName
			c, err := client.Connect(t.Context(), tt.host+":"+port, client.WithTLS(tt.config), client.WithDialer(byName),
				client.WithConnectTimeout(timeoutFor(tt.want)), testrig.Quiet())
			if tt.config.ServerName != given {
				t.Error("the given configuration was changed")
			}
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.host) {
					t.Errorf("Connect = %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Create(t.Context(), "/"+strings.ReplaceAll(tt.name, " ", "-"), nil); err != nil {
				t.Error(err)
			}
			if err := c.CloseContext(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// timeoutFor gives a Connect that fails little time to do so.
func timeoutFor(failure string) time.Duration {
	if failure != "" {
		return 500 * time.Millisecond
	}
	return time.Minute
}

// A server that answers in the clear is named as what it is.
func TestTLSWrongPort(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_ = conn.Close()
		}
	}()
	_, err = client.Connect(t.Context(), listener.Addr().String(), client.WithTLS(&tls.Config{}),
		client.WithConnectTimeout(500*time.Millisecond), testrig.Quiet())
	if err == nil || !strings.Contains(err.Error(), "does not speak TLS") || !strings.Contains(err.Error(), "secureClientPort") {
		t.Errorf("Connect = %v", err)
	}
}

// ZooKeeper itself closes the connection or stays silent: Connect gives up
// within its timeout and names the server.
func TestTLSPlainServer(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	addr := srv.Addr()
	_, err := client.Connect(t.Context(), addr, client.WithTLS(&tls.Config{}),
		client.WithConnectTimeout(500*time.Millisecond), testrig.Quiet())
	if err == nil || !strings.Contains(err.Error(), addr+": tls: ") {
		t.Errorf("Connect = %v", err)
	}
}
