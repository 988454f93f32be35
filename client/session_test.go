package client_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// Requests that are under way while their session ends run in that session or not
// at all, whatever instant it ends at. No node of a bound create belongs to
// another session.
func TestNoRequestInAnotherSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/q", "")
		c := r.Connect("a")
		const rounds, workers = 40, 8
		for round := range rounds {
			s := r.Session(c)
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := 0; ; i++ {
						path := fmt.Sprintf("/q/%d-%d-%d", s.ID(), w, i)
						_, err := s.Create(r.Ctx, path, nil, client.Ephemeral())
						if errors.Is(err, client.ErrSessionLost) {
							return
						}
						if err != nil && !client.UnknownOutcome(err) { // the connection went first
							t.Errorf("error %v", err)
						}
					}
				})
			}
			time.Sleep(time.Duration(round) * 137 * time.Microsecond)
			r.Srv.ExpireSession(s.ID())
			wg.Wait()
			if r.Session(c).ID() == s.ID() {
				r.Fatal("the session was expired and is current")
			}
			for _, node := range r.Srv.Tree() {
				var made int64
				if n, _ := fmt.Sscanf(node.Path, "/q/%d-", &made); n == 1 && node.Stat.EphemeralOwner != made {
					r.Fatalf("%s belongs to session %d", node.Path, node.Stat.EphemeralOwner)
				}
			}
		}
		for _, req := range r.Srv.Log() {
			var made int64
			if n, _ := fmt.Sscanf(req.Path, "/q/%d-", &made); n == 1 && req.Session != made {
				r.Fatalf("request of session %d in another: %v", made, req)
			}
		}
	}, zktest.WithLogSize(100_000))
}

// What waits in go-zookeeper's queue when the session ends is not sent in the
// next one.
func TestQueuedRequestsDieWithTheirSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		r.Srv.Client("a").Partition()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				_, err := s.Create(r.Ctx, fmt.Sprintf("/n%d", i), nil)
				if !errors.Is(err, client.ErrSessionLost) && !client.UnknownOutcome(err) {
					t.Errorf("error %v", err)
				}
			})
		}
		synctest.Wait()
		r.Srv.ExpireSession(s.ID())
		r.Srv.Client("a").Heal()
		wg.Wait()
		if next := r.Session(c); next.ID() == s.ID() {
			t.Error("same session")
		}
		for _, req := range r.Srv.Log() {
			if req.Op == zktest.OpCreate && req.Session != s.ID() {
				t.Errorf("sent in another session: %v", req)
			}
		}
	})
}

func TestSessionLost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, c *client.Client, s *client.Session){
		"expired by the server": func(r *rig, _ *client.Client, s *client.Session) { r.Srv.ExpireSession(s.ID()) },
		"silence": func(r *rig, _ *client.Client, _ *client.Session) {
			r.Srv.Freeze()
			time.AfterFunc(time.Minute, r.Srv.Thaw)
		},
		"silence while something is held": func(r *rig, c *client.Client, _ *client.Session) {
			r.hold(c, "/held") // and not given up when it is lost
			r.Srv.Freeze()
			time.AfterFunc(time.Minute, r.Srv.Thaw)
		},
		"answer to a request": func(r *rig, _ *client.Client, s *client.Session) {
			r.Srv.Fail(zktest.Match{Op: zktest.OpGetData}, zktest.CodeSessionExpired)
			_, _, err := s.Get(r.Ctx, "/")
			testrig.WantErr(r.T, err, client.ErrSessionLost)
		},
		"refused handshake": func(r *rig, _ *client.Client, _ *client.Session) {
			r.Srv.Fail(zktest.Match{Op: zktest.OpConnect}, zktest.CodeSessionExpired)
			r.Srv.CutAll()
		},
		"closed behind our back": func(_ *rig, c *client.Client, _ *client.Session) { c.Conn().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				s := r.Session(c)
				if s.Err() != nil || s.Context().Err() != nil || s.Timeout() != testrig.SessionTimeout {
					r.Fatalf("at first: %v, %v, %v", s.Err(), s.Context().Err(), s.Timeout())
				}
				end(r, c, s)
				r.await("the end of the session", s.Context().Done())
				testrig.WantErr(t, s.Err(), client.ErrSessionLost)
				wantNamedOnce(t, s)
				lostOperations(r, s)
				if _, _, err := c.Exists(r.Ctx, "/"); err != nil {
					t.Errorf("in the next session: %v", err)
				}
				if got := r.Session(c); got.ID() == s.ID() || got.Err() != nil {
					t.Errorf("next session: same %v, %v", got.ID() == s.ID(), got.Err())
				}
			})
		})
	}
}

// wantNamedOnce checks that the errors of a session that is over name it, and
// only once.
func wantNamedOnce(t *testing.T, s *client.Session) {
	t.Helper()
	_, _, err := s.Get(t.Context(), "/")
	for _, err := range []error{s.Err(), err} {
		if n := strings.Count(err.Error(), fmt.Sprintf("0x%x", uint64(s.ID()))); n != 1 {
			t.Errorf("the session is named %d times: %v", n, err)
		}
	}
}

