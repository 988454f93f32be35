package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// connectResponse is the server's answer to a ConnectRequest.
type connectResponse struct {
	version  int32
	timeout  time.Duration
	id       int64
	password []byte // aliases the frame
	readOnly bool   // the server is cut off from its quorum; not every server tells
}

// parseConnectResponse reads a frame without its length bytes.
func parseConnectResponse(b []byte) (connectResponse, error) {
	n := int(be32(b[16:]))
	if n < -1 || n > len(b)-minConnectResponse {
		return connectResponse{}, fmt.Errorf("%w: password of %d bytes in a handshake of %d", ErrProtocol, n, len(b))
	}
	end := minConnectResponse + max(n, 0)
	return connectResponse{
		version:  be32(b),
		timeout:  time.Duration(be32(b[4:])) * time.Millisecond,
		id:       be64(b[8:]),
		password: b[minConnectResponse:end],
		readOnly: end < len(b) && b[end] != 0,
	}, nil
}

// How ClickHouse Keeper answers a handshake while it has no leader.
const (
	leaderlessVersion = 42
	leaderlessID      = -1
)

// judge says whether r continues the session, or begins it if asked is 0. The caller
// adds the session's id to the error. An error that matches neither [ErrRefused] nor
// [ErrChanged] says nothing about the session.
//
// Session ids may be negative: their highest byte is the id of the server that made
// them (SessionTrackerImpl.initializeNextSessionId).
func (r connectResponse) judge(asked int64) error {
	switch {
	case r.version == leaderlessVersion && r.id == leaderlessID:
		return ErrNoLeader
	case r.version != 0:
		return fmt.Errorf("%w: the handshake was answered in version %d of the protocol", ErrProtocol, r.version)
	case r.id == 0 || r.timeout <= 0:
		return ErrRefused
	case asked != 0 && r.id != asked:
		return fmt.Errorf("%w: the server answered with session 0x%x", ErrChanged, uint64(r.id))
	}
	return nil
}

// ask lets a ConnectRequest through if it asks for the Link's session.
func (c *conn) ask(frame []byte) error {
	id := be64(frame[connectIDOffset:])
	l := c.l
	l.mu.Lock()
	own, seen := l.id, l.seenZxid
	if id == own {
		c.asked, c.askedID, c.askedAt = true, id, l.stamp(true)
	}
	l.mu.Unlock()
	if id != own {
		l.End(fmt.Errorf("%w: go-zookeeper asked for session 0x%x", ErrChanged, uint64(id)))
		return c.failure()
	}
	// go-zookeeper has not seen the answers to exchanges. A server that lags behind
	// these answers must refuse the session. Otherwise reads would go back in time.
	frame = withReadOnly(frame, l.cfg.ReadOnly)
	if seen > be64(frame[connectZxidOffset:]) {
		put64(frame[connectZxidOffset:connectZxidOffset], seen)
	}
	if _, err := c.nc.Write(frame); err != nil {
		return c.fail("handshake", hungUp(err))
	}
	return nil
}

// withReadOnly is a copy of a ConnectRequest with the byte that go-zookeeper leaves out. ZooKeeper
// 3.9.0 to 3.9.2 hang up without it (ZOOKEEPER-4814).
func withReadOnly(frame []byte, ask bool) []byte {
	n := be32(frame[connectPasswordOffset:])
	end := connectPasswordOffset + lengthSize + int(max(n, 0))
	if n > maxConnectResponse || end != len(frame) {
		return bytes.Clone(frame) // it has the byte, or no server can read it
	}
	return sealFrame(putBool(append(make([]byte, 0, end+1), frame...), ask), 0)
}

// greet reads the whole ConnectResponse, which stays buffered, and judges it. It
// returns nil if go-zookeeper may see it.
func (c *conn) greet() error {
	asked, ok := c.question()
	if !ok {
		return c.fail("handshake", fmt.Errorf("%w: read before the handshake was written", ErrProtocol))
	}
	head, err := c.peek(lengthSize)
	if err != nil {
		return c.fail("handshake", hungUp(err))
	}
	n := uint32(be32(head))
	if n == replyHeader && c.turnedReader() {
		return c.fail("handshake", ErrReadOnly)
	}
	if n < minConnectResponse || n > maxConnectResponse {
		return c.fail("handshake", c.stranger(n))
	}
	frame, err := c.peek(lengthSize + int(n))
	if err != nil {
		return c.fail("handshake", hungUp(err))
	}
	r, err := parseConnectResponse(frame[lengthSize:])
	if err != nil {
		return c.fail("handshake", err)
	}
	switch err := r.judge(asked); {
	case err == nil && r.readOnly && !c.l.cfg.ReadOnly: // it was not asked for
		return c.fail("handshake", ErrReadOnly)
	case errors.Is(err, ErrChanged):
		c.disown(err, lengthSize+int(n))
		return c.failure()
	case errors.Is(err, ErrRefused):
		c.l.End(err)
		return c.failure()
	case err != nil:
		return c.fail("handshake", err)
	}
	return c.admit(r, frame)
}

// turnedReader reports whether the answer to the handshake is a reply header that says that the
// server is read-only. One without local sessions has none for readers.
func (c *conn) turnedReader() bool {
	frame, err := c.peek(lengthSize + replyHeader)
	return err == nil && be32(frame[lengthSize:]) == 0 && be32(frame[lengthSize+12:]) == codeNotReadOnly
}

