package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// CloseSession closes the session on the live connection and waits for the
// server's answer. After nil the Link is over with [ErrClosed] and the server
// has removed the session's ephemeral nodes.
//
// Without a connection it returns [ErrNotConnected] and nothing was sent. After
// any other error the Link is not over on its account, but the session may be
// closed at the server.
func (l *Link) CloseSession(ctx context.Context) error {
	x := &Exchange{Request: Request{Op: zoodefs.OpCloseSession}}
	err := l.Do(ctx, x)
	switch cause := l.Cause(); {
	case errors.Is(cause, ErrClosed): // by this request or one of the same moment
		return nil
	case err == nil && cause != nil:
		err = overError(cause)
	case err == nil:
		err = ServerError(x.Reply.Code)
	}
	return fmt.Errorf("close session: %w", err)
}

// AwaitNew waits, within ctx, for the answer of a server that has been asked for a new
// session: only this client could end that session. It returns at once if no server
// was asked, or the Link has a session.
func (l *Link) AwaitNew(ctx context.Context) {
	l.mu.Lock()
	c := l.live
	awaited := c != nil && c.asked && l.id == 0
	l.mu.Unlock()
	if !awaited {
		return
	}
	select {
	case <-c.upped:
	case <-c.dead:
	case <-ctx.Done():
	}
}

// EndSession closes the session with that id and password over conn, which is
// fresh from the dialer (TLS done) and is closed in any case. It logs in before, unless
// login is nil. The timeout is
// the session's, as the handshake wants one. After nil the server has closed
// the session. It returns an error that wraps [ErrRefused] if the server no
// longer knows the session, and [ErrChanged] if it offers another one. After
// any other error, also when ctx ends, the session may or may not be closed.
func EndSession(ctx context.Context, conn net.Conn, id int64, password []byte, timeout time.Duration, login Login) error {
	if id == 0 {
		_ = conn.Close()
		return fmt.Errorf("end session: no id: %w", ErrRefused) // 0 would begin a new one
	}
	up, read := make(chan struct{}), make(chan error, 1)
	l := NewLink(Config{
		SessionTimeout: timeout,
		Dial:           func(context.Context, string) (net.Conn, error) { return conn, nil },
		Login:          func(context.Context, string) (Login, error) { return login, nil },
		OnUp:           func(Handshake) { close(up) },
	})
	l.id = id
	stop := context.AfterFunc(ctx, func() {
		l.End(context.Cause(ctx))
		_ = conn.Close() // also if the Link is over and has another session closed
	})
	defer stop()
	defer l.End(nil)
	c, err := l.Dial("", "", 0)
	if err == nil {
		_, err = c.Write(connectFrame(id, password, timeout))
	}
	if err == nil {
		go func() { // ends with the connection
			_, err := io.Copy(io.Discard, c)
			read <- cmp.Or(err, io.EOF) // which Copy keeps to itself
		}()
		select {
		case <-up:
			err = l.CloseSession(ctx)
		case err = <-read:
		}
	}
	if err != nil {
		return fmt.Errorf("end session 0x%x: %w", uint64(id), err)
	}
	return nil
}

// connectFrame returns a ConnectRequest for an existing session. It claims to
// have seen nothing, so that no server finds itself too far behind.
func connectFrame(id int64, password []byte, timeout time.Duration) []byte {
	b := make([]byte, lengthSize, lengthSize+minConnectRequest+len(password))
	b = put32(b, 0)
	b = put64(b, 0)
	b = put32(b, int32(min(timeout.Milliseconds(), 1<<31-1)))
	b = put64(b, id)
	b = putBytes(b, password)
	return sealFrame(b, 0)
}
