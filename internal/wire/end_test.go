package wire_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/docent-go/docent/internal/wire"
)

var (
	errFrail = errors.New("not restored")
	errLate  = errors.New("late")
)

// A server may make a new session instead of restoring the one asked for. It is
// closed there, after every caller heard that the old one is over.
func TestForeignSessionIsClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.establish()
	_ = c.Close()
	c, p := r.dial()
	type closing struct {
		frame []byte
		err   error
		over  error
	}
	got := make(chan closing, 1)
	go func() {
		_, _ = p.next()
		p.write(connectResponse(sessionID+1, timeout))
		frame, err := p.next()
		got <- closing{frame, err, r.link.Cause()}
		p.write(reply(-1, 9, 0)) // an event that no request asked for
		p.write(reply(ownXid(1), 10, 0))
		if _, err := p.next(); err == nil {
			p.t.Error("the connection stayed open")
		}
	}()
	if _, err := c.Write(connectRequest(sessionID)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 256)); n != 0 || !errors.Is(err, wire.ErrChanged) {
		t.Errorf("Read = %d, %v", n, err)
	}
	g := <-got
	if want := frame(ownXid(1), -11); g.err != nil || string(g.frame) != string(want) {
		t.Errorf("server received %x, %v; want %x", g.frame, g.err, want)
	}
	if !errors.Is(g.over, wire.ErrChanged) {
		t.Errorf("when the other session was closed the old one ended with %v", g.over)
	}
	r.wantCalls("up", "down", "down", "over")
	r.wantOver(wire.ErrChanged)
}

// A server that does not answer the closing of its session costs no more than the
// limit of the handshake.
func TestForeignSessionOfASilentServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.establish()
	_ = c.Close()
	c, p := r.dial()
	go func() {
		_, _ = p.next()
		p.write(connectResponse(sessionID+1, timeout))
		_, _ = p.next()
		_ = p.conn.Close()
	}()
	_, _ = c.Write(connectRequest(sessionID))
	if _, err := c.Read(make([]byte, 256)); !errors.Is(err, wire.ErrChanged) {
		t.Errorf("Read = %v", err)
	}
	r.wantOver(wire.ErrChanged)
}

// A server without a leader, or with another protocol, is one that cannot be
// reached: the session is not over.
func TestHandshakeOfAnotherKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version int
		id      int64
		want    error
	}{{42, -1, wire.ErrNoLeader}, {42, sessionID, wire.ErrProtocol}, {1, sessionID, wire.ErrProtocol}, {-1, 0, wire.ErrProtocol}} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("version %d first %v", tt.version, first), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				if !first {
					c, _ := r.establish()
					_ = c.Close()
				}
				c, p := r.dial()
				go func() {
					_, _ = p.next()
					p.write(frame(tt.version, int(timeout.Milliseconds()), tt.id, make([]byte, 16)))
				}()
				_, _ = c.Write(connectRequest(r.link.SessionID()))
				if n, err := c.Read(make([]byte, 256)); n != 0 || !errors.Is(err, tt.want) {
					t.Errorf("Read = %d, %v; want %v", n, err, tt.want)
				}
				r.wantAlive()
				r.establish() // the next server
			})
		}
	}
}

// Servers with an id from 128 on make sessions with negative ids.
func TestNegativeSessionID(t *testing.T) {
	t.Parallel()
	for _, id := range []int64{-1, -1 << 56, -1<<63 + 1} {
		r := newRig(t)
		c, p := r.dial()
		r.shake(c, p, id, timeout)
		r.wantAlive()
		if got := r.link.SessionID(); got != id {
			t.Errorf("session %x, want %x", got, id)
		}
	}
}

// A frail session ends with its connection, in one step, and nothing is dialed
// for it again.
func TestEndOnLoss(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *rig, c io.Closer){
		"closed by the client": func(_ *rig, c io.Closer) { _ = c.Close() },
		"dropped":              func(r *rig, _ io.Closer) { r.link.DropLive(farFuture, errLate) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c, _ := r.establish()
			r.link.EndOnLoss(errFrail)
			r.wantAlive()
			lose(r, c)
			r.wantOver(errFrail)
			r.wantCalls("up", "down", "over")
		})
	}
}

// What ends a frail session for another reason is its cause.
func TestEndOfAFrailSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.establish()
	r.link.EndOnLoss(errFrail)
	r.link.End(errLate)
	if cause := r.link.Cause(); !errors.Is(cause, errLate) || errors.Is(cause, errFrail) {
		t.Errorf("cause %v", cause)
	}
}

// A session that turns out to be frail when its connection is lost already ends
// then, and one that has not begun does not.
func TestEndOnLossTooLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.link.EndOnLoss(errFrail)
	r.wantAlive()
	c, _ := r.establish()
	_ = c.Close()
	r.wantOver(errFrail)

	r = newRig(t)
	c, _ = r.establish()
	_ = c.Close()
	c, _ = r.dial() // on its way to the next
	r.link.EndOnLoss(errFrail)
	r.wantOver(errFrail)
	if _, err := c.Write(connectRequest(sessionID)); !errors.Is(err, wire.ErrOver) {
		t.Errorf("Write = %v", err)
	}
}
