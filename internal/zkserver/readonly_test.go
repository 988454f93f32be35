package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// askReadOnly asks for a session, of a read-only server too, and returns the answer.
func askReadOnly(t *testing.T, link *zktest.ClientLink, session int64, password []byte) (*raw, []byte, error) {
	t.Helper()
	c := memoryConn(t, link)
	if err := c.writeFrame(body(int32(0), int64(0), int32(9000), session, password, true)); err != nil {
		return c, nil, err
	}
	p, err := c.readFrame()
	if err != nil || len(p) < 37 {
		return c, p, err
	}
	d := dec{b: p[4:]}
	c.timeout, c.session = d.int(), d.long()
	c.password = []byte(d.text())
	return c, p, nil
}

// wantsReadOnly fails the test unless the server gives a session for reading.
func wantsReadOnly(t *testing.T, link *zktest.ClientLink) *raw {
	t.Helper()
	c, p, err := askReadOnly(t, link, 0, nil16())
	if err != nil || len(p) != 37 || p[36] != 1 || c.session == 0 {
		t.Fatalf("handshake %x, %v, want a session of a read-only server", p, err)
	}
	return c
}

// TestReadOnlySessions goes through what a client meets at a server that has lost its
// quorum and has local sessions.
func TestReadOnlySessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		before := memory(t, srv.Client("a"))
		must(t, before, 1, ephemeral("/e"), 0)
		srv.SetReadOnly(true)
		isOver(t, before)
		zxid := srv.Zxid()
		if _, _, err := askReadOnly(t, srv.Client("a"), before.session, before.password); kindOfError(err) != "closed" {
			t.Errorf("a session of the quorum: %v", err)
		}
		c := wantsReadOnly(t, srv.Client("a"))
		must(t, c, 4, exists("/e"), 0)
		must(t, c, 12, exists("/"), 0)
		must(t, c, 106, body("/e", int32(0)), 0)
		must(t, c, 107, nil, 0)
		must(t, c, 11, nil, 0)
		for _, w := range []struct {
			op      int32
			payload []byte
		}{
			{1, create("/a")},
			{15, create("/a")},
			{2, body("/e", int32(-1))},
			{5, body("/e", []byte{}, int32(-1))},
			{7, body("/e", openACL, int32(-1))},
			{9, body("/")},
			{14, transaction()},
			{16, body("", "", "", int64(-1))},
			{20, body("/e")},
		} {
			must(t, c, w.op, w.payload, -119)
		}
		again, _, err := askReadOnly(t, srv.Client("a"), c.session, c.password)
		if err != nil || again.session != c.session {
			t.Errorf("the local session comes back as %#x, %v", again.session, err)
		}
		isOver(t, c)
		must(t, again, -11, nil, 0)
		isOver(t, again)
		time.Sleep(time.Hour) // no session of the quorum expires meanwhile
		local := wantsReadOnly(t, srv.Client("a"))
		if srv.Zxid() != zxid {
			t.Errorf("zxid %#x, want %#x as before", srv.Zxid(), zxid)
		}
		srv.SetReadOnly(false)
		isOver(t, local)
		back, _, err := askReadOnly(t, srv.Client("a"), local.session, local.password)
		if err != nil || back.session != 0 {
			t.Errorf("the local session comes back as %#x, %v", back.session, err)
		}
		if err := memoryConn(t, srv.Client("a")).handshake(0, 9000, before.session, before.password); err != nil {
			t.Errorf("the session of the quorum: %v", err)
		}
	})
}

// TestReadOnlyExpiry lets a local session expire.
func TestReadOnlyExpiry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.SetReadOnly(true)
		c := wantsReadOnly(t, srv.Client("a"))
		start := time.Now()
		isOver(t, c)
		if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("it was over after %v", took)
		}
		if len(srv.Sessions()) != 0 || srv.ExpiredCount() != 1 {
			t.Errorf("sessions %v", srv.Sessions())
		}
	})
}

// TestReadOnlyGreeting is about a server without local sessions.
func TestReadOnlyGreeting(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.SetReadOnly(true)
		c, p, err := askReadOnly(t, srv.Client("a"), 0, nil16())
		d := dec{b: p}
		if xid, zxid, code := d.int(), d.long(), d.int(); err != nil || len(p) != 16 || xid != 0 || zxid != srv.Zxid() || code != -119 {
			t.Fatalf("greeting %x, %v", p, err)
		}
		if _, err := c.send(4, exists("/")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		isOver(t, c)
		if took := time.Since(start); took < 8*time.Second {
			t.Errorf("it was over after %v", took)
		}
		if len(srv.Sessions()) != 0 {
			t.Errorf("sessions %v", srv.Sessions())
		}
	}, zktest.WithoutLocalSessions())
}

// TestReadOnlyMember cuts a member off, which serves reads then, and lets it find its
// leader again.
func TestReadOnlyMember(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		m := e.Server(1)
		before := memory(t, m.Client("a"))
		must(t, before, 1, create("/a"), 0)
		must(t, before, 9, body("/"), 0)
		e.Isolate(1)
		isOver(t, before)
		if _, _, err := askReadOnly(t, m.Client("a"), 0, nil16()); kindOfError(err) != "closed" {
			t.Errorf("at once: %v", err)
		}
		time.Sleep(3 * time.Second)
		c := wantsReadOnly(t, m.Client("a"))
		must(t, c, 4, exists("/a"), 0)
		must(t, c, 1, create("/b"), -119)
		if _, _, err := askReadOnly(t, m.Client("a"), before.session, before.password); kindOfError(err) != "closed" {
			t.Errorf("a session of the quorum: %v", err)
		}
		e.Heal()
		isOver(t, c)
		d := memory(t, m.Client("a"))
		must(t, d, 1, create("/b"), 0)
	}, zktest.WithReadOnlyMode())
}
