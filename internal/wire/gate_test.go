package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

func TestHandshakeAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if r.link.SessionID() != 0 || r.link.Password() != nil || r.link.Timeout() != timeout || !r.link.Evidence().IsZero() {
		t.Error("a Link without a handshake knows a session")
	}
	c, _ := r.establish()
	if got := r.link.SessionID(); got != sessionID {
		t.Errorf("SessionID = %x", got)
	}
	if got := r.link.Password(); string(got) != password {
		t.Errorf("Password = %q", got)
	}
	want := wire.Handshake{SessionID: sessionID, Timeout: timeout, Server: "s:1", LocalAddr: c.LocalAddr()}
	if r.ups[0] != want {
		t.Errorf("OnUp(%+v), want %+v", r.ups[0], want)
	}
	r.wantCalls("up")
}

func TestReattachKeepsTheLeastTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, tt := range []struct{ negotiated, least time.Duration }{
		{9 * time.Second, 9 * time.Second}, {4 * time.Second, 4 * time.Second}, {8 * time.Second, 4 * time.Second},
	} {
		c, p := r.dial()
		r.shake(c, p, sessionID, tt.negotiated)
		if got := r.link.Timeout(); got != tt.least {
			t.Errorf("Timeout after %v = %v, want %v", tt.negotiated, got, tt.least)
		}
		if got := r.ups[i]; got.Timeout != tt.negotiated || got.Reattached != (i > 0) {
			t.Errorf("handshake %d: %+v", i, got)
		}
		_ = c.Close()
	}
	r.wantCalls("up", "down", "up", "down", "up", "down")
	r.wantAlive()
}

func TestGateRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		first  bool
		answer []byte
		want   error
	}{
		{"first, id 0", true, connectResponse(0, 0), wire.ErrRefused},
		{"first, id 0 with timeout", true, connectResponse(0, timeout), wire.ErrRefused},
		{"first, timeout 0", true, connectResponse(sessionID, 0), wire.ErrRefused},
		{"first, timeout negative", true, connectResponse(sessionID, -time.Second), wire.ErrRefused},
		{"later, id 0", false, connectResponse(0, 0), wire.ErrRefused},
		{"later, timeout 0", false, connectResponse(sessionID, 0), wire.ErrRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			calls := []string{"down", "over"}
			if !tt.first {
				c, _ := r.establish()
				_ = c.Close()
				calls = []string{"up", "down", "down", "over"}
			}
			c, p := r.dial()
			gone := make(chan error, 1)
			go func() {
				_, _ = p.next()
				p.write(tt.answer)
				_, err := p.next()
				gone <- err
			}()
			if _, err := c.Write(connectRequest(r.link.SessionID())); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if n, err := c.Read(make([]byte, 256)); n != 0 || !errors.Is(err, tt.want) {
					t.Errorf("Read = %d, %v; want 0, %v", n, err, tt.want)
				}
			}
			if err := <-gone; err == nil {
				t.Error("the connection stayed open")
			}
			r.wantCalls(calls...)
			r.wantOver(tt.want)
		})
	}
}

// go-zookeeper forgets the session after it saw it expire, and would start
// another one on the same Conn.
func TestGateRefusesForeignRequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		first bool
		asks  int64
	}{{"first asks for a session", true, sessionID}, {"later asks for a new one", false, 0}, {"later asks for another", false, sessionID + 1}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if !tt.first {
				c, _ := r.establish()
				_ = c.Close()
			}
			c, p := r.dial()
			got := make(chan []byte, 1)
			go func() {
				b, _ := io.ReadAll(p.conn)
				got <- b
			}()
			if _, err := c.Write(connectRequest(tt.asks)); !errors.Is(err, wire.ErrChanged) {
				t.Errorf("Write = %v, want ErrChanged", err)
			}
			if b := <-got; len(b) != 0 {
				t.Errorf("server received %x", b)
			}
			r.wantOver(wire.ErrChanged)
		})
	}
}

func TestHandshakeMalformed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer []byte
	}{
		{"too short", frame(0, 6000, int64(1))},
		{"too long", frame(0, 6000, int64(1), make([]byte, 4100))},
		{"negative length", []byte{0xff, 0xff, 0xff, 0xff}},
		{"password longer than frame", frame(0, 6000, int64(1), 17, make([]byte, 16))},
		{"password of negative length", frame(0, 6000, int64(1), -2, make([]byte, 16))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c, p := r.dial()
			go func() {
				_, _ = p.next()
				_, _ = p.conn.Write(tt.answer)
			}()
			if _, err := c.Write(connectRequest(0)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 4)); !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("Read = %v, want ErrProtocol", err)
			}
			r.wantAlive()
			r.wantCalls("down")
			r.establish() // another server may do better
		})
	}
}

func TestHandshakeAtTheLengthLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, p := r.dial()
	answer := frame(0, 6000, sessionID, 0, make([]byte, 4096-20))
	go func() {
		_, _ = p.next()
		p.write(answer)
	}()
	if _, err := c.Write(connectRequest(0)); err != nil {
		t.Fatal(err)
	}
	r.wantRead(c, answer)
}

// A session that go-zookeeper never heard of must not bind the Link: it will
// ask for a new one.
func TestAuthWriteFailureLeavesTheLinkFresh(t *testing.T) {
	t.Parallel()
	r := newRig(t, withAuth("digest", "u:p"))
	c, p := r.dial()
	go func() {
		_, _ = p.next()
		p.write(connectResponse(sessionID, timeout))
		_ = p.conn.Close()
	}()
	_, _ = c.Write(connectRequest(0))
	if _, err := c.Read(make([]byte, 4)); err == nil {
		t.Fatal("Read succeeded without authentication")
	}
	if id := r.link.SessionID(); id != 0 {
		t.Errorf("SessionID = %x", id)
	}
	r.wantCalls("down")
	r.wantAlive()
}

// If the connection fails after the answer was accepted, go-zookeeper still
// gets all of the answer, and then the failure.
func TestAcceptedAnswerIsDelivered(t *testing.T) {
	t.Parallel()
	var c io.ReadWriteCloser
	r := newRig(t, func(cfg *wire.Config) {
		cfg.OnUp = func(wire.Handshake) { _ = c.Close() }
	})
	nc, p := r.dial()
	c = nc
	answer := connectResponse(sessionID, timeout)
	go func() {
		_, _ = p.next()
		p.write(answer)
	}()
	_, _ = c.Write(connectRequest(0))
	var got bytes.Buffer
	for range answer {
		if _, err := io.CopyN(&got, c, 1); err != nil {
			t.Fatalf("after %d bytes: %v", got.Len(), err)
		}
	}
	if !bytes.Equal(got.Bytes(), answer) {
		t.Errorf("read %x, want %x", got.Bytes(), answer)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("Read goes on after the failure")
	}
	r.establish()
}

func TestNoRequestBeforeHandshake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, p := r.dial()
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(p.conn)
		got <- b
	}()
	both := append(connectRequest(0), frame(1, 9, "/")...)
	if n, err := c.Write(both); n != len(connectRequest(0)) || !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("Write = %d, %v", n, err)
	}
	if b := <-got; !bytes.Equal(b, withReadOnly(connectRequest(0))) {
		t.Errorf("server received %x", b)
	}
}

func TestReadBeforeRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.dial()
	if _, err := c.Read(make([]byte, 4)); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("Read = %v, want ErrProtocol", err)
	}
	r.wantCalls("down")
}
