package zkcontainer_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// secureDialer dials with TLS, as go-zookeeper takes it.
func secureDialer(cfg *tls.Config) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, cfg)
	}
}

func TestTLSAndUsers(t *testing.T) {
	ctx := limited(t, 4*time.Minute)
	e := zkcontainer.StartEnsemble(t, image(), 2, zkcontainer.WithHost("127.0.0.1"),
		zkcontainer.WithTLS(zkcontainer.ClientAuthNeed),
		zkcontainer.WithSuperuser("secret"),
		zkcontainer.WithSASLDigest(map[string]string{"alice": "wonder land"}),
		zkcontainer.WithTickTime(300*time.Millisecond),
		zkcontainer.WithProperty("maxSessionTimeout", "9000"),
		zkcontainer.WithProperty("dataDir", "/var/lib/elsewhere"),
		zkcontainer.WithSystemProperty("zookeeper.extendedTypesEnabled", "true"),
		zkcontainer.WithChroot("/shop"),
		zkcontainer.WithInitData(map[string][]byte{"/shop/orders/1": []byte("a book"), "/plain": nil}))
	c := e.Member(2)
	cfg := must(c.TLSConfig())(t)

	t.Run("certificate", func(t *testing.T) {
		conn, events, err := zk.Connect(e.SecureServers(), 6*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(secureDialer(cfg)))
		check(t, err)
		defer conn.Close()
		await(ctx, t, events, zk.StateHasSession)
		if data, _, err := conn.Get("/shop/orders/1"); err != nil || string(data) != "a book" {
			t.Errorf("%q, %v", data, err)
		}
		if text := must(e.SecureConnectionString(ctx))(t); text != strings.Join(e.SecureServers(), ",")+"/shop" {
			t.Error(text)
		}
	})
	t.Run("no certificate", func(t *testing.T) {
		bare := cfg.Clone()
		bare.Certificates = nil
		conn, err := tls.Dial("tcp", c.SecureAddr(), bare)
		if err == nil { // with TLS 1.3 the refusal comes with the first bytes
			check(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
			_, _ = io.WriteString(conn, "srvr")
			var answer []byte
			answer, err = io.ReadAll(conn)
			if len(answer) != 0 {
				t.Errorf("an answer: %q", answer)
			}
		}
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("not refused: %v", err)
		}
	})
	t.Run("link", func(t *testing.T) {
		link := must(e.NewLink(ctx))(t)
		conn, events, err := zk.Connect(link.SecureServers(), 6*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(secureDialer(cfg)))
		check(t, err)
		defer conn.Close()
		await(ctx, t, events, zk.StateHasSession)
		link.Partition()
		await(ctx, t, events, zk.StateDisconnected)
		if len(link.Sessions()) != 0 {
			t.Error("a session was read through TLS")
		}
		link.Close()
	})
	t.Run("superuser", func(t *testing.T) {
		conn, _ := dial(ctx, t, 6*time.Second, c.Addr())
		if _, err := conn.Create("/closed", nil, 0, zk.DigestACL(zk.PermAll, "bob", "builder")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.Get("/closed"); !errors.Is(err, zk.ErrNoAuth) {
			t.Fatalf("everybody reads it: %v", err)
		}
		check(t, conn.AddAuth("digest", []byte("super:secret")))
		_, _, err := conn.Get("/closed")
		check(t, err)
	})
	t.Run("properties", func(t *testing.T) {
		conf := must(c.FourLetter(ctx, "conf"))(t)
		if !strings.Contains(conf, "tickTime=300\n") || !strings.Contains(conf, "maxSessionTimeout=9000\n") {
			t.Errorf("conf:\n%s", conf)
		}
		conn, _ := dial(ctx, t, 6*time.Second, c.Addr())
		if _, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Minute); err != nil {
			t.Errorf("TTL nodes are off: %v", err)
		}
	})
	t.Run("SASL", func(t *testing.T) {
		for password, want := range map[string]bool{"wonder land": true, "else": false} {
			said, ok := saslCreate(t, c, password)
			if ok != want {
				t.Errorf("with the password %q: %v\n%s", password, ok, said)
			}
		}
	})
}

// saslCreate logs in as alice with ZooKeeper's own client, inside the container, and creates
// a node.
func saslCreate(t *testing.T, c *zkcontainer.Container, password string) (string, bool) {
	t.Helper()
	ctx := limited(t, 90*time.Second)
	jaas := "Client {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  username=\"alice\"\n  password=\"" + password + "\";\n};\n"
	check(t, c.CopyToContainer(ctx, []byte(jaas), "/tmp/client.jaas", 0o644))
	flags := "-Djava.security.auth.login.config=/tmp/client.jaas -Dzookeeper.fips-mode=false"
	name := strings.ReplaceAll("/sasl-"+password, " ", "")
	script := `cmd="-server 127.0.0.1:2181 create ` + name + ` x sasl:alice:cdrwa"
if command -v zkCli.sh >/dev/null; then CLIENT_JVMFLAGS="` + flags + `" timeout 40 zkCli.sh $cmd; else
timeout 40 java ` + flags + ` -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar:/usr/share/java/netty-codec.jar org.apache.zookeeper.ZooKeeperMain $cmd; fi`
	_, out, err := c.Exec(ctx, []string{"bash", "-c", script})
	check(t, err)
	said, err := io.ReadAll(out)
	check(t, err)
	conn, _ := dial(ctx, t, 6*time.Second, c.Addr())
	check(t, conn.AddAuth("digest", []byte("super:secret")))
	acl, _, err := conn.GetACL(name)
	return string(said), err == nil && len(acl) == 1 && acl[0].Scheme == "sasl" && acl[0].ID == "alice"
}

// Options that make no sense say so.
func TestSecureOptions(t *testing.T) {
	for want, o := range map[string]zkcontainer.Option{
		"not need, want or none": zkcontainer.WithTLS("perhaps"),
		"is nil":                 zkcontainer.WithTLSKeys(nil),
		"is empty":               zkcontainer.WithSuperuser(""),
		"no users":               zkcontainer.WithSASLDigest(nil),
		"JAAS":                   zkcontainer.WithSASLDigest(map[string]string{"a": "\""}),
		"no path":                zkcontainer.WithInitData(map[string][]byte{"/": nil}),
	} {
		if _, err := zkcontainer.Run(t.Context(), image(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
