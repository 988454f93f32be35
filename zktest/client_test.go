package zktest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// attach opens a session of go-zookeeper through a link.
func attach(t *testing.T, link zktest.Link, servers ...string) *zk.Conn {
	t.Helper()
	if len(servers) == 0 {
		servers = link.Servers()
	}
	c, events, err := zk.Connect(servers, 30*time.Second,
		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			return c
		}
	}
	t.Fatal("no session")
	return nil
}

// ids returns the ids of sessions, in their order.
func ids(sessions []zktest.Session) (out []int64) {
	for _, s := range sessions {
		out = append(out, s.ID)
	}
	return out
}

// A client's handle ends its own session, whichever client came first.
func TestExpireSessionOfOneClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		first, second := attach(t, srv.Client("b")), attach(t, srv.Client("a"))
		before := []int64{first.SessionID(), second.SessionID()}
		if got := ids(srv.Sessions()); !slices.Equal(got, before) {
			t.Errorf("sessions %x, want the oldest first: %x", got, before)
		}
		if got := ids(srv.Client("a").Sessions()); !slices.Equal(got, before[1:]) {
			t.Errorf("sessions of a: %x, want %x", got, before[1:])
		}
		if n := srv.Client("a").ExpireSession(); n != 1 {
			t.Errorf("ended %d sessions, want 1", n)
		}
		if n := srv.Client("a").ExpireSession() + srv.Client("none").ExpireSession(); n != 0 {
			t.Errorf("ended %d sessions that are not there", n)
		}
		if got := ids(srv.Sessions()); !slices.Equal(got, before[:1]) || srv.ExpiredCount() != 1 {
			t.Errorf("sessions %x, want only that of b: %x", got, before[:1])
		}
		time.Sleep(5 * time.Second) // a comes back with a new session
		if got := srv.Sessions(); len(got) != 2 || got[0].Client != "b" || got[1].Client != "a" {
			t.Errorf("sessions %+v, want the newest last", got)
		}
	})
}

// A session that has moved is cut off by its next request, and its client alone.
func TestMoveSessionOfOneClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		a, b := attach(t, srv.Client("a")), attach(t, srv.Client("b"))
		if n := srv.Client("a").MoveSession(); n != 1 {
			t.Errorf("moved %d sessions, want 1", n)
		}
		if _, _, err := b.Exists("/"); err != nil {
			t.Errorf("b: %v", err)
		}
		if _, err := a.Set("/", nil, -1); err == nil {
			t.Error("a writes through a connection that its session has left")
		}
	})
}

// The handle of an ensemble's client ends its session through the leader, wherever
// the client is connected.
func TestExpireSessionInAnEnsemble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := zktest.NewEnsemble(t, 3, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		a := attach(t, e.Client("a"), "127.0.0.1:2181")
		attach(t, e.Client("b"), "127.0.0.2:2181")
		if got := ids(e.Client("a").Sessions()); !slices.Equal(got, []int64{a.SessionID()}) {
			t.Errorf("sessions of a: %x, want %x", got, a.SessionID())
		}
		if n := e.Client("a").ExpireSession(); n != 1 {
			t.Errorf("ended %d sessions, want 1", n)
		}
		if n := e.Client("b").To(3).ExpireSession(); n != 1 { // a member on which b is not connected
			t.Errorf("ended %d sessions, want 1", n)
		}
		if left := e.Leader().Sessions(); len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
		e.Isolate(3)
		e.Isolate(1)
		if n := e.Client("a").ExpireSession(); n != 0 || len(e.Client("a").Sessions()) != 0 {
			t.Errorf("ended %d sessions without a leader", n)
		}
		e.Heal()
	})
}
