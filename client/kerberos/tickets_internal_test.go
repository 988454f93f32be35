package kerberos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
)

// kdc gives tickets that last ten hours, after a delay, or an error.
type kdc struct {
	mu      sync.Mutex
	fetches int
	delay   time.Duration
	err     error
}

func (k *kdc) fetch(string) (*ticket, error) {
	k.mu.Lock()
	k.fetches++
	delay, err := k.delay, k.err
	k.mu.Unlock()
	time.Sleep(delay)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &ticket{from: now, to: now.Add(10 * time.Hour)}, nil
}

func (k *kdc) set(delay time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay, k.err = delay, err
}

func (k *kdc) asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fetches
}

var errDead = errors.New("connection refused")

// A ticket is fetched once for all that wait, and serves until the next one is there.
func TestTicketsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kdc{delay: time.Second}
		all := newTickets(k.fetch)
		defer all.close()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := all.get(t.Context(), "zookeeper/zk1"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if k.asked() != 1 {
			t.Errorf("%d fetches for ten logins at once", k.asked())
		}
		began := time.Now()
		for range 100 {
			if _, err := all.get(t.Context(), "zookeeper/zk1"); err != nil {
				t.Fatal(err)
			}
		}
		if k.asked() != 1 || !time.Now().Equal(began) {
			t.Errorf("%d fetches, %v for a ticket that is there", k.asked(), time.Since(began))
		}
		if _, err := all.get(t.Context(), "zookeeper/zk2"); err != nil || k.asked() != 2 {
			t.Errorf("another server: %v, %d fetches", err, k.asked())
		}
	})
}

// The next ticket comes before the end of this one. While no KDC answers this one serves, and the
// KDCs are asked again and again.
func TestTicketsAreRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kdc{}
		all := newTickets(k.fetch)
		defer all.close()
		first, err := all.get(t.Context(), "zookeeper/zk1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(8*time.Hour + 21*time.Minute)
		if second, err := all.get(t.Context(), "zookeeper/zk1"); err != nil || second == first || k.asked() != 2 {
			t.Errorf("after five sixths: %v, the same ticket %v, %d fetches", err, second == first, k.asked())
		}
		k.set(30*time.Second, errDead)
		time.Sleep(9 * time.Hour)
		if _, err := all.get(t.Context(), "zookeeper/zk1"); err != nil {
			t.Errorf("a ticket is good, and no KDC answers: %v", err)
		}
		if n := k.asked(); n < 10 || n > 100 {
			t.Errorf("%d fetches in 40 minutes without a KDC", n)
		}
		k.set(0, nil)
		time.Sleep(2 * time.Minute)
		n := k.asked()
		if _, err := all.get(t.Context(), "zookeeper/zk1"); err != nil || k.asked() != n {
			t.Errorf("the KDC is back: %v, %d fetches more", err, k.asked()-n)
		}
		k.set(0, errDead)
		time.Sleep(11 * time.Hour)
		if _, err := all.get(t.Context(), "zookeeper/zk1"); !errors.Is(err, errDead) {
			t.Errorf("after the end: %v", err)
		}
		k.set(0, nil)
		if _, err := all.get(t.Context(), "zookeeper/zk1"); err != nil {
			t.Error(err)
		}
	})
}

// Who waits for a dead KDC waits as long as the context says. The request to the KDC goes on, and the
// next login may find its ticket.
func TestTicketsObeyTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kdc{delay: 20 * time.Second}
		all := newTickets(k.fetch)
		defer all.close()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			began := time.Now()
			if _, err := all.get(ctx, "zookeeper/zk1"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrAuthFailed) || time.Since(began) != 5*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			cancel()
		}
		if _, err := all.get(t.Context(), "zookeeper/zk1"); err != nil || k.asked() != 1 {
			t.Errorf("%v, %d fetches", err, k.asked())
		}
	})
}

