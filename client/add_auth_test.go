package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// secret makes a node that only user:password may read, as another client would.
func (r *rig) secret(path, user, password string) {
	r.Helper()
	c := r.Connect("owner of " + path)
	_, err := c.Create(r.Ctx, path, []byte("x"), client.ACL(zk.DigestACL(zk.PermAll, user, password)...))
	r.Check(err)
	r.Check(c.Close())
}

// reads reports whether c may read the node.
func (r *rig) reads(c *client.Client, path string) bool {
	r.Helper()
	_, _, err := c.Get(r.Ctx, path)
	if err != nil && !errors.Is(err, client.ErrNoAuth) {
		r.Fatal(err)
	}
	return err == nil
}

// Credentials that are added serve at once, over every later connection, and in later sessions.
func TestAddAuth(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.secret("/one", "u", "1")
		r.secret("/two", "u", "2")
		c := r.Connect("a", client.WithAuth("digest", "u:1"))
		first := r.Session(c)
		if !r.reads(c, "/one") || r.reads(c, "/two") {
			t.Fatal("nothing is tested")
		}
		r.Check(c.AddAuth(r.Ctx, "digest", "u:2"))
		r.Check(c.AddAuth(r.Ctx, "digest", "u:2")) // again: no difference
		for i, disturb := range []func() int{func() int { return 0 }, r.Srv.CutAll, r.Srv.CutAll, r.Srv.Client("a").ExpireSession, r.Srv.CutAll} {
			disturb()
			time.Sleep(time.Minute)
			if !r.reads(c, "/one") || !r.reads(c, "/two") {
				t.Errorf("step %d: the client may read /one: %v, /two: %v", i, r.reads(c, "/one"), r.reads(c, "/two"))
			}
		}
		if first.Err() == nil {
			t.Error("there was one session only")
		}
		begun := r.Srv.Count(zktest.OpAuth)
		r.Srv.CutAll()
		time.Sleep(time.Minute)
		if n := r.Srv.Count(zktest.OpAuth) - begun; n != 2 {
			t.Errorf("a connection presented %d credentials", n)
		}
		// The ACL of new nodes is that of WithAuth, for both.
		_, err := c.Create(r.Ctx, "/ours", nil)
		r.Check(err)
		acl, _, err := c.GetACL(r.Ctx, "/ours")
		r.Check(err)
		if len(acl) != 2 {
			t.Errorf("ACL %v", acl)
		}
	})
}

// A client that had no credentials keeps its open ACL, and its errors name the new identity.
func TestAddAuthToAClientWithout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.secret("/one", "u", "1")
		c := r.Connect("a")
		r.Check(c.AddAuth(r.Ctx, "digest", "other:x"))
		_, _, err := c.Get(r.Ctx, "/one")
		wantErrText(t, err, `digest user "other"`, "presents no credentials")
		_, err = c.Create(r.Ctx, "/open", nil)
		r.Check(err)
		if acl, _, err := c.GetACL(r.Ctx, "/open"); err != nil || !slices.Equal(acl, zk.WorldACL(zk.PermAll)) {
			t.Errorf("%v, %v", acl, err)
		}
	})
}

// After the replacement later connections present the new credentials alone.
func TestReplaceAuth(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.secret("/one", "u", "1")
		r.secret("/two", "u", "2")
		c := r.Connect("a", client.WithAuth("digest", "u:1"), client.WithAuth("digest", "v:1"))
		s := r.Session(c)
		r.Check(c.ReplaceAuth(r.Ctx, "digest", "u:2"))
		if !r.reads(c, "/one") || !r.reads(c, "/two") {
			t.Error("the connection of the call lacks the old credentials, or the new ones")
		}
		for range 2 {
			r.Srv.CutAll()
			time.Sleep(time.Minute)
			if r.reads(c, "/one") || !r.reads(c, "/two") {
				t.Error("a later connection has the old credentials, or lacks the new ones")
			}
		}
		r.Check(s.Err())
	})
}

