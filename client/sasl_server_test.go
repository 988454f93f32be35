package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

func docentLogin() client.Option { return client.WithSASL(client.DigestMD5("docent", "s3cret")) }

// A client logs in again on every connection, before it sends anything else, and its nodes belong to
// its id.
func TestLoginOnEveryConnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", docentLogin(), client.WithAuth("digest", "u:p"))
		s := r.Session(c)
		_, err := c.Create(r.Ctx, "/ours", nil)
		r.Check(err)
		acl, _, err := c.GetACL(r.Ctx, "/ours")
		r.Check(err)
		if !slices.Contains(acl, zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "docent"}) {
			r.Errorf("ACL %v", acl)
		}
		for i := range 5 {
			r.Srv.CutAll()
			if _, _, err := c.Get(r.Within(time.Minute), "/ours"); err != nil {
				r.Errorf("cut %d: %v", i+1, err)
			}
		}
		if r.Session(c).ID() != s.ID() || s.Err() != nil {
			r.Errorf("another session: %v", s.Err())
		}
		tokens := 0
		for _, q := range r.Srv.Log() {
			switch q.Op {
			case zktest.OpConnect:
				tokens = 0
			case zktest.OpSASL:
				tokens++
			default:
				if tokens != 2 {
					r.Fatalf("%v after %d tokens", q, tokens)
				}
			}
		}
		other := r.Connect("b", client.WithSASL(client.DigestMD5("other", "pw2")))
		_, _, err = other.Get(r.Ctx, "/ours")
		testrig.WantErr(t, err, client.ErrNoAuth)
		wantSays(t, err, `SASL DIGEST-MD5 user "other": log in as another user`, "wrong password")
	}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithSASLUser("other", "pw2"), zktest.WithRequiredAuth())
}

// What is no login, and what the error says.
func TestLoginsThatFail(t *testing.T) {
	t.Parallel()
	user := zktest.WithSASLUser("docent", "s3cret")
	for name, tt := range map[string]struct {
		server   []zktest.Option
		password string
		fault    func(*zktest.Server)
		says     string
	}{
		"wrong password":                  {[]zktest.Option{user}, "wrong-pa55", nil, `code -115): user "docent" or the password is wrong`},
		"wrong password, login required":  {[]zktest.Option{user, zktest.WithRequiredAuth()}, "wrong-pa55", nil, `code -124): user "docent"`},
		"wrong password, failed let pass": {[]zktest.Option{user, zktest.WithSASLFailedClients()}, "wrong-pa55", nil, "without a proof"},
		"no users":                        {nil, "s3cret", nil, "offers no login"},
		"wrong proof":                     {[]zktest.Option{user}, "s3cret", func(s *zktest.Server) { s.WrongProof(zktest.Match{Times: zktest.Always}) }, "the server's proof is wrong"},
		"null for the challenge":          {[]zktest.Option{user}, "s3cret", func(s *zktest.Server) { s.NullToken(zktest.Match{Times: zktest.Always}) }, "offers no login"},
		"hangs up": {[]zktest.Option{user}, "s3cret", func(s *zktest.Server) {
			s.DropBefore(zktest.Match{Op: zktest.OpSASL, Times: zktest.Always})
		}, "3 times in a row"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				if tt.fault != nil {
					tt.fault(r.Srv)
				}
				_, err := r.Open("zk:2181", "a", client.WithSASL(client.DigestMD5("docent", tt.password)))
				testrig.WantErr(t, err, client.ErrAuthFailed)
				wantSays(t, err, tt.says, tt.password)
				wantSays(t, err, "SASL login by DIGEST-MD5 with zk:2181", "session lost")
			}, tt.server...)
		})
	}
}

// A server that is silent in the login is not reached, and has not refused.
func TestSilentLogin(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.StallReply(zktest.Match{Op: zktest.OpSASL, Times: zktest.Always})
		_, err := r.Open("zk:2181", "a", docentLogin())
		testrig.WantErr(t, err, client.ErrNotConnected)
		wantSays(t, err, "silent in the login", "s3cret")
		if errors.Is(err, client.ErrAuthFailed) {
			t.Error(err)
		}
	}, zktest.WithSASLUser("docent", "s3cret"))
}

