package wire

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/clock"
	"github.com/docent-go/docent/internal/zoodefs"
)

// nextReply looks at the header of the next frame. It takes out frames that answer
// the Link's own requests, and leaves the next other frame to be delivered.
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
		case n > math.MaxInt32: // no server means that
			return c.fail("read", fmt.Errorf("%w: reply of %d bytes", ErrFrameTooLarge, n))
		}
		head, err = c.peek(lengthSize + replyHeader)
		if err != nil {
			return c.fail("read", err)
		}
		xid, zxid, code := be32(head[4:]), be64(head[8:]), be32(head[16:])
		c.sawZxid(xid, zxid)
		if ownXid(xid) {
			if err := c.receive(xid, zxid, code, int(n)); err != nil {
				return c.fail("read", err)
			}
			continue
		}
		if int(n) > c.l.cfg.MaxReply {
			return c.fail("read", fmt.Errorf("%w: reply of %d bytes, limit %d", ErrFrameTooLarge, n, c.l.cfg.MaxReply))
		}
		own, err := c.answered(xid, code)
		switch {
		case err != nil:
			return err
		case !own:
			c.remain = lengthSize + int(n)
			if xid == zoodefs.XidNotification {
				return c.notify(zxid, int(n))
			}
			return nil
		}
		if _, err := c.br.Discard(lengthSize + int(n)); err != nil {
			return c.fail("read", err)
		}
	}
}

// notify reads the next notification, of n bytes, for OnEvent. It leaves the frame to
// be delivered: the watch may belong to a user of go-zookeeper.
func (c *conn) notify(zxid int64, n int) error {
	const head = lengthSize + replyHeader
	frame, err := c.peek(min(lengthSize+n, readBuffer))
	if err != nil {
		return c.fail("read", err)
	}
	body := frame[head:]
	if lengthSize+n > readBuffer {
		c.held = slices.Clone(frame[:head])
		if body, _, err = c.body(n); err != nil {
			return c.fail("read", err)
		}
		c.held = append(c.held, body...)
	}
	e, err := decodeEvent(zxid, body)
	if err != nil {
		return c.fail("read", err)
	}
	if f := c.l.cfg.OnEvent; f != nil {
		c.l.mu.Lock()
		e.After = c.l.seenZxid
		c.l.mu.Unlock()
		f(e)
	}
	return nil
}

// decodeEvent reads the body of a notification. The body may have any bytes.
func decodeEvent(zxid int64, body []byte) (Event, error) {
	d := decoder{b: body}
	e := Event{Type: zk.EventType(d.int32()), State: zk.State(d.int32()), Path: d.text(), Zxid: zxid}
	if d.bad {
		return Event{}, fmt.Errorf("%w: notification of %d bytes", ErrProtocol, len(body))
	}
	return e, nil
}

// sawZxid notes how far the server is that answered a request. A ping shows nothing
// of the tree, and the zxid of a notification may be missing.
func (c *conn) sawZxid(xid int32, zxid int64) {
	if xid == zoodefs.XidNotification || xid == zoodefs.XidPing || xid == zoodefs.XidAuth {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.seenZxid = max(c.l.seenZxid, zxid)
}

// answered notes a reply and reports whether it answers a request that
// go-zookeeper did not send. An error means that the session has ended.
func (c *conn) answered(xid int32, code int32) (own bool, err error) {
	l := c.l
	l.mu.Lock()
	switch {
	case xid == zoodefs.XidNotification:
	case xid == zoodefs.XidPing:
		if len(c.pings) > 0 {
			c.seen(c.pings[0])
			c.pings = c.pings[:copy(c.pings, c.pings[1:])]
		}
	case xid == zoodefs.XidAuth && c.authed < len(c.auth):
		scheme := c.auth[c.authed].Scheme
		c.authed++
		l.mu.Unlock()
		return true, c.authAnswered(scheme, code)
	default:
		r, ok := c.sent[xid]
		delete(c.sent, xid)
		c.acked = max(c.acked, r.end)
		if !ok || code == codeSessionExpired || code == codeSessionMoved {
			break
		}
		c.seen(r.at)
		if r.quorum && code == codeOK {
			c.committed(r.at)
		}
	}
	l.mu.Unlock()
	return false, nil
}

// seen notes that the server heard from the session. The caller holds l.mu.
func (c *conn) seen(at clock.Stamp) {
	l := c.l
	l.advance(at)
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

// committed notes that the write which was sent at that time was committed. The
// caller holds l.mu.
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
func (l *Link) advance(at clock.Stamp) {
	if at.At.After(l.evidence.At) {
		l.evidence = at
	}
}