// A refusal costs the connection. The session goes on with the credentials that it had, and so
// does what is held.
func TestAddAuthRefused(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*client.Client, context.Context, string, string) error{
		"add": (*client.Client).AddAuth, "replace": (*client.Client).ReplaceAuth,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.secret("/one", "u", "1")
				c := r.Connect("a", client.WithAuth("digest", "u:1"))
				s := r.Session(c)
				hold := r.keep(s)
				for range 3 {
					err := call(c, r.Ctx, "nosuch", "hunter2")
					testrig.WantErr(t, err, client.ErrAuthFailed)
					wantOutcome(t, err, client.OutcomeRefused)
					wantErrText(t, err, "client: add credentials of scheme nosuch: ", "hunter2")
					wantErrText(t, err, "the client goes on with those that it had", "client.WithAuth gave")
					if client.SafeToRetry(err) {
						t.Error("a repeat would be refused too")
					}
					if !r.reads(c, "/one") || s.Err() != nil || hold.Err() != nil {
						t.Errorf("after the refusal: session %v, hold %v", s.Err(), hold.Err())
					}
				}
				time.Sleep(10 * time.Minute)
				if hold.Err() != nil || r.Session(c).ID() != s.ID() {
					t.Errorf("later: %v", hold.Err())
				}
				if all := r.Srv.Sessions(); len(all) != 1 {
					t.Errorf("sessions: %v", all)
				}
				hold.Done()
			})
		})
	}
}

// What the credentials may be.
func TestAddAuthInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithMaxRequest(1024))
		for text, args := range map[string][2]string{
			"there is no scheme": {"", "u:secret"}, `are "user:password"`: {"digest", "secret"},
			"a request of ": {"digest", "u:secret" + strings.Repeat("x", 1024)},
		} {
			err := c.AddAuth(r.Ctx, args[0], args[1])
			wantErrText(t, err, text, "secret")
			wantOutcome(t, err, client.OutcomeNeverSent)
		}
		if n := r.Srv.Count(zktest.OpAuth); n != 0 {
			t.Errorf("%d requests", n)
		}
		r.Check(c.Close())
		testrig.WantErr(t, c.AddAuth(r.Ctx, "digest", "u:p"), client.ErrClosed)
	})
}

// A lost answer makes the client present the credentials again. After the end of the context
// they may be those of one connection, and are of no later one.
func TestAddAuthThroughFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*zktest.Server, zktest.Match) *zktest.Rule{
		"reply lost": (*zktest.Server).LoseReply, "dropped before": (*zktest.Server).DropBefore,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.secret("/one", "u", "1")
				c := r.Connect("a")
				rule := fault(r.Srv, zktest.Match{Op: zktest.OpAuth})
				r.Check(c.AddAuth(r.Ctx, "digest", "u:1"))
				r.Srv.CutAll()
				if !r.reads(c, "/one") || rule.Fired() != 1 {
					t.Errorf("the fault came %d times", rule.Fired())
				}
			})
		})
	}
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			r.secret("/one", "u", "1")
			c := r.Connect("a")
			s := r.Session(c)
			r.Srv.StallReply(zktest.Match{Op: zktest.OpAuth})
			err := c.AddAuth(r.Within(time.Second), "digest", "u:1")
			testrig.WantErr(t, err, context.DeadlineExceeded)
			wantOutcome(t, err, client.OutcomeUnknown)
			time.Sleep(time.Minute) // the connection that stands still is given up
			if r.reads(c, "/one") {
				t.Error("a later connection has the credentials")
			}
			r.Check(s.Err())
			r.Check(c.AddAuth(r.Ctx, "digest", "u:1"))
			if !r.reads(c, "/one") {
				t.Error("the second call has had no effect")
			}
		})
	})
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(r *rig) {
			r.secret("/one", "u", "1")
			c := r.Connect("a")
			r.Srv.Client("a").Partition()
			time.Sleep(5 * time.Minute) // the session is over
			err := c.AddAuth(r.Within(time.Second), "digest", "u:0")
			wantOutcome(t, err, client.OutcomeNeverSent)
			done := make(chan error, 1)
			go func() { done <- c.AddAuth(r.Ctx, "digest", "u:1") }() // waits for the connection
			time.Sleep(time.Minute)
			r.Srv.Client("a").Heal()
			r.Check(<-done)
			if !r.reads(c, "/one") {
				t.Error("no effect")
			}
		})
	})
}

// Credentials without a server's answer are no sign of life: servers do not look at the session.
func TestAddAuthIsNoSignOfLife(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithSessionTimeout(10*time.Second))
		s := r.Session(c)
		r.Srv.Ignore(zktest.Match{Op: zktest.OpPing, Times: zktest.Always})
		for range 60 { // half a second each
			_ = c.AddAuth(r.Within(time.Second), "digest", "u:1") // what it says is of no use here
			time.Sleep(time.Second / 2)
		}
		// The loop goes on in the next session.
		wantErrText(t, s.Err(), "no request sent within the session timeout was answered", "expired")
	})
}

