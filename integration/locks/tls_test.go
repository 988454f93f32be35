package locks_test

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/pki"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/recipes/locktest"
)

// The suite of the mutex, through proxies that speak TLS on both sides.
func TestMutexTLS(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	const loopback = "127.0.0.1"
	authority := pki.New(t, "authority")
	server := authority.Issue(pki.Subject{Name: pkix.Name{CommonName: "server"}, Hosts: []string{loopback}})
	user := authority.Issue(pki.Subject{Name: pkix.Name{CommonName: "user"}}).TLS(t)
	servers := harness.StartEnsemble(ctx, t, 3, harness.WithTickTime(tick),
		harness.WithTLS(func(int) harness.Keys { return authority.Keys(server) }))
	raw, _ := harness.Dial(ctx, t, 20*time.Second, servers.Addrs()...)
	trusting := &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{user}}
	before := trusting.Clone()
	before.ServerName = loopback
	way := secure{
		proxy: proxy.WithTLS(&tls.Config{
			Certificates: []tls.Certificate{server.TLS(t)}, ClientCAs: authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		}, before),
		client: client.WithTLS(trusting),
	}
	mutex := locktest.Kinds()[0]
	var tests sync.WaitGroup // see TestLocks
	for _, test := range locktest.Tests() {
		tests.Go(func() {
			t.Run(test.Name, func(t *testing.T) {
				w := newWorld(t, servers, raw)
				w.secure = &way
				test.Run(t, w, mutex)
			})
		})
	}
	tests.Wait()
	if left := busy(); len(left) > 0 {
		t.Errorf("%d goroutines are left, one of them:\n%s", len(left), left[0])
	}
}

// secure is what it takes to use the servers by TLS.
type secure struct {
	proxy  proxy.Option
	client client.Option
}
