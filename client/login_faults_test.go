package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// flaky is DIGEST-MD5, except that Begin may fail.
type flaky struct {
	client.SASL

	begin func(n int, server string) error
	n     atomic.Int32
}

func (f *flaky) Begin(ctx context.Context, server string) (client.SASLLogin, error) {
	if err := f.begin(int(f.n.Add(1)), server); err != nil {
		return nil, err
	}
	return f.SASL.Begin(ctx, server)
}

func docent() client.SASL { return client.DigestMD5("docent", "s3cret") }

// A login that cannot begin for a moment does not make the client forget a lost session.
func TestLostSessionWithoutALogin(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]bool{"refusal": true, "no ticket": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var empty atomic.Int32
				until := time.Now().Add(testrig.SessionTimeout / 10)
				m := &flaky{SASL: docent(), begin: func(n int, server string) error {
					if server == "" {
						empty.Add(1)
					}
					switch {
					case n < 3 || time.Now().After(until):
						return nil
					case refuses:
						return fmt.Errorf("%w: for a moment", client.ErrAuthFailed)
					default:
						return errors.New("for a moment")
					}
				}}
				c := r.Connect("a", client.WithSASL(m))
				s := r.Session(c)
				r.Srv.Fail(zktest.Match{Client: "a", Op: zktest.OpConnect, Times: 1}, zktest.CodeSessionExpired)
				r.Srv.Client("a").Cut()
				<-s.Context().Done()
				for {
					if _, err := c.Create(r.Within(time.Minute), "/n", nil); err == nil {
						break
					}
					time.Sleep(time.Second / 10)
				}
				time.Sleep(testrig.SessionTimeout / 3)
				if empty.Load() > 0 {
					r.Errorf("Begin was called %d times for server %q", empty.Load(), "")
				}
				if slices.ContainsFunc(r.Srv.Sessions(), func(on zktest.Session) bool { return on.ID == s.ID() }) {
					r.Error("the lost session still stands on the server: its grave was forgotten")
				}
			}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithRequiredAuth())
		})
	}
}

// An error of Begin gets no remedy for a server, which was not dialed.
func TestRemedyOfAMechanism(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, err := range []error{
			&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
			&net.DNSError{Err: "no such host", Name: "kdc.example.com", IsNotFound: true},
			fmt.Errorf("read from kdc:88: %w", os.ErrDeadlineExceeded),
		} {
			_, got := r.Open("zk:2181", "a", client.WithSASL(unready{err}))
			for _, wrong := range []string{"is ZooKeeper running", "check the connect string", "took the handshake"} {
				if strings.Contains(got.Error(), wrong) {
					r.Errorf("the server was not dialed, and the error says %q: %v", wrong, got)
				}
			}
		}
	}, zktest.WithSASLUser("docent", "s3cret"))
}

// A refusal that has passed is no reason for later calls to fail.
func TestRefusalThatHasPassed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := &flaky{SASL: docent(), begin: func(n int, _ string) error {
			if n == 2 {
				return fmt.Errorf("%w: locked for a moment", client.ErrAuthFailed)
			}
			return nil
		}}
		c := r.Connect("a", client.WithSASL(m))
		s := r.Session(c)
		r.Srv.Client("a").Partition()
		r.Srv.Client("a").Cut()
		<-s.Context().Done()
		for range 3 {
			begun := time.Now()
			_, err := c.Create(r.Within(30*time.Second), "/n", nil)
			if errors.Is(err, client.ErrAuthFailed) {
				t.Errorf("nobody refuses any more (Begin has succeeded %d times since), the servers are out of reach, and a call fails after %v: %v", m.n.Load()-2, time.Since(begun), err)
			}
			time.Sleep(10 * time.Second)
		}
	}, zktest.WithSASLUser("docent", "s3cret"))
}