// admit presents who the client is, and lets the Link have the session that r grants.
// frame is r as the server has sent it, still buffered.
func (c *conn) admit(r connectResponse, frame []byte) error {
	size, buffered := len(frame), len(frame)
	if c.login != nil {
		r.password = bytes.Clone(r.password) // the frame does not stay in the buffer
		if err := c.loggedIn(r, c.logIn(frame)); err != nil {
			return err
		}
		buffered = 0
	}
	if err := c.authenticate(); err != nil {
		return c.fail("authenticate", err)
	}
	if c.l.cfg.AuthFirst {
		if err := c.awaitAuth(r, buffered); err != nil {
			return err
		}
	}
	if err := c.accept(r); err != nil {
		return err
	}
	c.greeted, c.hello, c.remain = true, true, size
	return nil
}

func (l *Link) noAnswer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered++
}

// tooLate is called when the time for the handshake is over. It does nothing if the
// connection is up or has failed.
func (c *conn) tooLate() {
	c.l.mu.Lock()
	over := c.err != nil || c.up.Load()
	phase := "handshake"
	if c.loggingIn {
		phase = "login"
	}
	if !over {
		c.l.unanswered++
	}
	c.l.mu.Unlock()
	if !over {
		_ = c.fail(phase, os.ErrDeadlineExceeded)
	}
}

func (c *conn) question() (id int64, asked bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.askedID, c.asked
}

// peek returns the next n bytes without consuming them. Its error tells the end of
// the stream between frames from an end within a frame.
func (c *conn) peek(n int) ([]byte, error) {
	b, err := c.br.Peek(n)
	if err == io.EOF && len(b) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// authenticate writes the setAuth frames.
func (c *conn) authenticate() error {
	c.auth = c.l.cfg.Auth()
	if len(c.auth) == 0 {
		return nil
	}
	_, err := c.nc.Write(authFrames(c.auth))
	return err
}

// awaitAuth reads the answers to setAuth, which come after at bytes and stay buffered. If
// one is a refusal the Link is over. It has the session then, which its user may have to
// end on the servers.
func (c *conn) awaitAuth(r connectResponse, at int) error {
	for _, auth := range c.auth {
		frame, err := c.peek(at + lengthSize + replyHeader)
		if err != nil {
			return c.fail("authenticate", hungUp(err))
		}
		size, xid, code := be32(frame[at:]), be32(frame[at+4:]), be32(frame[at+16:])
		switch {
		case xid != zoodefs.XidAuth || size != replyHeader:
			return nil // nextReply judges it
		case code != codeOK:
			c.l.mu.Lock()
			c.own(r)
			c.l.mu.Unlock()
			return c.authAnswered(auth.Scheme, code)
		}
		at += lengthSize + replyHeader
	}
	return nil
}

// authAnswered ends the session if the credentials were rejected: every later
// connection would be rejected as well.
func (c *conn) authAnswered(scheme string, code int32) error {
	switch code {
	case codeOK:
		return nil
	case codeAuthFailed:
		c.l.End(fmt.Errorf("%w: scheme %s", ErrAuthFailed, scheme))
	default:
		c.l.End(fmt.Errorf("%w: scheme %s: %w", ErrAuthFailed, scheme, ServerError(code)))
	}
	return c.failure()
}

// own notes the session that the server has granted. It reports whether the Link had it
// before. The caller holds l.mu.
func (c *conn) own(r connectResponse) (reattached bool) {
	l := c.l
	if reattached = l.id != 0; reattached {
		l.timeout = min(l.timeout, r.timeout)
	} else {
		l.id, l.password, l.timeout = r.id, bytes.Clone(r.password), r.timeout
	}
	l.server = c.server
	l.advance(c.askedAt)
	return reattached
}

// accept gives the session to the Link and waits until OnUp has returned. It comes
// after the last step that can fail on the network. Otherwise the Link could have a
// session of which go-zookeeper never heard, and would refuse its next
// ConnectRequest, which asks for a new session.
func (c *conn) accept(r connectResponse) error {
	l := c.l
	announced := make(chan struct{})
	l.mu.Lock()
	if c.err != nil {
		l.mu.Unlock()
		return c.failure()
	}
	h := Handshake{
		SessionID:  r.id,
		Timeout:    r.timeout,
		Server:     c.server,
		LocalAddr:  c.nc.LocalAddr(),
		Reattached: c.own(r),
		ReadOnly:   r.readOnly,
	}
	// Whichever server answers, the leader was asked. It made the session, or looked
	// whether it has it; both start its timer. Only the former shows that it had a
	// quorum.
	c.signs.add(sign{sent: c.askedAt})
	switch {
	case h.ReadOnly:
	case !h.Reattached:
		l.prove(Proof{Kind: SessionCreated, Sent: c.askedAt, Alive: c.askedAt})
	case l.cfg.TrustAnswers:
		l.prove(Proof{Kind: Answer, Sent: c.askedAt, Alive: c.askedAt})
	}
	c.late.Stop()
	c.up.Store(true)
	close(c.upped)
	c.dialed.accepted(h)
	l.enqueueDialed(c.dialed, nil)
	c.dialed = nil
	l.events = append(l.events, func() {
		defer close(announced)
		if l.cfg.OnUp != nil {
			l.cfg.OnUp(h)
		}
	})
	l.mu.Unlock()
	l.deliver()
	select {
	case <-announced:
	case <-l.over:
	}
	return l.ended()
}
