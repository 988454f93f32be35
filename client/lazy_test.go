package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// lazy is a client that is there at once.
func (r *rig) lazy(connectString string, opts ...client.Option) *client.Client {
	r.Helper()
	begun := time.Now()
	c, err := r.Open(connectString, "a", append(opts, client.WithLazyConnect())...)
	r.Check(err)
	if took := time.Since(begun); took != 0 {
		r.Errorf("Connect took %v", took)
	}
	if got := c.State(); got != client.Connecting {
		r.Errorf("state %v", got)
	}
	return c
}

func TestLazyConnectServerComes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Refuse()
		r.create("/app", "")
		c := r.lazy("zk/app")
		done := make(chan error, 2)
		go func() { _, err := c.Create(r.Ctx, "/a", []byte("x")); done <- err }()
		go func() { _, err := c.Session(r.Ctx); done <- err }()
		time.Sleep(5 * testrig.SessionTimeout)
		if len(done) != 0 || c.State() != client.Connecting {
			t.Errorf("a call ended without a server: %v", <-done)
		}
		r.Srv.Accept()
		begun := time.Now()
		r.Check(<-done)
		r.Check(<-done)
		if took := time.Since(begun); took > testrig.SessionTimeout/6+time.Second {
			t.Errorf("found the server after %v", took)
		}
		if got := c.State(); got != client.Connected {
			t.Errorf("state %v", got)
		}
		if n, ok := r.Srv.Node("/app/a"); !ok || string(n.Data) != "x" {
			t.Errorf("node %+v", n)
		}
		asked := r.Srv.Count(zktest.OpExists)
		_, _, err := c.Get(r.Ctx, "/a")
		r.Check(err)
		if n := r.Srv.Count(zktest.OpExists); n != asked {
			t.Error("the chroot is looked up again")
		}
	})
}

// Without a server calls end with their context, and so does Close.
func TestLazyConnectNobodyComes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Refuse()
		c := r.lazy("zk1,zk2")
		begun := time.Now()
		_, _, err := c.Get(r.Within(time.Minute), "/a")
		testrig.WantErr(t, err, client.ErrNotConnected, context.DeadlineExceeded)
		wantOutcome(t, err, client.OutcomeNeverSent)
		wantErrText(t, err, "zk2:2181: ", "not tried yet")
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("took %v", took)
		}
		waits := make(chan error, 1)
		go func() { _, err := c.Create(r.Ctx, "/a", nil); waits <- err }()
		synctest.Wait()
		r.Check(c.CloseContext(r.Ctx))
		testrig.WantErr(t, <-waits, client.ErrClosed)
		wantQuiet(t)
	})
}

// A watch is a call too, before anything else has asked.
func TestLazyConnectWatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.lazy("zk/app")
		w, err := c.Watch(r.Ctx, "/p")
		testrig.WantErr(t, err, client.ErrNoChroot)
		wantOutcome(t, err, client.OutcomeNeverSent)
		if w != nil || r.Srv.WatchCount() != 0 {
			t.Errorf("watches nothing")
		}
		r.create("/app", "")
		w = r.watch(c, "/p")
		r.create("/app/p", "")
		r.told(w, "created /p")
	})
}

// Every call says that the chroot is missing, with nothing sent, until it is there.
func TestLazyConnectChroot(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.lazy("zk/app")
		s := r.Session(c) // is no request
		for range 2 {
			for name, call := range map[string]func() error{
				"create":  func() error { return second(c.Create(r.Ctx, "/a", nil, client.WithParents())) },
				"exists":  func() error { _, _, err := c.Exists(r.Ctx, "/a"); return err },
				"session": func() error { return second(s.Create(r.Ctx, "/a", nil)) },
				"multi":   func() error { return second(c.Multi(r.Ctx, client.CreateOp("/a", nil))) },
			} {
				err := call()
				testrig.WantErr(t, err, client.ErrNoChroot)
				wantOutcome(t, err, client.OutcomeNeverSent)
				wantErrText(t, err, "create it first, or use WithNamespace", "node does not exist")
				if _, there := r.Srv.Node("/app"); there {
					t.Errorf("%s made the chroot", name)
				}
			}
		}
		r.create("/app", "")
		r.Check(second(c.Create(r.Ctx, "/a", nil)))
		r.Check(second(s.Create(r.Ctx, "/b", nil)))
	})
}

// The answer to the question for the chroot is lost. The call is sent once all
// the same, and succeeds.
func TestLazyConnectLostAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		c := r.lazy("zk/app")
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpExists})
		r.Check(second(c.Create(r.Ctx, "/a", nil)))
		if n := r.Srv.Count(zktest.OpCreate); n != 1 {
			t.Errorf("%d creates", n)
		}
	})
}

// A chroot that may not be read is there.
func TestLazyConnectHardened(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		r.Srv.Fail(zktest.Match{Op: zktest.OpExists, Path: "/app"}, zktest.CodeNoAuth)
		r.Check(second(r.lazy("zk/app").Create(r.Ctx, "/a", nil)))
	})
}

// Credentials that the servers refuse are what every call ends with.
func TestLazyConnectRefusedCredentials(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.lazy("zk", client.WithAuth("nonsense", "app:secret"))
		for range 3 {
			begun := time.Now()
			_, _, err := c.Get(r.Ctx, "/a")
			testrig.WantErr(t, err, client.ErrAuthFailed)
			wantErrText(t, err, "the servers refuse what client.WithAuth gave", "secret")
			if took := time.Since(begun); took > testrig.SessionTimeout {
				t.Errorf("took %v", took)
			}
			time.Sleep(testrig.SessionTimeout)
		}
	})
}

// A wrong password is told as for any client.
func TestLazyConnectWrongPassword(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		admin := r.Connect("admin", client.WithAuth("digest", "app:secret"))
		r.Check(second(admin.Create(r.Ctx, "/app", nil)))
		c := r.lazy("zk/app", client.WithAuth("digest", "app:wrong"))
		_, err := c.Create(r.Ctx, "/a", nil)
		wantErrText(t, err, `digest user "app"; a wrong password looks the same`, "wrong\"")
		wantOutcome(t, err, client.OutcomeRefused)
	})
}

// A timeout that is too short for the lease policy is what every call ends with.
func TestLazyConnectShortTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.SetSessionTimeouts(time.Second, time.Second)
		c := r.lazy("zk", client.WithLeasePolicy(client.LeasePolicy{SafetyMargin: 5 * time.Second}))
		for range 2 {
			err := second(c.Create(r.Ctx, "/a", nil))
			testrig.WantErr(t, err, client.ErrUnsafeTimeout)
			wantOutcome(t, err, client.OutcomeNeverSent)
		}
	})
}

// What is wrong with the arguments is said at once, also by a lazy client.
func TestLazyConnectWrongArguments(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, where := range []string{"", "zk:0", "zk//"} {
			if c, err := r.Open(where, "a", client.WithLazyConnect()); err == nil || c != nil {
				t.Errorf("%q: %v, %v", where, c, err)
			}
		}
	})
}