// A lost session is ended on the server, also if a login was refused for a moment before.
func TestLostSessionAfterARefusal(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]string{"none": "", "Begin": "begin", "server": "server", "Begin of the burial": "burial"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				m := &flaky{SASL: docent(), begin: func(n int, _ string) error {
					if refused == "begin" && n == 2 || refused == "burial" && n == 4 {
						return fmt.Errorf("%w: locked for a moment", client.ErrAuthFailed)
					}
					return nil
				}}
				c := r.Connect("a", client.WithSASL(m))
				s := r.Session(c)
				_, err := s.Create(r.Ctx, "/e", nil, client.Ephemeral())
				r.Check(err)
				if refused == "server" {
					r.Srv.Fail(zktest.Match{Op: zktest.OpSASL, Times: 1}, zktest.CodeAuthFailed)
					r.Srv.Client("a").Cut()
					time.Sleep(time.Millisecond * 5) // the refusal has come
				}
				r.Srv.Fail(zktest.Match{Client: "a", Op: zktest.OpConnect, Times: 1}, zktest.CodeSessionExpired)
				r.Srv.Client("a").Cut()
				<-s.Context().Done()
				for {
					if _, err := c.Create(r.Within(time.Minute), "/n", nil); err == nil {
						break
					}
					time.Sleep(time.Second / 10)
				}
				time.Sleep(testrig.SessionTimeout / 3)
				if slices.ContainsFunc(r.Srv.Sessions(), func(on zktest.Session) bool { return on.ID == s.ID() }) {
					r.Error("the lost session stands on the server, with its ephemeral node")
				}
			}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithRequiredAuth())
		})
	}
}

// The log of a lazy client says that its credentials are refused.
func TestRefusedLoginIsLogged(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]client.Option{
		"login":   client.WithSASL(client.DigestMD5("docent", "wrong")),
		"setAuth": client.WithAuth("nonsense", "x"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var log bytes.Buffer
				c := r.Connect("a", opt, client.WithLazyConnect(), client.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))))
				time.Sleep(5 * time.Minute)
				r.Check(c.Close())
				if !strings.Contains(log.String(), "authentication failed") {
					r.Errorf("the log of five minutes: %q", log.String())
				}
			}, zktest.WithSASLUser("docent", "s3cret"))
		})
	}
}

// A server that answers each login with an error, without calling that a refusal, is asked as
// seldom as one that refuses. So it is with a server before 3.5, which knows no SASL.
func TestServerWithoutSASL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		logins := r.Srv.Fail(zktest.Match{Op: zktest.OpSASL, Times: zktest.Always}, zktest.CodeUnimplemented)
		c := r.Connect("a", client.WithSASL(docent()), client.WithLazyConnect())
		most, last := 0, error(nil)
		for range 60 {
			time.Sleep(5 * time.Second)
			_, last = c.Create(r.Within(time.Second), "/n", nil)
			most = max(most, len(r.Srv.Sessions()))
		}
		testrig.WantErr(t, last, client.ErrAuthFailed)
		wantSays(t, last, "in a row: the credentials are wrong, or the server knows no SASL", "s3cret")
		t.Logf("%d logins in five minutes, %d sessions at once", logins.Fired(), most)
		if n := logins.Fired(); n < 10 || n > 100 {
			r.Errorf("%d logins in five minutes", n)
		}
		if most > 7 {
			r.Errorf("%d sessions at once", most)
		}
	}, zktest.WithSASLUser("docent", "s3cret"))
}

// Servers that hang up in the login refuse it only if nothing else came between.
func TestHangUpsInARow(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]bool{"in a row": false, "with a silence between": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				for n := range 4 {
					login := zktest.Match{Op: zktest.OpSASL, Nth: n + 1, Times: 1}
					if between && n == 2 {
						r.Srv.StallReply(login)
					} else {
						r.Srv.DropBefore(login)
					}
				}
				_, err := r.Open("zk:2181", "a", client.WithSASL(docent()))
				if refused := errors.Is(err, client.ErrAuthFailed); refused == between {
					r.Errorf("a silence between: %v, and %v", between, err)
				}
			}, zktest.WithSASLUser("docent", "s3cret"))
		})
	}
}
