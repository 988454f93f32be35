package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// parting is what it takes to let go of go-zookeeper.
const parting = 10 * time.Millisecond

// failed checks a Connect that failed: nothing is left of it, here or there.
func (r *rig) failed(c *client.Client, err error, texts ...string) {
	r.Helper()
	if err == nil || c != nil {
		r.Fatalf("Connect = %v, %v", c, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			r.Errorf("error %q lacks %q", err, text)
		}
	}
	if strings.Count(err.Error(), "client:") != 1 {
		r.Errorf("error %q: want the package named once", err)
	}
	wantQuiet(r.T)
	if open := r.Srv.ConnCount(); open != 0 {
		r.Errorf("%d connections left", open)
	}
}

func TestConnectNobodyListens(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Refuse()
		start := time.Now()
		c, err := r.Open("a:1,b:2,[::1]:3", "a")
		if took := time.Since(start); took < testrig.SessionTimeout || took > testrig.SessionTimeout+parting {
			t.Errorf("took %v, want the session timeout", took)
		}
		testrig.WantErr(t, err, client.ErrNotConnected)
		notItsContext(t, err)
		r.failed(c, err, "a:1: ", "b:2: ", "[::1]:3: ", "connection refused", "is ZooKeeper running", "no session within 10s")
	})
}

// The reason of each server is its own.
func TestConnectNamesEveryReason(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		dial := func(ctx context.Context, _, address string) (net.Conn, error) {
			if address == "silent:2181" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, errors.New("no way to " + address)
		}
		c, err := r.Open("silent,lost", "a", client.WithDialer(dial))
		r.failed(c, err, "silent:2181: ", "deadline exceeded", "lost:2181: ", "no way to lost:2181")
	})
}

func TestConnectSilentServer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*zktest.Server){
		"frozen":    (*zktest.Server).Freeze,
		"handshake": (*zktest.Server).HangHandshake,
		"partition": (*zktest.Server).Partition,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				fault(r.Srv)
				start := time.Now()
				c, err := r.Open("zk:2181", "a", client.WithConnectTimeout(7*time.Second))
				if took := time.Since(start); took < 7*time.Second || took > 7*time.Second+parting {
					t.Errorf("took %v", took)
				}
				if c != nil || err == nil || !strings.Contains(err.Error(), "zk:2181: ") || !strings.Contains(err.Error(), "timeout") &&
					!strings.Contains(err.Error(), "deadline") {
					t.Errorf("Connect = %v, %v", c, err)
				}
				notItsContext(t, err)
				wantQuiet(t)
			})
		})
	}
}

// notItsContext checks an error of a Connect whose context lives on.
func notItsContext(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("the caller's context has not ended: %v", err)
	}
}

func TestConnectContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		ended, cancel := context.WithCancelCause(r.Ctx)
		gone := errors.New("no caller waits")
		cancel(gone)
		start := time.Now()
		c, err := r.With(ended).Open("zk", "a")
		testrig.WantErr(t, err, context.Canceled, gone)
		r.failed(c, err)
		if took := time.Since(start); took > parting {
			t.Errorf("with an ended context: took %v", took)
		}

		r.Srv.Freeze()
		ctx, cancel := context.WithCancelCause(r.Ctx)
		start = time.Now()
		time.AfterFunc(1234*time.Millisecond, func() { cancel(gone) })
		c, err = r.With(ctx).Open("zk", "a")
		testrig.WantErr(t, err, context.Canceled, gone)
		if took := time.Since(start); took < 1234*time.Millisecond || took > 1234*time.Millisecond+parting || c != nil {
			t.Errorf("cancelled during it: took %v, %v", took, c)
		}
		wantQuiet(t)
		r.Srv.Thaw()

		// The client outlives the context it was connected with.
		ctx, stop := context.WithCancel(r.Ctx)
		c, err = r.With(ctx).Open("zk", "a")
		r.Check(err)
		stop()
		time.Sleep(time.Minute)
		_, _, err = c.Exists(r.Ctx, "/")
		r.Check(err)
		r.Check(c.CloseContext(r.Ctx))
	})
}

