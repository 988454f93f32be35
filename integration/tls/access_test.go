package tls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/pki"
)

// version is a version of TLS, as servers and as crypto/tls name it.
type version struct {
	name, ciphers string
	number, other uint16
}

func versions() []version {
	return []version{
		{"TLSv1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", tls.VersionTLS12, tls.VersionTLS13},
		{"TLSv1.3", "TLS_AES_128_GCM_SHA256", tls.VersionTLS13, tls.VersionTLS12},
	}
}

// door is a server that speaks one version of TLS, and all kinds of people
// before it.
type door struct {
	node                *harness.Node
	authority, stranger *pki.Authority
}

func open(ctx context.Context, t *testing.T, v version) *door {
	t.Helper()
	d := &door{authority: pki.New(t, "authority"), stranger: pki.New(t, "stranger")}
	d.node = harness.StartServer(ctx, t,
		harness.WithTLS(func(int) harness.Keys { return d.authority.Keys(d.authority.Issue(host("zk1.example"))) }),
		harness.WithProperty("ssl.protocol", v.name),
		harness.WithProperty("ssl.enabledProtocols", v.name),
		harness.WithProperty("ssl.ciphersuites", v.ciphers))
	return d
}

func host(name string) pki.Subject {
	return pki.Subject{Name: pkix.Name{CommonName: name}, Hosts: []string{name}}
}

func user(expired bool) pki.Subject {
	return pki.Subject{Name: pkix.Name{CommonName: "user"}, Expired: expired}
}

// visitor is a client's configuration with that certificate.
func (d *door) visitor(t *testing.T, p pki.Pair) *tls.Config {
	t.Helper()
	return &tls.Config{RootCAs: d.authority.Pool(), Certificates: []tls.Certificate{p.TLS(t)}}
}

// insisting shows its certificate whatever authorities the server names.
func insisting(c *tls.Config) *tls.Config {
	cert := c.Certificates[0]
	c.Certificates = nil
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	return c
}

// visit is one attempt to connect and what the error must say; nothing if there
// must be none.
type visit struct {
	name, host string
	secure     bool // to the port for TLS
	config     *tls.Config
	want       []string
}

func (d *door) visits(t *testing.T, v version) []visit {
	t.Helper()
	const right, wrong = "zk1.example", "zk2.example"
	good := d.authority.Issue(user(false))
	other := d.visitor(t, good)
	other.MinVersion, other.MaxVersion = v.other, v.other
	distrusting := d.visitor(t, good)
	distrusting.RootCAs = d.stranger.Pool()
	missing := []string{"got no client certificate", "ssl.trustStore"}
	refused := []string{"remote error", "certificate", "ssl.trustStore", "expired"}
	return []visit{
		{"good certificate", right, true, d.visitor(t, good), nil},
		{"no certificate", right, true, &tls.Config{RootCAs: d.authority.Pool()}, missing},
		{"certificate of a stranger", right, true, d.visitor(t, d.stranger.Issue(user(false))), missing},
		{"certificate of a stranger, sent", right, true, insisting(d.visitor(t, d.stranger.Issue(user(false)))), refused},
		{"expired certificate", right, true, d.visitor(t, d.authority.Issue(user(true))), refused},
		{"wrong name", wrong, true, d.visitor(t, good), []string{"valid for zk1.example, not zk2.example", "ServerName"}},
		{"name given", wrong, true, named(d.visitor(t, good), right), nil},
		{"unknown server", right, true, distrusting, []string{"unknown authority", "RootCAs"}},
		{"other version", right, true, other, []string{"no version of TLS in common"}},
		{"TLS to the plain port", right, false, d.visitor(t, good), []string{"closed the connection in the TLS handshake", "secureClientPort", "WithTLS"}},
		{"plain to the port for TLS", right, true, nil, []string{"closed the connection in the handshake", "a TLS port: WithTLS?"}},
		{"plain to the plain port", right, false, nil, nil},
	}
}

func named(c *tls.Config, name string) *tls.Config {
	c.ServerName = name
	return c
}

// Some clients may come in; the others hear why they may not.
func TestAccess(t *testing.T) {
	for _, v := range versions() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			ctx := limited(t)
			d := open(ctx, t, v)
			t.Run("visits", func(t *testing.T) {
				for _, x := range d.visits(t, v) {
					t.Run(x.name, func(t *testing.T) {
						t.Parallel()
						d.pay(ctx, t, x)
					})
				}
			})
			if v.number == tls.VersionTLS13 { // the client looks before the server does, in both
				d.changesItsKeys(ctx, t)
			}
		})
	}
}

// changesItsKeys restarts the server with a certificate that has expired, with one
// of a stranger, and with a good one again.
func (d *door) changesItsKeys(ctx context.Context, t *testing.T) {
	t.Helper()
	const name = "zk1.example"
	expired := host(name)
	expired.Expired = true
	seen := d.visitor(t, d.authority.Issue(user(false)))
	for _, x := range []struct {
		pair pki.Pair
		visit
	}{
		{d.authority.Issue(expired), visit{"expired server", name, true, seen, []string{"certificate has expired", "needs a new certificate"}}},
		{d.stranger.Issue(host(name)), visit{"strange server", name, true, seen, []string{"unknown authority", "RootCAs"}}},
		{d.authority.Issue(host(name)), visit{"renewed server", name, true, seen, nil}},
	} {
		t.Run(x.name, func(t *testing.T) {
			check(t, d.node.SetKeys(ctx, d.authority.Keys(x.pair)))
			check(t, d.node.Restart(ctx))
			_, err := d.node.AwaitRole(ctx, harness.Standalone)
			check(t, err)
			d.pay(ctx, t, x.visit)
		})
	}
}

// pay pays a visit.
func (d *door) pay(ctx context.Context, t *testing.T, x visit) {
	t.Helper()
	addr := d.node.Addr()
	if x.secure {
		addr = d.node.SecureAddr()
	}
	servers := x.host + ":2281"
	opts := []client.Option{quiet(), client.WithDialer(names{servers: addr}.dial), client.WithConnectTimeout(time.Minute)}
	if x.want != nil { // what is wrong is wrong at once
		opts = append(opts, client.WithConnectTimeout(5*time.Second))
	}
	if x.config != nil {
		opts = append(opts, client.WithTLS(x.config))
	}
	c, err := client.Connect(ctx, servers, opts...)
	if err == nil {
		_, _, err = c.Exists(ctx, "/zookeeper")
		closed(ctx, t, c)
		if x.want != nil {
			t.Fatalf("connected, want an error with %q", x.want)
		}
		check(t, err)
		return
	}
	t.Log(err)
	if x.want == nil {
		t.Fatalf("Connect: %v", err)
	}
	for _, text := range append([]string{servers}, x.want...) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q lacks %q", err, text)
		}
	}
}

// A server without TLS, which has another network stack (NIO) then, hangs up too.
func TestPlainServer(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	d := &door{node: harness.StartServer(ctx, t), authority: pki.New(t, "authority")}
	d.pay(ctx, t, visit{
		"plain server", "zk1.example", false, d.visitor(t, d.authority.Issue(user(false))),
		[]string{"secureClientPort", "WithTLS"},
	})
}
