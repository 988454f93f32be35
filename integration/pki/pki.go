// Package pki makes authorities and certificates for the tests of this module.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
)

// Authority signs certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority with a key of its own. Two of the same name are two.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	key := newKey(t)
	a := &Authority{t: t, key: key, cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: serial(t), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	}}
	a.cert = a.sign(a.cert, key.Public())
	return a
}

// PEM is the certificate of the authority.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Pool is a pool that trusts the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Subject is what a certificate says of its owner.
type Subject struct {
	pkix.Name

	Hosts   []string // names and addresses
	Expired bool     // since an hour; otherwise it is good for a day
}

// Issue makes a key and a certificate for it, for servers and clients alike.
func (a *Authority) Issue(s Subject) Pair {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: s.Name, SerialNumber: serial(a.t),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	if s.Expired {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	for _, h := range s.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	key := newKey(a.t)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return Pair{Cert: encode("CERTIFICATE", a.sign(template, key.Public()).Raw), Key: encode("PRIVATE KEY", secret)}
}

// Keys is the key material of a server that trusts clients of this authority.
func (a *Authority) Keys(p Pair) harness.Keys {
	return harness.Keys{Server: slices.Concat(p.Key, p.Cert), Trusted: a.PEM()}
}

func (a *Authority) sign(template *x509.Certificate, owner any) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, owner, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// Pair is a certificate and its private key in PKCS 8, both as PEM.
type Pair struct{ Cert, Key []byte }

// TLS is the pair as crypto/tls takes it.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
