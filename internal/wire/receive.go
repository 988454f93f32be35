package wire

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/zoodefs"
)

// receive reads the reply of n bytes to an exchange, or throws it away if the
// exchange was given up.
func (c *conn) receive(xid int32, zxid int64, code int32, n int) error {
	l := c.l
	l.mu.Lock()
	r, awaited := c.sent[xid]
	if awaited {
		delete(c.sent, xid)
		c.acked = max(c.acked, r.end)
	}
	l.mu.Unlock()
	c.prolong()
	reply, rest := Reply{Zxid: zxid, Code: code}, lengthSize+n
	var unread error
	switch {
	case !awaited || code != codeOK:
	case n > l.cfg.MaxReply:
		reply.Code = CodeReplyTooLarge
	default:
		var body []byte
		var err error
		if body, rest, err = c.body(n); err != nil {
			return err
		}
		unread = reply.decode(r.op, body)
	}
	if _, err := c.br.Discard(rest); err != nil {
		return err
	}
	if awaited {
		r.x.got = lengthSize + n
		c.complete(r, reply, unread)
	}
	return nil
}

// body returns the body of the next reply, of n bytes, and how many bytes to discard
// after its use. Memory grows with the bytes that arrive, not with the length that
// the frame claims.
func (c *conn) body(n int) (body []byte, rest int, err error) {
	const head = lengthSize + replyHeader
	if size := lengthSize + n; size <= readBuffer {
		frame, err := c.peek(size)
		if err != nil {
			return nil, 0, err
		}
		return frame[head:], size, nil
	}
	if _, err := c.br.Discard(head); err != nil {
		return nil, 0, err
	}
	var b bytes.Buffer
	if _, err = io.CopyN(&b, c.br, int64(n-replyHeader)); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the stream ended within the frame
	}
	return b.Bytes(), 0, err
}

// complete takes a reply as evidence and hands it to its exchange. It ends the
// Link if the reply says that the session is over.
func (c *conn) complete(r sentRequest, reply Reply, unread error) {
	// A leader that has ended the session answers as if a part had been refused.
	for _, p := range reply.Parts {
		if p.Code == codeSessionExpired || p.Code == codeSessionMoved {
			reply.Code = p.Code
			break
		}
	}
	l, x := c.l, r.x
	l.mu.Lock()
	if reply.Code != codeSessionExpired && reply.Code != codeSessionMoved && r.op != OpAuth { // which the server answers without a look at the session
		c.seen(r.at)
		// A transaction of which a part was refused was committed too.
		if r.quorum && reply.Code == codeOK && unread == nil {
			c.committed(r.at)
		}
	}
	l.mu.Unlock()
	x.Reply, x.err = reply, unread
	x.answered.Store(true)
	if x.OnAnswer != nil {
		x.OnAnswer()
	}
	expired := reply.Code == codeSessionExpired
	switch {
	case r.op == zoodefs.OpCloseSession && (expired || reply.Code == codeOK):
		l.End(ErrClosed)
	case r.op == zoodefs.OpCloseSession:
		l.mu.Lock()
		c.closing = false
		l.mu.Unlock()
	case expired:
		l.End(zk.ErrSessionExpired)
	}
	x.count()
}

// prolong moves the deadline that go-zookeeper set for its next frame. go-zookeeper
// does not see that the server answers the Link's own requests.
func (c *conn) prolong() {
	if now := time.Now(); c.readSpan > 0 && now.Sub(c.readSet) > c.readSpan/8 {
		c.readSet = now
		_ = c.nc.SetReadDeadline(now.Add(c.readSpan))
	}
}