func TestTicketsOfAClosedMechanism(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kdc{delay: time.Second}
		all := newTickets(k.fetch)
		if _, err := all.get(t.Context(), "zookeeper/zk1"); err != nil {
			t.Fatal(err)
		}
		all.close()
		time.Sleep(30 * time.Hour) // the bubble ends only if no goroutine is left
		if _, err := all.get(t.Context(), "zookeeper/zk1"); !errors.Is(err, errClosed) || k.asked() != 1 {
			t.Errorf("%v, %d fetches", err, k.asked())
		}
	})
}

// What gokrb5 panics with, as in a program that forbids SHA-1, is an error.
func TestTicketsSurviveAPanic(t *testing.T) {
	t.Parallel()
	all := newTickets(func(string) (*ticket, error) { panic("crypto/sha1: use of SHA-1 is not allowed") })
	defer all.close()
	if _, err := all.get(t.Context(), "zookeeper/zk1"); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Error(err)
	}
}

// Which answers of a KDC are refusals, and what they say.
func TestExplained(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text    string
		client  bool
		host    string
		refused bool
		says    string
	}{
		{"KRB Error: (24) KDC_ERR_PREAUTH_FAILED", true, "zk1", true, "the keytab or the password is wrong"},
		{"KRB Error: (6) KDC_ERR_C_PRINCIPAL_UNKNOWN", true, "zk1", true, "does not know the principal"},
		{"KRB Error: (18) KDC_ERR_CLIENT_REVOKED", true, "zk1", true, "locked"},
		{"[Root cause: Decrypting_Error] AS_REP", true, "zk1", true, "the keytab or the password is wrong"},
		{"KRB Error: (7) KDC_ERR_S_PRINCIPAL_UNKNOWN", false, "zk1", false, "WithServerPrincipal"},
		{"KRB Error: (7) KDC_ERR_S_PRINCIPAL_UNKNOWN", false, "10.0.0.1", false, "the connect string has an address"},
		{"KRB Error: (37) KRB_AP_ERR_SKEW", true, "zk1", false, "clocks"},
		{"AS_REP is not valid: clock skew with KDC too large", true, "zk1", false, "clocks"},
		{"KRB Error: (24) KDC_ERR_PREAUTH_FAILED", false, "zk1", false, "the KDC gives no ticket"},
		{"[Root cause: Networking_Error] connection refused", true, "zk1", false, "no ticket from a KDC"},
	} {
		err := explained(&kdcError{errors.New(tt.text), tt.client}, "zookeeper/"+tt.host, tt.host)
		if errors.Is(err, client.ErrAuthFailed) != tt.refused || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want refused %v, %q", tt.text, err, tt.refused, tt.says)
		}
	}
	if err := errors.New("keytab: no such file"); !errors.Is(explained(err, "s", "h"), err) {
		t.Error("another error is lost")
	}
}

func TestServerPrincipal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m            Mechanism
		server, want string
	}{
		{Mechanism{service: "zookeeper"}, "zk1.example.com:2181", "zookeeper/zk1.example.com"},
		{Mechanism{service: "zookeeper"}, "zk1.example.com.:2181", "zookeeper/zk1.example.com"},
		{Mechanism{service: "hbase"}, "[::1]:2181", "hbase/::1"},
		{Mechanism{service: "zookeeper", name: func(h string) string { return "zk/" + strings.ToUpper(h) + "@R" }}, "lb:2181", "zk/LB@R"},
	} {
		if got, _ := tt.m.principal(tt.server); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.server, got, tt.want)
		}
	}
}

func TestMechanismIsRedacted(t *testing.T) {
	t.Parallel()
	m := &Mechanism{who: "docent@R", tickets: newTickets((&passwordSource{password: "s3cret"}).fetch)}
	text := fmt.Sprintf("%v %+v %#v %s %q %d", m, m, m, m, m, struct{ M *Mechanism }{m})
	if strings.Contains(text, "s3cret") || !strings.Contains(text, "GSSAPI principal docent@R") {
		t.Error(text)
	}
}
