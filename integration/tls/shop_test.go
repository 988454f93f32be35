package tls_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/docs/examples/secure"
	"github.com/docent-go/docent/integration/harness"
)

// shop is the ensemble of docs/tls.md, and the directory of its keys.
type shop struct {
	dir     string
	e       *harness.Ensemble
	names   names  // where the servers of docs/tls.md are
	servers string // its connect string
}

func openShop(ctx context.Context, t *testing.T) *shop {
	t.Helper()
	s := &shop{dir: t.TempDir(), names: names{}}
	shell(ctx, t, s.dir, makeKeys)
	file := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(s.dir, name))
		check(t, err)
		return content
	}
	keys := harness.WithTLS(func(id int) harness.Keys {
		return harness.Keys{Server: file("zk" + strconv.Itoa(id) + ".example.pem"), Trusted: file("ca.pem")}
	})
	s.e = harness.StartEnsemble(ctx, t, 3, append([]harness.Option{keys}, settings(t)...)...)
	var all []string
	for _, n := range s.e.Nodes() {
		name := "zk" + strconv.Itoa(n.ID()) + ".example:2281"
		s.names[name] = n.SecureAddr()
		all = append(all, name)
	}
	s.servers = strings.Join(all, ",")
	return s
}

// config is the code of docs/tls.md for the service of that name.
func (s *shop) config(t *testing.T, name string) *tls.Config {
	t.Helper()
	in := func(file string) string { return filepath.Join(s.dir, file) }
	config, err := secure.Config(in("ca.pem"), in(name+".crt"), in(name+".key"))
	check(t, err)
	return config
}

// sessionTimeout is twenty ticks of the servers, the most they grant.
const sessionTimeout = 10 * time.Second

// connect connects the service of that name, closed when the test ends.
func (s *shop) connect(ctx context.Context, t *testing.T, name string, opts ...client.Option) *client.Client {
	t.Helper()
	opts = append([]client.Option{
		quiet(), client.WithTLS(s.config(t, name)), client.WithDialer(s.names.dial),
		client.WithSessionTimeout(sessionTimeout), client.WithConnectTimeout(time.Minute),
	}, opts...)
	c, err := client.Connect(ctx, s.servers, opts...)
	check(t, err)
	t.Cleanup(func() { closed(ctx, t, c) })
	return c
}

// plain connects without TLS.
func (s *shop) plain(ctx context.Context, t *testing.T) *client.Client {
	t.Helper()
	c, err := client.Connect(ctx, s.e.ConnectString(), quiet(), client.WithConnectTimeout(time.Minute))
	check(t, err)
	t.Cleanup(func() { closed(ctx, t, c) })
	return c
}

// The service orders of docs/tls.md as an ACL names it.
const ordersID = "CN=orders,O=Shop"

func x509ACL(id string) zk.ACL { return zk.ACL{Perms: zk.PermAll, Scheme: "x509", ID: id} }

func TestShop(t *testing.T) {
	ctx := limited(t)
	s := openShop(ctx, t)
	// A second service, with the commands for the first.
	shell(ctx, t, s.dir, renewOrders, "CN=orders", "CN=billing", "mv new.key orders.key && mv new.crt orders.crt",
		"mv new.key billing.key && mv new.crt billing.crt")
	t.Run("subject", func(t *testing.T) { s.subject(ctx, t) })
	t.Run("node of one certificate", func(t *testing.T) { s.nodeOfOne(ctx, t) })
	t.Run("lock of one certificate", func(t *testing.T) { s.lockOfOne(ctx, t) })
	t.Run("renewed", func(t *testing.T) { s.renewed(ctx, t) })
	t.Run("half renewed", func(t *testing.T) { s.halfRenewed(ctx, t) })
	t.Run("server killed", func(t *testing.T) { s.serverKilled(ctx, t) })
}

// subject compares what the command prints with what docs/tls.md says.
func (s *shop) subject(ctx context.Context, t *testing.T) {
	got := strings.TrimSpace(shell(ctx, t, s.dir, showSubject))
	if want := "subject=" + ordersID; got != want {
		t.Errorf("the command prints %q, want %q", got, want)
	}
	text, err := os.ReadFile(page)
	check(t, err)
	for _, want := range []string{"`" + got + "`", `ID: "` + ordersID + `"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", page, want)
		}
	}
}

func (s *shop) nodeOfOne(ctx context.Context, t *testing.T) {
	orders, billing, plain := s.connect(ctx, t, "orders"), s.connect(ctx, t, "billing"), s.plain(ctx, t)
	path, err := orders.Create(ctx, "/orders", []byte("secret"), client.ACL(x509ACL(ordersID)))
	check(t, err)
	data, _, err := orders.Get(ctx, path)
	check(t, err)
	if string(data) != "secret" {
		t.Errorf("read %q", data)
	}
	for name, c := range map[string]*client.Client{"billing": billing, "plain": plain} {
		check(t, c.Sync(ctx, path))
		if data, _, err := c.Get(ctx, path); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("%s read %q, %v; want zk.ErrNoAuth", name, data, err)
		}
		if _, err := c.Set(ctx, path, nil, -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("%s wrote: %v; want zk.ErrNoAuth", name, err)
		}
	}
}

// lockOfOne makes the certificate the default ACL.
func (s *shop) lockOfOne(ctx context.Context, t *testing.T) {
	own := client.WithAuth("x509", "")
	orders, billing := s.connect(ctx, t, "orders", own), s.connect(ctx, t, "billing", own)
	const dir = "/shop/till"
	hold := held(ctx, t, orders, dir)
	for _, path := range []string{"/shop", dir, hold.Path()} {
		acl, _, err := orders.GetACL(ctx, path)
		check(t, err)
		if len(acl) != 1 || acl[0] != x509ACL(ordersID) {
			t.Errorf("ACL of %s is %v, want %v", path, acl, x509ACL(ordersID))
		}
	}
	if h, err := mutex(t, billing, dir).TryAcquire(ctx); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("billing: %v, %v; want zk.ErrNoAuth", h, err)
	}
	check(t, hold.Release(ctx))
	other, err := client.Connect(ctx, s.e.ConnectString(), quiet(), own, client.WithConnectTimeout(10*time.Second))
	if err == nil {
		closed(ctx, t, other)
	}
	t.Logf("credential x509 over the plain port: %v", err)
	if !errors.Is(err, client.ErrAuthFailed) {
		t.Errorf("Connect = %v, want client.ErrAuthFailed", err)
	}
}

// line remembers the newest connection.
type line struct {
	names names
	mu    sync.Mutex
	conn  net.Conn
	to    string
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.names.dial(ctx, network, address)
	if err == nil {
		l.mu.Lock()
		l.conn, l.to = conn, address
		l.mu.Unlock()
	}
	return conn, err
}

func (l *line) now() (net.Conn, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn, l.to
}

// server is the node at the other end.
func (s *shop) server(t *testing.T, l *line) *harness.Node {
	t.Helper()
	_, to := l.now()
	for _, n := range s.e.Nodes() {
		if n.SecureAddr() == s.names[to] {
			return n
		}
	}
	t.Fatalf("no server is %s", to)
	return nil
}
