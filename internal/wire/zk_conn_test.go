package wire_test

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// hosts is a host provider without name look-ups, which bubbles do not allow.
// Every call starts a round, so a Conn whose Link is over sleeps between dials.
type hosts struct{}

func (hosts) Init([]string) error  { return nil }
func (hosts) Len() int             { return 1 }
func (hosts) Next() (string, bool) { return "s:1", true }
func (hosts) Connected()           {}

// script answers what go-zookeeper sends: sessions, creates, pings, reads and
// closes. Requests are noted.
type script struct {
	mu      sync.Mutex
	expired bool
	refuse  int    // the code of all answers, if it is not 0
	body    []byte // of all answers, if it is not nil
	seen    [][]byte
}

func (s *script) serve(p *peer) {
	defer func() { _ = p.conn.Close() }()
	if _, err := p.next(); err != nil {
		return
	}
	s.mu.Lock()
	expired := s.expired
	s.mu.Unlock()
	answer := connectResponse(sessionID, timeout)
	if expired {
		answer = connectResponse(0, 0)
	}
	if _, err := p.conn.Write(answer); err != nil {
		return
	}
	for zxid := int64(100); ; zxid++ {
		b, err := p.next()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.seen = append(s.seen, b)
		refuse, body := s.refuse, s.body
		s.mu.Unlock()
		xid, op := int(int32(binary.BigEndian.Uint32(b[4:]))), int(int32(binary.BigEndian.Uint32(b[8:])))
		out := reply(xid, zxid, refuse, body)
		switch {
		case refuse != 0 || body != nil || xid == -2:
		case op == 1:
			out = reply(xid, zxid, 0, "/a0000000001")
		case op == 4:
			out = reply(xid, zxid, 0, "data", make([]byte, 68))
		}
		if _, err := p.conn.Write(out); err != nil || op == -11 {
			return
		}
	}
}

// count returns how many requests of type op were seen.
func (s *script) count(op int32) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.seen {
		if int32(binary.BigEndian.Uint32(b[8:])) == op {
			n++
		}
	}
	return n
}

// connect starts an unmodified zk.Conn on the rig's Link, and the server.
func connect(t testing.TB, r *rig, s *script) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	t.Helper()
	conn, events, err := zk.Connect([]string{"s:1"}, timeout,
		zk.WithDialer(r.link.Dial), zk.WithHostProvider(hosts{}), zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case p := <-r.peers:
				go s.serve(p)
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		r.link.End(errKilled)
		conn.Close()
		close(stop)
		for range events { // until the Conn's goroutine has ended
		}
	})
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return conn, events
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func TestZKConn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(t, withAuth("digest", "u:p")), &script{}
		conn, _ := connect(t, r, s)
		path, err := conn.Create("/a", []byte("data"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil || path != "/a0000000001" {
			t.Fatalf("Create = %q, %v", path, err)
		}
		// What the Link sends by itself goes between, and go-zookeeper does not
		// notice.
		x := asked(wire.OpGetData, "/a")
		if err := r.link.Do(t.Context(), x); err != nil || string(x.Reply.Data) != "data" || x.Reply.Zxid != 102 { // 100 answered the setAuth
			t.Errorf("Do = %v, %+v", err, x.Reply)
		}
		if conn.SessionID() != sessionID || r.link.SessionID() != sessionID {
			t.Errorf("session %x, Link has %x", conn.SessionID(), r.link.SessionID())
		}
		if data, _, err := conn.Get("/a"); err != nil || string(data) != "data" {
			t.Errorf("Get = %q, %v", data, err)
		}
		start := r.link.Evidence().At
		time.Sleep(10 * timeout)
		if got := s.count(11); got < 25 {
			t.Errorf("%d pings in ten timeouts", got)
		}
		if age := time.Since(r.link.Evidence().At); age > timeout/3 || !r.link.Evidence().At.After(start) {
			t.Errorf("evidence is %v old", age)
		}
		if err := r.link.CloseSession(t.Context()); err != nil {
			t.Errorf("CloseSession = %v", err)
		}
		synctest.Wait() // the callbacks may come a moment later
		r.wantCalls("up", "down", "over")
		if got := s.count(-11); got != 1 {
			t.Errorf("server saw %d closeSession", got)
		}
	})
}

// A request that is queued while the session expires is never sent in another
// session, and the Conn never dials again.
func TestZKConnExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(t), &script{}
		conn, events := connect(t, r, s)
		if _, _, err := conn.Get("/a"); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.expired = true
		s.mu.Unlock()
		r.cut()
		time.Sleep(timeout / 12) // within go-zookeeper's pause: the create waits for a connection
		if _, err := conn.Create("/a", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err == nil {
			t.Error("Create succeeded in an expired session")
		}
		<-r.link.Over()
		time.Sleep(10 * timeout)
		r.wantOver(wire.ErrRefused)
		if got := r.dials.Load(); got != 2 {
			t.Errorf("%d dials, want 2", got)
		}
		if got := s.count(1); got != 0 {
			t.Errorf("%d creates reached the server", got)
		}
		if conn.SessionID() != sessionID {
			t.Errorf("zk.Conn has session %x", conn.SessionID())
		}
		for drained := false; !drained; {
			select {
			case e := <-events:
				if e.State == zk.StateExpired {
					t.Error("zk.Conn saw the expiry")
				}
			default:
				drained = true
			}
		}
	})
}

// A session survives a lost connection, and go-zookeeper asks for it again.
func TestZKConnReattach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(t, withAuth("digest", "u:p")), &script{}
		conn, _ := connect(t, r, s)
		for range 3 {
			if _, _, err := conn.Get("/a"); err != nil {
				t.Fatal(err)
			}
			r.cut()
			time.Sleep(timeout / 2)
		}
		r.wantCalls("up", "down", "up", "down", "up", "down", "up")
		if !r.ups[3].Reattached || r.ups[3].SessionID != sessionID {
			t.Errorf("last handshake %+v", r.ups[3])
		}
		if got := s.count(100); got != 4 {
			t.Errorf("%d setAuth, want 4", got)
		}
		r.wantAlive()
	})
}

// What is too large fails with a reason, and the session survives it.
func TestZKConnOversized(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(t), &script{}
		conn, _ := connect(t, r, s)
		if _, err := conn.Create("/a", make([]byte, 1<<20), 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, wire.ErrFrameTooLarge) {
			t.Errorf("Create = %v, want ErrFrameTooLarge", err)
		}
		time.Sleep(timeout / 2) // until go-zookeeper is connected again
		if _, _, err := conn.Get("/a"); err != nil {
			t.Errorf("Get after it = %v", err)
		}
		r.wantAlive()
	})
}
