package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// closeRequest is a closeSession that is the n-th exchange of its connection.
func closeRequest(n int) []byte { return frame(ownXid(n), -11) }

// startClose calls CloseSession n times at once.
func startClose(ctx context.Context, r *rig, n int) <-chan error {
	errs := make(chan error, n)
	for range n {
		go func() {
			err := r.link.CloseSession(ctx)
			if err == nil && r.link.Cause() == nil {
				r.t.Error("CloseSession returned before the Link was over")
			}
			errs <- err
		}()
	}
	return errs
}

func TestCloseSession(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, -112} {
		r := newRig(t)
		c, p := r.establish()
		errs := startClose(t.Context(), r, 3)
		go func() {
			p.expect(closeRequest(1))
			p.write(reply(8, 1, 0))
			p.write(reply(ownXid(1), 9, code))
			for n := 2; ; n++ { // the requests of the other callers
				b, err := p.next()
				if err != nil {
					return
				}
				if !bytes.Equal(b, closeRequest(n)) {
					t.Errorf("server received %x after the close", b)
				}
			}
		}()
		r.wantRead(c, reply(8, 1, 0))
		if n, err := c.Read(make([]byte, 64)); n != 0 || !errors.Is(err, wire.ErrClosed) {
			t.Errorf("Read = %d, %v; want ErrClosed", n, err)
		}
		for range 3 {
			if err := <-errs; err != nil {
				t.Errorf("CloseSession = %v", err)
			}
		}
		r.wantOver(wire.ErrClosed)
		r.wantCalls("up", "down", "over")
		if err := r.link.CloseSession(t.Context()); err != nil {
			t.Errorf("CloseSession of a session that was closed = %v", err)
		}
	}
}

// A session that ends for another reason while it is being closed was closed
// all the same, but not by that call.
func TestCloseSessionOfALinkThatEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		_, p := r.establish()
		go p.swallowAll()
		errs := startClose(t.Context(), r, 1)
		synctest.Wait()
		r.link.End(errKilled)
		if err := <-errs; !errors.Is(err, wire.ErrOver) || !errors.Is(err, errKilled) {
			t.Errorf("CloseSession = %v", err)
		}
	})
}

func TestCloseSessionWithoutConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := func(when string) {
		t.Helper()
		if err := r.link.CloseSession(t.Context()); !errors.Is(err, wire.ErrNotConnected) {
			t.Errorf("%s: CloseSession = %v, want ErrNotConnected", when, err)
		}
	}
	want("before the first dial")
	c, p := r.dial()
	want("before the handshake")
	r.shake(c, p, sessionID, timeout)
	_ = c.Close()
	want("after the connection")
	r.wantAlive()
}

func TestCloseSessionServerError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, p := r.establish()
	errs := startClose(t.Context(), r, 1)
	go func() {
		p.expect(closeRequest(1))
		p.write(reply(ownXid(1), 9, -118))
		p.write(reply(5, 9, 0))
	}()
	r.wantRead(c, reply(5, 9, 0))
	if err, code := <-errs, wire.ServerError(0); !errors.As(err, &code) || code != -118 {
		t.Errorf("CloseSession = %v", err)
	}
	r.wantAlive()
	errs = startClose(t.Context(), r, 1) // may be tried again
	go func() {
		p.expect(closeRequest(2))
		p.write(reply(ownXid(2), 9, 0))
	}()
	_, _ = c.Read(make([]byte, 4))
	if err := <-errs; err != nil {
		t.Errorf("second CloseSession = %v", err)
	}
}

func TestCloseSessionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for _, tt := range []struct {
		name  string
		serve func(*peer)
	}{
		{"dead before", nil},
		{"while the peer does not read", func(*peer) {}},
		{"in the middle of the frame", func(p *peer) { _, _ = p.conn.Read(make([]byte, 5)) }},
		{"while waiting for the answer", func(p *peer) { p.expect(closeRequest(1)) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			_, p := r.establish()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.serve == nil {
				cancel(cause)
			} else {
				go tt.serve(p)
				time.AfterFunc(time.Second, func() { cancel(cause) })
			}
			if err := r.link.CloseSession(ctx); !errors.Is(err, cause) {
				t.Errorf("%s: CloseSession = %v", tt.name, err)
			}
			synctest.Wait()
			r.wantAlive()
			r.wantCalls("up")
		})
	}
}

func TestCloseSessionWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		request := frame(1, 9, "/somewhere")
		go func() { _, _ = c.Write(request) }()
		_, _ = p.conn.Read(make([]byte, 6)) // go-zookeeper is within its frame
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.link.CloseSession(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("CloseSession = %v", err)
		}
		errs := startClose(t.Context(), r, 1)
		rest := make([]byte, len(request)-6)
		_, _ = p.conn.Read(rest)
		if !bytes.Equal(rest, request[6:]) {
			t.Errorf("server received %x within the frame", rest)
		}
		p.expect(closeRequest(1)) // the first was not sent
		_ = p.conn.Close()
		_, readErr := c.Read(make([]byte, 4))
		if err := <-errs; err == nil || readErr == nil {
			t.Errorf("CloseSession = %v, Read = %v after the connection ended", err, readErr)
		}
		r.wantAlive()
		r.wantCalls("up", "down")
	})
}

// server answers an EndSession with the given frames. It closes the connection
// in place of an answer that is nil.
func server(t *testing.T, answers ...[]byte) (net.Conn, <-chan [][]byte) {
	near, far := net.Pipe()
	got := make(chan [][]byte, 1)
	go func() {
		p := &peer{t: t, conn: far}
		var frames [][]byte
		for {
			b, err := p.next()
			if err != nil {
				break
			}
			frames = append(frames, b)
			if len(answers) > 0 {
				if answers[0] == nil {
					_ = far.Close()
				}
				_, _ = far.Write(answers[0])
				answers = answers[1:]
			}
		}
		got <- frames
	}()
	return near, got
}

func TestEndSession(t *testing.T) {
	t.Parallel()
	ok, done := connectResponse(sessionID, timeout), reply(ownXid(1), 9, 0)
	both := append(reply(-1, -1, 0, 1, 3, "/a"), done...)
	code := wire.ServerError(-118)
	for _, tt := range []struct {
		name    string
		answers [][]byte
		want    error
		frames  int
	}{
		{"closed", [][]byte{ok, done}, nil, 2},
		{"something else first", [][]byte{ok, both}, nil, 2},
		{"unknown session", [][]byte{connectResponse(0, 0)}, wire.ErrRefused, 1},
		{"other session", [][]byte{connectResponse(5, timeout), done}, wire.ErrChanged, 2},
		{"expired meanwhile", [][]byte{ok, reply(ownXid(1), 9, -112)}, nil, 2},
		{"error", [][]byte{ok, reply(ownXid(1), 9, -118)}, code, 2},
		{"connection closed in place of the handshake", [][]byte{nil}, io.EOF, 1},
		{"connection closed in place of the answer", [][]byte{ok, nil}, io.EOF, 2},
		{"bad length", [][]byte{frame(1)}, wire.ErrProtocol, 1},
		{"bad password", [][]byte{frame(0, 1, sessionID, 99)}, wire.ErrProtocol, 1},
		{"bad reply", [][]byte{ok, append(frame(1), make([]byte, 20)...)}, wire.ErrProtocol, 2},
	} {
		conn, got := server(t, tt.answers...)
		err := wire.EndSession(t.Context(), conn, sessionID, []byte(password), timeout, nil)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: EndSession = %v, want %v", tt.name, err, tt.want)
		}
		frames := <-got // ends when EndSession has closed the connection
		if len(frames) != tt.frames || !bytes.Equal(frames[0], withReadOnly(connectRequest(sessionID))) {
			t.Errorf("%s: server received %x", tt.name, frames)
		}
		if tt.frames == 2 && !bytes.Equal(frames[1], frame(ownXid(1), -11)) {
			t.Errorf("%s: server received %x", tt.name, frames[1])
		}
	}
	conn, got := server(t)
	if err := wire.EndSession(t.Context(), conn, 0, nil, timeout, nil); !errors.Is(err, wire.ErrRefused) || len(<-got) != 0 {
		t.Errorf("EndSession of id 0 = %v", err)
	}
}

func TestEndSessionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, answers := range [][][]byte{nil, {connectResponse(sessionID, timeout)}} {
		synctest.Test(t, func(t *testing.T) {
			conn, got := server(t, answers...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := wire.EndSession(ctx, conn, sessionID, nil, timeout, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("EndSession = %v", err)
			}
			<-got
		})
	}
}
