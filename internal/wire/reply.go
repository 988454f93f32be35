package wire

import (
	"fmt"
	"time"
)

// nextReply looks at the header of the next frame and leaves the frame to be
// delivered, after it has swallowed those that answer the Link's own requests.
func (c *conn) nextReply() error {
	for {
		head, err := c.peek(lengthSize)
		if err != nil {
			return c.fail("read", err)
		}
		n := uint32(be32(head))
		switch {
		case n < replyHeader: // go-zookeeper panics on these
			return c.fail("read", fmt.Errorf("%w: reply of %d bytes", ErrProtocol, n))
		case n > uint32(c.l.cfg.MaxReply):
			return c.fail("read", fmt.Errorf("%w: reply of %d bytes, limit %d", ErrFrameTooLarge, n, c.l.cfg.MaxReply))
		}
		head, err = c.peek(lengthSize + replyHeader)
		if err != nil {
			return c.fail("read", err)
		}
		xid, zxid, code := be32(head[4:]), be64(head[8:]), be32(head[16:])
		own, err := c.answered(xid, zxid, code)
		if err != nil {
			return err
		}
		if !own {
			c.remain = lengthSize + int(n)
			return nil
		}
		if _, err := c.br.Discard(lengthSize + int(n)); err != nil {
			return c.fail("read", err)
		}
	}
}

// answered notes a reply and reports whether it answers a request of the
// Link's own. An error means that the connection or the session has ended.
func (c *conn) answered(xid int32, zxid int64, code int32) (own bool, err error) {
	l := c.l
	l.mu.Lock()
	switch {
	case xid == xidNotification:
	case xid == xidPing:
		if at, ok := c.pings.pop(); ok {
			l.advance(at)
		}
	case xid == xidAuth && c.authed < len(l.cfg.Auth):
		scheme := l.cfg.Auth[c.authed].Scheme
		c.authed++
		l.mu.Unlock()
		return true, c.authAnswered(scheme, code)
	case xid == xidClose && c.closing != nil && !c.closing.answered():
		closing := c.closing
		l.mu.Unlock()
		return true, c.closeAnswered(closing, code)
	default:
		if r, ok := c.sent[xid]; ok {
			delete(c.sent, xid)
			l.replied(r, zxid, code)
		}
	}
	l.mu.Unlock()
	return false, nil
}

// replied takes a reply as evidence, unless it says that the session is gone,
// and tells who asked for its zxid. The caller holds l.mu.
func (l *Link) replied(r sentRequest, zxid int64, code int32) {
	if code != codeSessionExpired && code != codeSessionMoved {
		l.advance(r.at)
	}
	if r.create != nil && code == codeOK {
		r.create.zxid, r.create.answered = zxid, true
	}
}

// advance moves the evidence forward. The caller holds l.mu.
func (l *Link) advance(at time.Time) {
	if at.After(l.evidence) {
		l.evidence = at
	}
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
