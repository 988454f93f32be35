package zkcontainer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// validity is how long before and after now the certificates hold.
const validity = 48 * time.Hour

// Keys is the key material of one server, as PEM.
type Keys struct {
	Server  []byte // private key in PKCS 8, and its certificate
	Trusted []byte // certificates of the authorities of clients
}

// Credentials is what clients need for TLS, as PEM: for programs that do not take a
// [crypto/tls.Config], such as Curator's.
type Credentials struct {
	CA   []byte // certificate of the authority of the servers
	Cert []byte // the client's certificate
	Key  []byte // the client's private key, in PKCS 8
}

// ClientAuth says whether servers ask clients for certificates.
type ClientAuth string

// The values of ZooKeeper's property ssl.clientAuth.
const (
	ClientAuthNeed ClientAuth = "need"
	ClientAuthWant ClientAuth = "want"
	ClientAuthNone ClientAuth = "none"
)

// WithTLS opens a second port for clients on every server, which speaks TLS; see
// [Container.SecureAddr]. The start makes an authority, a certificate for each server, and
// one for clients; see [Container.TLSConfig]. With [ClientAuthNeed] a client without a
// certificate is refused. The port without TLS stays open; this package uses it itself.
func WithTLS(auth ClientAuth) Option {
	return func(s *settings) error {
		if !slices.Contains([]ClientAuth{ClientAuthNeed, ClientAuthWant, ClientAuthNone}, auth) {
			return fmt.Errorf("client authentication %q is not need, want or none", auth)
		}
		s.authority = true
		s.secure(auth)
		return nil
	}
}

// WithTLSKeys is [WithTLS] with need and with key material of the caller's. keys is called
// once with the id of each server, in their order. There is no [Container.TLSConfig] then.
func WithTLSKeys(keys func(id int) Keys) Option {
	return func(s *settings) error {
		if keys == nil {
			return errors.New("the function for the keys is nil")
		}
		s.keys = keys
		s.secure(ClientAuthNeed)
		return nil
	}
}

func (s *settings) secure(auth ClientAuth) {
	maps.Copy(s.properties, map[string]string{
		"secureClientPort":        strconv.Itoa(securePort),
		"serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location":   keyFile,
		"ssl.trustStore.location": trustFile,
		"ssl.clientAuth":          string(auth),
	})
}

// makeKeys makes the authority and the certificates that WithTLS promises, or asks the caller
// for the keys of each server.
func (r *run) makeKeys(n int) error {
	if ask := r.set.keys; ask != nil {
		all := map[int]Keys{}
		for id := 1; id <= n; id++ {
			all[id] = ask(id)
		}
		r.set.keys = func(id int) Keys { return all[id] }
		return nil
	}
	if !r.set.authority {
		return nil
	}
	a, err := newAuthority()
	if err != nil {
		return err
	}
	all := map[int]Keys{}
	for id := 1; id <= n; id++ {
		cert, key, err := a.issue(alias(id), r.host, "127.0.0.1", "localhost", alias(id))
		if err != nil {
			return err
		}
		all[id] = Keys{Server: slices.Concat(key, cert), Trusted: a.pem}
	}
	r.set.keys = func(id int) Keys { return all[id] }
	cert, key, err := a.issue("client")
	r.credentials = &Credentials{CA: a.pem, Cert: cert, Key: key}
	return err
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, cert: template("zkcontainer")}
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a.pem = encode("CERTIFICATE", der)
	return a, nil
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: new(big.Int).SetBytes([]byte(rand.Text()[:12])),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
	}
}

// issue returns a certificate for a name and these hosts, and its key, both as PEM.
func (a *authority) issue(name string, hosts ...string) (cert, secret []byte, err error) {
	t := template(name)
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", raw), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// errNoTLS is the error of what needs WithTLS.
var errNoTLS = errors.New("zkcontainer: the servers were started without WithTLS")

// Credentials returns what clients need for TLS, as PEM. It fails without [WithTLS].
func (c *Container) Credentials() (Credentials, error) {
	if c.run.credentials == nil {
		return Credentials{}, errNoTLS
	}
	return *c.run.credentials, nil
}

// TLSConfig returns a new configuration for clients, which trusts the servers and has the
// client's certificate. All members of an ensemble have the same. It fails without [WithTLS].
func (c *Container) TLSConfig() (*tls.Config, error) {
	own, err := c.Credentials()
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(own.Cert, own.Key)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(own.CA)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// SecureAddr is where clients reach the server by TLS; like [Container.Addr] it stays the
// same. It is empty without [WithTLS] and [WithTLSKeys].
func (c *Container) SecureAddr() string { return c.addr(securePort) }

// SecureServers returns the addresses for TLS of all members in the order of their ids. They
// are empty without [WithTLS] and [WithTLSKeys].
func (e *Ensemble) SecureServers() []string {
	addrs := make([]string, 0, len(e.members))
	for _, c := range e.members {
		addrs = append(addrs, c.SecureAddr())
	}
	return addrs
}

// SecureConnectionString is [Ensemble.ConnectionString] with the addresses for TLS. It fails
// without [WithTLS] and [WithTLSKeys].
func (e *Ensemble) SecureConnectionString(context.Context) (string, error) {
	if e.run.set.keys == nil {
		return "", errNoTLS
	}
	return strings.Join(e.SecureServers(), ",") + e.run.set.chroot, nil
}

// SetTLSKeys replaces the server's key material. A server reads it when it starts. It fails
// without [WithTLS] and [WithTLSKeys].
func (c *Container) SetTLSKeys(ctx context.Context, keys Keys) error {
	if c.run.set.keys == nil {
		return errNoTLS
	}
	return c.change(ctx, "set keys", func(ctx context.Context) error {
		for path, content := range map[string][]byte{keyFile: keys.Server, trustFile: keys.Trusted} {
			if err := c.CopyToContainer(ctx, content, path, 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}
