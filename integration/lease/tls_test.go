package lease_test

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/pki"
)

// The holders' server is killed; the waiters are at the leader. All clients use TLS.
func TestKilledServerTLS(t *testing.T) {
	t.Parallel()
	const fault = "killed server, TLS"
	authority := pki.New(t, "authority")
	server := authority.Issue(pki.Subject{Name: pkix.Name{CommonName: "server"}, Hosts: []string{"127.0.0.1"}})
	user := authority.Issue(pki.Subject{Name: pkix.Name{CommonName: "user"}}).TLS(t)
	w := newWorld(t, 10*time.Minute, harness.WithTLS(func(int) harness.Keys { return authority.Keys(server) }))
	w.tls = []client.Option{client.WithTLS(&tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{user}})}
	var seen table
	leader, followers := w.ready()
	waiter, done := w.connect(leader.SecureAddr(), 20*tick)
	all := w.duels(waiter, []time.Duration{4 * time.Second, 6 * time.Second},
		side{fault, followers[0].SecureAddr(), client.LeasePolicy{}, 3, false})
	w.age(all)
	w.check(followers[0].Kill(w.ctx))
	w.judge(&seen, all)
	over(all)
	done()
	seen.safe(w)
}
