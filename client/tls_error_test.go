package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// loopbackCert makes a certificate for localhost that signs itself.
func loopbackCert(t *testing.T, name string, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
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
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// A refusal names the remedy. Real servers are asked in integration/tls.
func TestTLSRemedies(t *testing.T) {
	t.Parallel()
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	server, trust := loopbackCert(t, "server", later)
	expired, trustExpired := loopbackCert(t, "expired server", before)
	user, users := loopbackCert(t, "user", later)
	stranger, _ := loopbackCert(t, "stranger", later)
	insisting := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }
	want := tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: users, ClientAuth: tls.RequireAndVerifyClientCert}
	old, young := want.Clone(), want.Clone()
	old.MaxVersion, young.MinVersion = tls.VersionTLS12, tls.VersionTLS13
	for _, tt := range []struct {
		name           string
		server, client *tls.Config // no client: without TLS
		want           string      // nothing: connects
	}{
		{"accepted", young, &tls.Config{RootCAs: trust, Certificates: []tls.Certificate{user}}, ""},
		{"no certificate", young, &tls.Config{RootCAs: trust}, "got no client certificate: give tls.Config one"},
		{"stranger, not sent", young, &tls.Config{RootCAs: trust, Certificates: []tls.Certificate{stranger}}, "crypto/tls sends no other"},
		{"stranger", young, &tls.Config{RootCAs: trust, GetClientCertificate: insisting}, "refuses the client's certificate"},
		{"stranger, TLS 1.2", old, &tls.Config{RootCAs: trust, GetClientCertificate: insisting}, "refuses the client's certificate"},
		{"TLS 1.3 only", old, &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS13}, "no version of TLS in common"},
		{"no cipher in common", &tls.Config{Certificates: []tls.Certificate{server}, MaxVersion: tls.VersionTLS12}, &tls.Config{RootCAs: trust, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}, "no cipher in common"},
		{"expired server", &tls.Config{Certificates: []tls.Certificate{expired}}, &tls.Config{RootCAs: trustExpired}, "the server needs a new certificate"},
		{"wrong name", young, &tls.Config{RootCAs: trust, ServerName: "zk1.example"}, "set tls.Config.ServerName"},
		{"unknown authority", young, &tls.Config{RootCAs: users}, "tls.Config.RootCAs"},
		{"no TLS", young, nil, "WithTLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			port := listenTLS(t, zktest.NewServer(t), tt.server)
			opts := []client.Option{testrig.Quiet(), client.WithConnectTimeout(timeoutFor(tt.want))}
			if tt.client != nil {
				opts = append(opts, client.WithTLS(tt.client))
			}
			c, err := client.Connect(t.Context(), "localhost:"+port, opts...)
			if err == nil {
				if err := c.CloseContext(t.Context()); err != nil {
					t.Error(err)
				}
			}
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Connect = %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Connect = %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "tls: tls:"):
				t.Errorf("Connect = %v names TLS twice", err)
			}
		})
	}
}
