package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// docent is the login of most tests.
func docent() response { return response{user: "docent", password: "s3cret"} }

// loginBubble runs f with a server on virtual time that has the users of the tests.
func loginBubble(t *testing.T, f func(t *testing.T, srv *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	bubble(t, f, append(loginOptions(loginOptional), opts...)...)
}

// second matches the response to the challenge.
func second() zktest.Match {
	return zktest.Match{Op: zktest.OpSASL, Where: func(r zktest.Request) bool { return r.Step == 2 }}
}

func TestWrongProof(t *testing.T) {
	t.Parallel()
	loginBubble(t, func(t *testing.T, srv *zktest.Server) {
		rule := srv.WrongProof(zktest.Match{})
		c := memory(t, srv.Client("a"))
		if got := outcome(c.login(docent())); got != "no proof" {
			t.Errorf("%s", got)
		}
		must(t, c, 4, exists("/"), 0)
		if rule.Fired() != 1 {
			t.Errorf("the rule has struck %d times", rule.Fired())
		}
		if got := outcome(memory(t, srv.Client("a")).login(docent())); got != "in" {
			t.Errorf("after the rule: %s", got)
		}
	})
}

func TestNullToken(t *testing.T) {
	t.Parallel()
	loginBubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.NullToken(zktest.Match{})
		c := memory(t, srv.Client("a"))
		if code, token, err := c.token([]byte{}); code != 0 || token != "<null>" || err != nil {
			t.Errorf("%d %q %v", code, token, err)
		}
		srv.NullToken(second())
		c = memory(t, srv.Client("a"))
		if got := outcome(c.login(docent())); got != "no proof" {
			t.Errorf("%s", got)
		}
		if got := identities(t, c); len(got) != 0 {
			t.Errorf("is %v", got)
		}
	})
}

// TestLoginCut ends the connection in the middle of a login: before the second token is
// looked at, and after.
func TestLoginCut(t *testing.T) {
	t.Parallel()
	loginBubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, fault := range []func(zktest.Match) *zktest.Rule{srv.DropBefore, srv.LoseReply} {
			fault(second())
			c := memory(t, srv.Client("a"))
			if got := outcome(c.login(docent())); got != "closed" {
				t.Errorf("%s", got)
			}
			again := memoryConn(t, srv.Client("a"))
			if err := again.handshake(0, 30_000, c.session, c.password); err != nil {
				t.Fatal(err)
			}
			if got := outcome(again.login(docent())); got != "in" {
				t.Errorf("the next login: %s", got)
			}
		}
	})
}

func TestLoginSilence(t *testing.T) {
	t.Parallel()
	loginBubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, fault := range []func(zktest.Match) *zktest.Rule{srv.Ignore, srv.StallReply} {
			for _, m := range []zktest.Match{{Op: zktest.OpSASL}, second()} {
				fault(m)
				c := memory(t, srv.Client("a"))
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
				if got := outcome(c.login(docent())); got != "timeout" {
					t.Errorf("%s", got)
				}
				_ = c.Close()
			}
		}
	})
}

func TestLoginFails(t *testing.T) {
	t.Parallel()
	loginBubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, m := range []zktest.Match{{Op: zktest.OpSASL}, second()} {
			srv.Fail(m, zktest.CodeSessionClosedSASL)
			c := memory(t, srv.Client("a"))
			if got := outcome(c.login(docent())); got != "-124" {
				t.Errorf("%s", got)
			}
			isOver(t, c)
		}
		if len(srv.Sessions()) != 2 {
			t.Errorf("%d sessions, want the two that failed", len(srv.Sessions()))
		}
		for _, r := range srv.Log() {
			if r.Op == zktest.OpSASL && (r.Step == 0 || r.Path != "") {
				t.Errorf("in the log: %v", r)
			}
		}
	})
}

// TestLoginSuper is about zookeeper.superUser.
func TestLoginSuper(t *testing.T) {
	t.Parallel()
	loginBubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		for c, r := range map[*raw]response{a: docent(), b: {user: "other", password: "pw2"}} {
			if err := c.login(r); err != nil {
				t.Fatal(err)
			}
		}
		must(t, a, 1, createFor("/a", acl(31, "digest", "u:x")), 0)
		must(t, a, 4, exists("/a"), -102)
		must(t, b, 4, exists("/a"), 0)
		if got := identities(t, b); len(got) != 2 || got[1] != "super=" {
			t.Errorf("is %v", got)
		}
	}, zktest.WithSASLSuperUser("other"))
}

// TestLoginEnsemble logs in through a follower, and uses the right at another member.
func TestLoginEnsemble(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		path := "/mine"
		c := memory(t, e.Server(1).Client("a"))
		must(t, c, 4, exists("/"), -124)
		c = memory(t, e.Server(1).Client("a"))
		if err := c.login(docent()); err != nil {
			t.Fatal(err)
		}
		must(t, c, 1, createFor(path, acl(31, "auth", "")), 0)
		d := memory(t, e.Server(2).Client("a"))
		if err := d.login(docent()); err != nil {
			t.Fatal(err)
		}
		must(t, d, 9, body(path), 0)
		must(t, d, 5, body(path, []byte("x"), int32(-1)), 0)
	}, append(loginOptions(loginOptional), zktest.WithRequiredAuth())...)
}