// A refused login makes no storm of sessions, and the client works as soon as it is let in.
func TestRefusedLoginsMakeNoStorm(t *testing.T) {
	t.Parallel()
	for name, required := range map[string][]zktest.Option{"required": {zktest.WithRequiredAuth()}, "optional": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				refused := r.Srv.Fail(zktest.Match{Op: zktest.OpSASL, Times: zktest.Always}, zktest.CodeAuthFailed)
				c := r.Connect("a", docentLogin(), client.WithLazyConnect())
				most := 0
				for range 60 {
					time.Sleep(5 * time.Second)
					_, err := c.Create(r.Within(time.Second), "/n", nil)
					testrig.WantErr(t, err, client.ErrAuthFailed)
					most = max(most, len(r.Srv.Sessions()))
				}
				if n := refused.Fired(); n < 10 || n > 100 {
					r.Errorf("%d logins in five minutes", n)
				}
				t.Logf("%d logins in five minutes, %d sessions at once", refused.Fired(), most)
				if most > 7 {
					r.Errorf("%d sessions at once", most)
				}
				refused.Remove()
				for {
					if _, err := c.Create(r.Within(time.Minute), "/n", nil); err == nil {
						break
					} else if !errors.Is(err, client.ErrAuthFailed) {
						r.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				if n := len(r.Srv.Sessions()); n != 1 {
					r.Errorf("%d sessions at the end", n)
				}
			}, append(required, zktest.WithSASLUser("docent", "s3cret"))...)
		})
	}
}

// A login that is refused in a session that stands costs the session only when its time is over, and
// the error says why.
func TestLoginRefusedLater(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", docentLogin())
		s := r.Session(c)
		refused := r.Srv.Fail(zktest.Match{Op: zktest.OpSASL, Times: zktest.Always}, zktest.CodeAuthFailed)
		r.Srv.CutAll()
		time.Sleep(testrig.SessionTimeout / 2)
		r.Check(s.Err())
		refused.Remove()
		_, err := c.Create(r.Within(testrig.SessionTimeout/3), "/n", nil)
		r.Check(err)
		if r.Session(c).ID() != s.ID() {
			r.Error("the session was given up for a refusal")
		}
		r.Srv.Fail(zktest.Match{Op: zktest.OpSASL, Times: zktest.Always}, zktest.CodeAuthFailed)
		r.Srv.CutAll()
		<-s.Context().Done()
		testrig.WantErr(t, s.Err(), client.ErrSessionLost, client.ErrAuthFailed)
		wantSays(t, s.Err(), "DIGEST-MD5 with zk:2181", "s3cret")
		_, err = c.Create(r.Within(time.Minute), "/n", nil)
		testrig.WantErr(t, err, client.ErrAuthFailed)
	}, zktest.WithSASLUser("docent", "s3cret"))
}

// unready cannot begin a login: it has no ticket.
type unready struct{ err error }

func (unready) Name() string { return "UNREADY" }

func (u unready) Begin(context.Context, string) (client.SASLLogin, error) { return nil, u.err }

// A mechanism that cannot begin is no refusal, unless it says so.
func TestMechanismThatCannotBegin(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		errKDC := errors.New("no KDC answers")
		_, err := r.Open("zk:2181", "a", client.WithSASL(unready{errKDC}))
		testrig.WantErr(t, err, client.ErrNotConnected)
		wantSays(t, err, "SASL login by UNREADY with zk:2181: no KDC answers", "authentication failed")
		_, err = r.Open("zk:2181", "a", client.WithSASL(unready{}))
		wantSays(t, err, "the mechanism has begun no login", "authentication failed")
		_, err = r.Open("zk:2181", "a", client.WithSASL(unready{fmt.Errorf("%w: wrong keytab", client.ErrAuthFailed)}))
		testrig.WantErr(t, err, client.ErrAuthFailed)
		if n := len(r.Srv.Sessions()); n != 0 {
			r.Errorf("%d sessions", n)
		}
	}, zktest.WithSASLUser("docent", "s3cret"))
}