// Servers that begin to refuse the old credentials accept the replacement with the next session.
func TestReplaceAuthOfRefusedCredentials(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithAuth("digest", "u:1"))
		r.secret("/one", "u", "1")
		r.secret("/two", "u", "2")
		refused := r.Srv.Fail(zktest.Match{Op: zktest.OpAuth, Times: zktest.Always}, zktest.CodeAuthFailed)
		r.Srv.CutAll()
		time.Sleep(time.Minute)
		_, err := c.Create(r.Ctx, "/n", nil)
		testrig.WantErr(t, err, client.ErrAuthFailed)
		testrig.WantErr(t, c.AddAuth(r.Ctx, "digest", "u:2"), client.ErrAuthFailed)
		err = c.ReplaceAuth(r.Ctx, "digest", "u:2")
		testrig.WantErr(t, err, client.ErrAuthFailed, client.ErrNotConnected)
		wantErrText(t, err, "the next connection presents the new ones", "u:")
		refused.Remove()
		time.Sleep(time.Minute)
		if r.reads(c, "/one") || !r.reads(c, "/two") {
			t.Error("the client presents the old credentials, or lacks the new ones")
		}
	})
}

// Many goroutines add and replace while connections end.
func TestAddAuthCrowd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.secret("/one", "u", "1")
		c := r.Connect("a")
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 20 {
					call := c.AddAuth
					if n%3 == 2 {
						call = c.ReplaceAuth
					}
					if err := call(r.Ctx, "digest", []string{"u:1", "u:2", "v:1"}[(i+n)%3]); err != nil {
						r.Error(err)
					}
					if n%7 == 0 {
						r.Srv.CutAll()
					}
				}
			})
		}
		wg.Wait()
		r.Check(c.ReplaceAuth(r.Ctx, "digest", "u:1"))
		r.Srv.CutAll()
		if !r.reads(c, "/one") {
			t.Error("the last credentials have no effect")
		}
	})
}

// A new password serves from the next connection on.
func TestDigestMD5From(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var mu sync.Mutex
		user, password, failing := "docent", "wrong-pa55", error(nil)
		set := func(u, p string, err error) {
			mu.Lock()
			defer mu.Unlock()
			user, password, failing = u, p, err
		}
		m := client.DigestMD5From(func(context.Context) (string, string, error) {
			mu.Lock()
			defer mu.Unlock()
			return user, password, failing
		})
		if m.Name() != "DIGEST-MD5" {
			t.Error(m.Name())
		}
		_, err := r.Open("zk:2181", "a", client.WithSASL(m))
		testrig.WantErr(t, err, client.ErrAuthFailed)
		wantSays(t, err, `user "docent" or the password is wrong`, "wrong-pa55")
		set("", "", errors.New("no such file"))
		_, err = r.Open("zk:2181", "a", client.WithSASL(m))
		testrig.WantErr(t, err, client.ErrNotConnected)
		testrig.WantNoErr(t, err, client.ErrAuthFailed)
		wantSays(t, err, "no such file", "pa55")
		set("docent", "", nil)
		_, err = r.Open("zk:2181", "a", client.WithSASL(m))
		wantSays(t, err, "read the user and the password: ", "pa55")
		set("docent", "s3cret", nil)
		c := r.Connect("a", client.WithSASL(m))
		s := r.Session(c)
		set("other", "pw2", nil)
		_, err = c.Create(r.Ctx, "/first", nil)
		r.Check(err)
		r.Srv.CutAll()
		time.Sleep(time.Minute)
		_, err = c.Create(r.Ctx, "/second", nil)
		r.Check(err)
		r.Check(s.Err())
		for path, id := range map[string]string{"/first": "docent", "/second": "other"} {
			acl, _, err := c.GetACL(r.Ctx, path)
			if err != nil && !errors.Is(err, client.ErrNoAuth) {
				t.Error(err)
			}
			if err == nil && (len(acl) != 1 || acl[0].ID != id) {
				t.Errorf("%s is open to %v", path, acl)
			}
		}
		_, err = client.Connect(r.Ctx, "zk", client.WithSASL(client.DigestMD5From(nil)))
		wantErrText(t, err, "DigestMD5From needs a function", "panic")
	}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithSASLUser("other", "pw2"), zktest.WithRequiredAuth())
}
