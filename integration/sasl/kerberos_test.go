package sasl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/kerberos"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
)

const (
	serverKeytab = "/etc/zookeeper/server.keytab"
	serverConfig = "/etc/zookeeper/krb5.conf"
)

// startKerberos starts a KDC, and a server that requires a login by Kerberos. The server has its
// keytab and does not need the KDC, which it could not reach.
func startKerberos(ctx context.Context, t *testing.T, life string) (*kdc, *harness.Node) {
	t.Helper()
	k := startKDC(ctx, t, life)
	t.Setenv("KRB5_CONFIG", k.file("krb5.conf"))
	return k, harness.StartServer(ctx, t,
		harness.WithFile(serverKeytab, k.read("server.keytab")), harness.WithFile(serverConfig, k.read("krb5.conf")),
		harness.WithSystemProperty("java.security.krb5.conf", serverConfig),
		harness.WithJAAS(`com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true useTicketCache=false isInitiator=false
  keyTab="`+serverKeytab+`" principal="zookeeper/localhost@`+realm+`";`, true))
}

func keytab(t *testing.T, k *kdc, name string, opts ...kerberos.Option) *kerberos.Mechanism {
	t.Helper()
	m, err := kerberos.Keytab("docent", k.file(name), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestKerberos(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	k, node := startKerberos(ctx, t, "1hour")
	t.Run("keytab holds over cuts", func(t *testing.T) {
		holdsOverCuts(ctx, t, node, keytab(t, k, "docent.keytab"), "docent@"+realm)
	})
	t.Run("password holds over cuts", func(t *testing.T) {
		m, err := kerberos.Password("other@"+realm, "s3cret")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close() //nolint:errcheck // always nil
		holdsOverCuts(ctx, t, node, m, "other@"+realm)
	})
	t.Run("credential cache holds over cuts", func(t *testing.T) {
		k.run(ctx, "kinit", "-k", "-t", k.file("docent.keytab"), "-c", k.file("cache"), "docent")
		m, err := kerberos.CredentialCache("FILE:" + k.file("cache"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close() //nolint:errcheck // always nil
		holdsOverCuts(ctx, t, node, m, "docent@"+realm)
	})
	t.Run("without a login", func(t *testing.T) { refusedWithout(ctx, t, node) })
	t.Run("DIGEST-MD5", func(t *testing.T) {
		_, err := connect(ctx, node.Addr(), client.WithSASL(client.DigestMD5("docent", "s3cret")))
		if !errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), "it does not take DIGEST-MD5") {
			t.Error(err)
		}
	})
	t.Run("wrong keytab", func(t *testing.T) {
		_, err := connect(ctx, node.Addr(), client.WithSASL(keytab(t, k, "old.keytab")))
		if !errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), "the keytab or the password is wrong") {
			t.Error(err)
		}
		if _, err := kerberos.Keytab("nobody", k.file("docent.keytab")); err == nil || !strings.Contains(err.Error(), "no key of nobody@") {
			t.Error(err)
		}
	})
	t.Run("a principal that the KDC lacks", func(t *testing.T) {
		_, err := connect(ctx, node.Addr(), client.WithSASL(keytab(t, k, "docent.keytab", kerberos.WithService("hbase"))), client.WithConnectTimeout(2*time.Second))
		if !errors.Is(err, client.ErrNotConnected) || errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), "the KDC does not know hbase/localhost") {
			t.Error(err)
		}
	})
	t.Run("dead KDC", func(t *testing.T) {
		m := keytab(t, k, "docent.keytab")
		link := proxy.Start(t, node.Addr())
		c := connected(ctx, t, link.Addr(), client.WithSASL(m))
		k.stop()
		s, err := c.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		link.CutAll()
		if _, _, err := c.Exists(ctx, "/"); err != nil || s.Err() != nil { // with the ticket that it has; a create might have met the cut
			t.Errorf("after a cut: %v, session %v", err, s.Err())
		}
		_, err = connect(ctx, node.Addr(), client.WithSASL(keytab(t, k, "docent.keytab")), client.WithConnectTimeout(2*time.Second))
		if !errors.Is(err, client.ErrNotConnected) || errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), "no ticket from a KDC") {
			t.Errorf("without a ticket: %v", err)
		}
		k.start(ctx)
		if _, err := c.Create(ctx, path(), nil); err != nil {
			t.Error(err)
		}
	})
}

// A ticket that has ended is followed by another one, for the next connection. The connection that
// stands does not notice.
func TestTicketsThatEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	const life = 6 * time.Second
	k, node := startKerberos(ctx, t, "6seconds")
	link := proxy.Start(t, node.Addr())
	c := connected(ctx, t, link.Addr(), client.WithSASL(keytab(t, k, "docent.keytab")))
	before, err := c.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ended := time.NewTimer(2 * life)
	select {
	case <-ended.C:
	case <-ctx.Done():
	}
	if _, err := c.Create(ctx, path(), nil); err != nil {
		t.Errorf("the ticket of the connection has ended: %v", err)
	}
	link.CutAll()
	if _, _, err := c.Exists(ctx, "/"); err != nil { // a create might have met the cut
		t.Errorf("on the next connection: %v", err)
	}
	if _, err := c.Create(ctx, path(), nil); err != nil {
		t.Errorf("on the next connection: %v", err)
	}
	if before.Err() != nil {
		t.Error(before.Err())
	}
}