// A session that was lost is ended on a server that requires a login.
func TestLostSessionIsEndedWithALogin(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", docentLogin())
		s := r.Session(c)
		r.Srv.StallReply(zktest.Match{Client: "a", Op: zktest.OpPing, Times: zktest.Always})
		link := r.Srv.Client("a")
		link.Cut()
		lost := r.Srv.Fail(zktest.Match{Client: "a", Op: zktest.OpConnect, Times: 1}, zktest.CodeSessionExpired)
		<-s.Context().Done()
		if lost.Fired() != 1 || !errors.Is(s.Err(), client.ErrSessionLost) {
			r.Fatalf("nothing is tested: %v", s.Err())
		}
		_, err := c.Create(r.Within(time.Minute), "/n", nil)
		r.Check(err)
		time.Sleep(testrig.SessionTimeout / 2)
		if slices.ContainsFunc(r.Srv.Sessions(), func(on zktest.Session) bool { return on.ID == s.ID() }) {
			r.Error("the lost session stands on the server")
		}
	}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithRequiredAuth())
}

// No log line shows the password.
func TestLoginIsNotLogged(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var log bytes.Buffer
		for _, password := range []string{"s3cret", "wrong-pa55"} {
			c, err := r.Open("zk:2181", "a", client.WithSASL(client.DigestMD5("docent", password)), client.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			if err == nil {
				r.Srv.CutAll()
				_, _, err = c.Exists(r.Within(time.Minute), "/n")
				r.Check(err)
				r.Check(c.Close())
			}
		}
		if text := log.String(); strings.Contains(text, "s3cret") || strings.Contains(text, "wrong-pa55") || !strings.Contains(text, "connected") {
			r.Error(text)
		}
	}, zktest.WithSASLUser("docent", "s3cret"))
}

// While the servers refuse a login, a call that wants any session says so, and not that a session
// was lost: a loop that begins again after a lost session would never rest.
func TestRefusedLoginIsNoLostSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", docentLogin(), client.WithSessionTimeout(4*time.Second))
		s := r.Session(c)
		r.Srv.WrongProof(zktest.Match{Times: zktest.Always})
		r.Srv.CutAll()
		<-s.Context().Done()
		testrig.WantErr(t, s.Err(), client.ErrSessionLost)
		for range 20 {
			_, err := c.Session(r.Within(time.Minute))
			testrig.WantErr(t, err, client.ErrAuthFailed)
			if errors.Is(err, client.ErrSessionLost) {
				r.Fatalf("a loop would spin on %v", err)
			}
			time.Sleep(time.Second)
		}
		_, _, err := c.Get(r.Within(time.Minute), "/")
		wantSays(t, err, "the server's proof is wrong", "client.WithAuth")
	}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithRequiredAuth())
}

// A client without a login hears why its call fails, also if the server hangs up before it has
// answered the call, and Close does not insist, however soon it comes.
func TestWithoutTheRequiredLogin(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, time.Second, time.Minute} {
		for _, drops := range []int{0, 1} {
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				if drops > 0 {
					r.Srv.DropBefore(zktest.Match{Op: zktest.OpCreate, Times: drops})
				}
				_, err := c.Create(r.Within(time.Minute), "/a", nil)
				testrig.WantErr(t, err, client.Code(-124))
				wantSays(t, err, "client.WithSASL", "given up")
				time.Sleep(pause)
				begun := time.Now()
				err = c.Close()
				wantSays(t, err, "client.WithSASL", "deadline")
				if took := time.Since(begun); took > time.Second {
					r.Errorf("%v after the answer Close took %v", pause, took)
				}
			}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithRequiredAuth())
		}
	}
}