// A server that goes silent after the session is there does not make Connect
// outlast its context.
func TestConnectSilentAfterSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpExists}, func(context.Context, zktest.Request) { r.Srv.Freeze() })
		ctx, cancel := context.WithTimeout(r.Ctx, 2*time.Second)
		defer cancel()
		start := time.Now()
		c, err := r.With(ctx).Open("zk/app", "a")
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took > 2400*time.Millisecond+parting || c != nil {
			t.Errorf("took %v, %v", took, c)
		}
		wantQuiet(t)
	})
}

// The same without an end of its context: the time was up by itself.
func TestConnectSilentWithinItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpExists}, func(context.Context, zktest.Request) { r.Srv.Freeze() })
		c, err := r.Open("zk/app", "a", client.WithConnectTimeout(2*time.Second))
		testrig.WantErr(t, err, client.ErrNotConnected)
		notItsContext(t, err)
		if c != nil {
			t.Error("connected")
		}
		wantErrText(t, err, "not answered within 2s", "context")
		wantQuiet(t)
	})
}

func TestConnectChroot(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, err := r.Open("zk/app/prod", "a")
		testrig.WantErr(t, err, client.ErrNoChroot)
		r.failed(c, err, "/app/prod", "create it first", "WithNamespace")
		if n := r.Srv.Sessions(); len(n) != 0 {
			t.Errorf("sessions left: %v", n)
		}

		c, err = r.Open("zk/app,zk/app", "a") // behind every server
		testrig.WantErr(t, err, client.ErrNoChroot)
		r.failed(c, err, "/app,zk/app", "written once")

		r.create("/app/prod/node", "x")
		c, err = r.Open("zk/app/prod", "b")
		r.Check(err)
		data, _, err := c.Get(r.Ctx, "/node")
		if err != nil || string(data) != "x" {
			t.Errorf("Get = %q, %v", data, err)
		}
	})
}

func TestConnectUnknownAuthScheme(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		start := time.Now()
		c, err := r.Open("zk", "a", client.WithAuth("nonsense", "user:secret"))
		testrig.WantErr(t, err, client.ErrAuthFailed)
		if took := time.Since(start); took > time.Second+parting {
			t.Errorf("took %v", took)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the credentials: %v", err)
		}
		r.failed(c, err, "nonsense")
	})
}

// Credentials come before everything else on every connection, so a node that
// only they may read can be read after a blip.
func TestAuthOnEveryConnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithAuth("digest", "user:secret"))
		_, err := c.Create(r.Ctx, "/private", []byte("x"))
		r.Check(err)
		for range 3 {
			r.Srv.CutAll()
			if data, _, err := c.Get(r.Ctx, "/private"); err != nil || string(data) != "x" {
				t.Errorf("Get = %q, %v", data, err)
			}
		}
		other := r.Connect("b")
		_, _, err = other.Get(r.Ctx, "/private")
		wantOutcome(t, err, client.OutcomeRefused)
	})
}

// While no server is there, attempts become rare; when one is back the client
// finds it within a sixth of the session timeout.
func TestReconnectPace(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var dials atomic.Int64
		link := r.Srv.Client("a")
		c := r.Connect("a", client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return link.DialContext(ctx, network, address)
		}))
		time.Sleep(time.Minute)
		r.Srv.Stop()
		dials.Store(0)
		time.Sleep(10 * time.Minute)
		if n := dials.Load(); n < 60*5 || n > 60*60 {
			t.Errorf("%d dials in ten minutes without a server", n)
		}
		r.Srv.Resume()
		start := time.Now()
		_, err := c.Session(r.Ctx)
		r.Check(err)
		synctest.Wait()
		if took := time.Since(start); took > testrig.SessionTimeout/6+time.Second {
			t.Errorf("back after %v", took)
		}
	})
}
