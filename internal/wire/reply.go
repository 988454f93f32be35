package wire

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/docent-go/docent/internal/clock"
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
		case n > math.MaxInt32: // no server means it
			return c.fail("read", fmt.Errorf("%w: reply of %d bytes", ErrFrameTooLarge, n))
		}
		head, err = c.peek(lengthSize + replyHeader)
		if err != nil {
			return c.fail("read", err)
		}
		xid, zxid, code := be32(head[4:]), be64(head[8:]), be32(head[16:])
		large := int(n) > c.l.cfg.MaxReply
		if large && !c.awaited(xid) {
			return c.fail("read", fmt.Errorf("%w: reply of %d bytes, limit %d", ErrFrameTooLarge, n, c.l.cfg.MaxReply))
		}
		r, own, err := c.answered(xid, zxid, code)
		if err != nil {
			return err
		}
		if err := c.lookInto(r, code, int(n)); err != nil {
			return c.fail("read", err)
		}
		if large {
			return c.replace(xid, zxid, int(n))
		}
		if !own {
			c.remain = lengthSize + int(n)
			return nil
		}
		if r.check != nil {
			continue // read to its end
		}
		if _, err := c.br.Discard(lengthSize + int(n)); err != nil {
			return c.fail("read", err)
		}
	}
}

// awaited reports whether xid is a request of go-zookeeper's that has no answer
// yet.
func (c *conn) awaited(xid int32) bool {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	r, ok := c.sent[xid]
	return ok && r.check == nil
}

// replace throws away a reply of n bytes, which go-zookeeper would answer by
// giving up the connection, and with it everything that is under way on it,
// time and again. The request gets [CodeReplyTooLarge] in its place.
func (c *conn) replace(xid int32, zxid int64, n int) error {
	if _, err := c.br.Discard(lengthSize + n); err != nil {
		return c.fail("read", err)
	}
	frame := put32(put64(put32(make([]byte, lengthSize, lengthSize+replyHeader), xid), zxid), CodeReplyTooLarge)
	c.instead = sealFrame(frame, 0)
	return nil
}

// answered notes a reply and reports whether it answers a request of the
// Link's own; r is the request. An error means that the connection or the
// session has ended.
func (c *conn) answered(xid int32, zxid int64, code int32) (r sentRequest, own bool, err error) {
	l := c.l
	l.mu.Lock()
	switch {
	case xid == xidNotification:
	case xid == xidPing:
		if at, ok := c.pings.pop(); ok {
			c.seen(at)
		}
	case xid == xidAuth && c.authed < len(l.cfg.Auth):
		scheme := l.cfg.Auth[c.authed].Scheme
		c.authed++
		l.mu.Unlock()
		return r, true, c.authAnswered(scheme, code)
	case xid == xidClose && c.closing != nil && !c.closing.answered():
		closing := c.closing
		l.mu.Unlock()
		return r, true, c.closeAnswered(closing, code)
	default:
		var ok bool
		if r, ok = c.sent[xid]; !ok {
			break
		}
		delete(c.sent, xid)
		if own = r.check != nil; !own {
			c.replied(r, zxid, code)
		}
	}
	l.mu.Unlock()
	return r, own, nil
}

// lookInto takes from the body of a reply of n bytes what its header does not
// say: what became of a check, and whether a transaction was refused. The
// answer to a check, which may be longer than the buffer, is read.
func (c *conn) lookInto(r sentRequest, code int32, n int) error {
	switch {
	case r.check != nil:
		frame := make([]byte, lengthSize+n)
		_, err := io.ReadFull(c.br, frame)
		if err == nil {
			c.checkAnswered(r, code, frame[lengthSize+replyHeader:])
		}
		return err
	case r.multi && code == codeOK && n >= replyHeader+4:
		head, err := c.peek(lengthSize + replyHeader + 4)
		// Were a part refused, so would be the first; and the reason might
		// be the end of the session.
		if err == nil && be32(head[lengthSize+replyHeader:]) != partError {
			c.l.mu.Lock()
			c.committed(r.at)
			c.l.mu.Unlock()
		}
		return err
	}
	return nil
}

// replied takes a reply as evidence, unless it says that the session is gone,
// and tells who asked for its zxid. The caller holds l.mu.
func (c *conn) replied(r sentRequest, zxid int64, code int32) {
	if code != codeSessionExpired && code != codeSessionMoved {
		c.seen(r.at)
	}
	if r.quorum && !r.multi && code == codeOK {
		c.committed(r.at)
	}
	if r.create != nil && code == codeOK {
		r.create.zxid, r.create.answered = zxid, true
	}
}

// checkAnswered takes the answer to a check as evidence before it is told who
// asked.
func (c *conn) checkAnswered(r sentRequest, code int32, body []byte) {
	k := r.check
	k.parse(code, body)
	why := code
	if k.index >= 0 {
		why = k.code
	}
	l := c.l
	l.mu.Lock()
	if why != codeSessionExpired && why != codeSessionMoved {
		c.seen(r.at)
		if k.err == nil { // also if a node is missing: that was committed too
			c.committed(r.at)
		}
	}
	l.mu.Unlock()
	close(k.done)
}

// seen notes that the server heard from the session. The caller holds l.mu.
func (c *conn) seen(at clock.Stamp) {
	l := c.l
	l.advance(at.At)
	if l.cfg.TrustAnswers {
		l.prove(Proof{Kind: Answer, Sent: at, Alive: at})
	}
	if l.cfg.Relay == nil {
		return
	}
	if now := time.Now(); c.signs.due(at.At, now, l.cfg.Relay(l.timeout)) {
		l.slept = l.cfg.Clock.Now().Slept()
		c.signs.add(sign{sent: at, answered: now})
	}
}

// committed notes that a write which was sent then was committed. The caller
// holds l.mu.
func (c *conn) committed(at clock.Stamp) {
	l := c.l
	if l.cfg.Relay == nil {
		l.prove(Proof{Kind: QuorumWrite, Sent: at, Alive: at})
		return
	}
	if g, ok := c.signs.before(at.At.Add(-l.cfg.Relay(l.timeout))); ok {
		l.prove(Proof{Kind: QuorumWrite, Sent: at, Alive: g.sent})
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
