package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/internal/zoodefs"
)

// beginLogin gets what the next login needs, such as a ticket. That takes time of its own,
// as much as the dial and the handshake together.
func (l *Link) beginLogin(server string) (Login, error) {
	if l.cfg.Login == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(l.life, l.limit()+l.patience())
	defer cancel()
	login, err := l.cfg.Login(ctx, server)
	switch {
	case err == nil:
		l.mu.Lock()
		if l.unbegun { // that refusal has passed
			l.refusal, l.unbegun = nil, false
		}
		l.mu.Unlock()
	case ctx.Err() != nil:
		l.noAnswer()
	}
	return login, err
}

// unready ends an attempt for which no login could begin.
func (l *Link) unready(server string, err error) error {
	refused := errors.Is(err, ErrAuthFailed)
	l.mu.Lock()
	first := l.id == 0
	if refused {
		l.refusal, l.unbegun = err, true
	}
	l.mu.Unlock()
	if refused && first {
		l.End(err)
		return l.ended()
	}
	return l.attemptFailed(nil, server, &UnreadyError{err})
}

// UnreadyError says that no login could begin, so that the server was not dialed.
type UnreadyError struct{ Err error }

// Error says why.
func (e *UnreadyError) Error() string { return "login: " + e.Err.Error() }

// Unwrap returns why.
func (e *UnreadyError) Unwrap() error { return e.Err }

// logIn runs the login, within the time for the handshake. frame is the
// ConnectResponse, which go-zookeeper gets after it.
func (c *conn) logIn(frame []byte) error {
	c.held = bytes.Clone(frame)
	c.l.mu.Lock()
	c.loggingIn = true
	c.l.mu.Unlock()
	if _, err := c.br.Discard(len(frame)); err != nil {
		return err
	}
	d := dialogue{login: c.login}
	s := d.begin()
	for xid := int32(1); !s.over; xid++ {
		code, token, err := c.tokens(xid, s.answer)
		switch {
		case closedByPeer(err):
			return d.failed(fmt.Errorf("the server closed the connection: %w", err)).err
		case err != nil:
			return d.failed(err).err
		}
		s = d.heard(code, token)
	}
	return s.err
}

// tokens sends an answer and reads the server's next token, which is nil for null.
func (c *conn) tokens(xid int32, answer []byte) (code int32, token []byte, err error) {
	b := put32(put32(make([]byte, lengthSize), xid), int32(zoodefs.OpSASL))
	b = sealFrame(putBytes(b, answer), 0)
	if n := len(b) - lengthSize; n > c.l.cfg.MaxRequest {
		return 0, nil, fmt.Errorf("%w: a token of %d bytes, limit %d (jute.maxbuffer)", ErrFrameTooLarge, n, c.l.cfg.MaxRequest)
	}
	if _, err := c.nc.Write(b); err != nil {
		return 0, nil, err
	}
	head, err := c.peek(lengthSize)
	if err != nil {
		return 0, nil, err
	}
	n := int(uint32(be32(head)))
	if n < replyHeader || n > readBuffer-lengthSize {
		return 0, nil, fmt.Errorf("%w: reply of %d bytes to a token", ErrProtocol, n)
	}
	frame, err := c.peek(lengthSize + n)
	if err != nil {
		return 0, nil, err
	}
	body := frame[lengthSize:]
	if got := be32(body); got != xid {
		return 0, nil, fmt.Errorf("%w: reply with xid %d to a token", ErrProtocol, got)
	}
	// The zxid is 0 in these replies, and says nothing.
	code = be32(body[12:])
	if body = body[replyHeader:]; code == codeOK {
		if token, err = parseToken(body); err != nil {
			return 0, nil, err
		}
	}
	_, err = c.br.Discard(lengthSize + n)
	return code, token, err
}

// parseToken reads a token and clones it. null is nil.
func parseToken(b []byte) ([]byte, error) {
	if len(b) < lengthSize {
		return nil, fmt.Errorf("%w: no token in a reply", ErrProtocol)
	}
	switch n := int(be32(b)); {
	case n == -1:
		return nil, nil
	case n < 0 || n > len(b)-lengthSize:
		return nil, fmt.Errorf("%w: token of %d bytes in %d", ErrProtocol, n, len(b)-lengthSize)
	default:
		return append([]byte{}, b[lengthSize:lengthSize+n]...), nil
	}
}

// loggedIn takes the end of the login in the session that r grants, and returns nil if
// the client is in.
func (c *conn) loggedIn(r connectResponse, err error) error {
	l := c.l
	l.mu.Lock()
	if c.err != nil { // the time is up, or the Link is over
		_, _ = l.turned.judge(c.err, false)
		l.mu.Unlock()
		return c.failure()
	}
	c.loggingIn = false
	follows, err := l.turned.judge(err, l.id == 0)
	l.refusal, l.unbegun = nil, false
	if errors.Is(err, ErrAuthFailed) {
		l.refusal = err
	}
	if follows == shutOut {
		l.unused, l.server = Unused{ID: r.id, Password: r.password, Timeout: r.timeout}, c.server
	}
	l.mu.Unlock()
	switch follows {
	case admitted:
		return nil
	case shutOut:
		l.End(err)
		return c.failure()
	default:
		return c.fail("login", err)
	}
}

// Unused returns the session of the refused login that has ended the Link.
func (l *Link) Unused() Unused {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unused
}

// Refusal is why the newest login was refused, nil if it was not.
func (l *Link) Refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal
}