// lostOperations runs every kind of operation in a session that is over.
func lostOperations(r *rig, s *client.Session) {
	r.Helper()
	ctx := r.Ctx
	asked := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpGetData) + r.Srv.Count(zktest.OpMulti)
	for name, op := range map[string]func() error{
		"create":    func() error { _, err := s.Create(ctx, "/x", nil); return err },
		"protected": func() error { _, err := s.Create(ctx, "/x", nil, client.Protected()); return err },
		"list":      func() error { _, err := inner.CreateAndList(ctx, s, newNode{Dir: "/", Prefix: "x-"}); return err },
		"get":       func() error { _, _, err := s.Get(ctx, "/"); return err },
		"getW":      func() error { _, _, _, err := s.GetW(ctx, "/"); return err },
		"exists":    func() error { _, _, err := s.Exists(ctx, "/"); return err },
		"existsW":   func() error { _, _, _, err := s.ExistsW(ctx, "/"); return err },
		"children":  func() error { _, _, err := s.Children(ctx, "/"); return err },
		"childrenW": func() error { _, _, _, err := s.ChildrenW(ctx, "/"); return err },
		"set":       func() error { _, err := s.Set(ctx, "/x", nil, 0); return err },
		"delete":    func() error { return s.Delete(ctx, "/x", 0) },
		"sync":      func() error { return s.Sync(ctx, "/") },
		"getACL":    func() error { _, _, err := s.GetACL(ctx, "/"); return err },
		"setACL":    func() error { _, err := s.SetACL(ctx, "/", zk.WorldACL(zk.PermAll), 0); return err },
		"multi":     func() error { _, err := s.Multi(ctx, client.DeleteOp("/x", -1)); return err },
	} {
		err := op()
		if !errors.Is(err, client.ErrSessionLost) || !neverSent(err) {
			r.Errorf("%s in a lost session: %v, never sent: %v", name, err, neverSent(err))
		}
	}
	if now := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpGetData) + r.Srv.Count(zktest.OpMulti); now != asked {
		r.Errorf("%d requests were sent for a lost session", now-asked)
	}
}

// Operations of the client outlive the session that they began in.
func TestClientOperationsOutliveTheSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "x")
		c := r.Connect("a")
		for _, fault := range []func(){
			func() { r.Srv.ExpireSession(r.Session(c).ID()) },
			func() { r.Srv.Fail(zktest.Match{Op: zktest.OpGetData}, zktest.CodeSessionExpired) },
			func() { r.Srv.Freeze(); time.AfterFunc(time.Minute, r.Srv.Thaw) },
		} {
			s := r.Session(c)
			fault()
			data, _, err := c.Get(r.Ctx, "/a")
			if err != nil || string(data) != "x" {
				t.Errorf("Get = %q, %v", data, err)
			}
			if s.Err() == nil {
				t.Error("the session did not end: nothing was shown")
			}
		}
	})
}

// The zk.Conn of a session is that session's for good.
func TestConn(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		conn := c.Conn()
		synctest.Wait() // the session is told of before go-zookeeper has read its id
		if conn.SessionID() != s.ID() {
			t.Errorf("session %d, conn %d", s.ID(), conn.SessionID())
		}
		r.Srv.ExpireSession(s.ID())
		<-s.Context().Done()
		next := r.Session(c)
		synctest.Wait()
		if c.Conn() == conn || c.Conn().SessionID() != next.ID() {
			t.Error("the conn was not replaced")
		}
		if _, _, err := conn.Get("/"); err == nil {
			t.Error("the old conn works")
		}
		r.Srv.Freeze()
		<-next.Context().Done()
		if c.Conn() != nil {
			t.Error("a conn without a session")
		}
		r.Srv.Thaw()
		r.Check(c.CloseContext(r.Ctx))
		if c.Conn() != nil {
			t.Error("a conn after Close")
		}
	})
}

// A call of a session says that the session is over, also if the session ended
// only after the call had failed. A caller that asks whether the session was lost
// is not told of a connection.
func TestSessionEndsBehindAFailedTry(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.Session(r.Connect("a"))
		err := client.ReadWhoseSessionEnds(r.Ctx, s, errors.New("expired"))
		testrig.WantErr(t, err, client.ErrSessionLost)
		if strings.Contains(err.Error(), "connection closed") || !neverSent(err) {
			t.Errorf("error %v", err)
		}
	})
}

// A session refuses the paths of another client, and says so.
func TestSessionInAStranger(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		for name, stranger := range map[string]*client.Client{"nobody": nil, "another client": r.Connect("b")} {
			in, err := inner.In(s, stranger)
			if in != nil {
				t.Errorf("%s: %v", name, in)
			}
			wantErrText(t, err, "namespaces", "nil")
		}
		ns, err := c.Namespace("ns")
		r.Check(err)
		in, err := inner.In(s, ns)
		if err != nil || in.ID() != s.ID() {
			t.Errorf("in a namespace: %v, %v", in, err)
		}
	})
}
