package zkserver

import (
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// reply queues the answer to r and does to it what the verdict says. The mutex is
// held.
func (c *conn) reply(r *request, frame []byte) {
	v := &r.verdict
	switch {
	case c.dead || v.Ignore:
		return
	case r.op == zoodefs.OpCheck && r.err == zoodefs.CodeOK:
		return // the real server fails while it writes the answer
	case v.LoseReply:
		c.close()
		return
	case v.Stall:
		c.link.down.hold(holdStalled)
	}
	c.observe(r, len(frame)-4)
	item := &outItem{frame: frame, ready: len(v.After) == 0 && v.ReplyDelay == 0, stays: c.gated(r, 0, "")}
	c.out = append(c.out, item)
	if v.CloseAfter || r.op == zoodefs.OpCloseSession {
		c.out = append(c.out, &outItem{close: true, ready: true})
	}
	if !item.ready {
		c.prepareItem(item, r)
	}
	c.flush()
}

// prepareItem runs the hooks of a reply, and then lets the reply out.
func (c *conn) prepareItem(item *outItem, r *request) {
	v, seen := r.verdict, r.public()
	release := func() {
		c.s.mu.Lock()
		item.ready = true
		c.flush()
		c.s.mu.Unlock()
	}
	if len(v.After) == 0 {
		time.AfterFunc(v.ReplyDelay, release)
		return
	}
	c.s.wg.Go(func() {
		for _, hook := range v.After {
			hook(c.s.ctx, seen)
		}
		if v.ReplyDelay > 0 {
			time.AfterFunc(v.ReplyDelay, release)
			return
		}
		release()
	})
}

// event queues a watch event.
func (c *conn) event(t zoodefs.EventType, path string, zxid int64) {
	if c.dead || c.muted {
		return
	}
	c.s.counts.Events++
	e := newFrame(32 + len(path))
	e.header(zoodefs.XidNotification, zxid, zoodefs.CodeOK)
	e.int(int32(t))
	e.int(zoodefs.StateSyncConnected)
	e.text(path)
	c.out = append(c.out, &outItem{frame: e.frame(), event: true, ready: true, stays: c.gated(nil, t, path)})
	c.flush()
}

// flush hands to the link the frames that may leave. The link never blocks.
func (c *conn) flush() {
	for len(c.out) > 0 && c.out[0].ready && c.out[0].stays == nil && !c.dead {
		item := c.out[0]
		c.out = c.out[1:]
		switch {
		case item.close:
			c.close()
		case item.event:
			c.sent()
			c.link.down.write(item.frame, c.s.eventDelay)
		default:
			c.sent()
			c.link.down.write(item.frame, 0)
		}
	}
}

// closeAfterOutput closes the connection after everything that is queued.
func (c *conn) closeAfterOutput() {
	c.out = append(c.out, &outItem{close: true, ready: true})
	c.flush()
}

// mute discards all further output: the reply to the current request is lost, and
// so are the events that it causes.
func (c *conn) mute() { c.muted = true }

// close ends the connection. Its session, if it has one, stays. The mutex is held.
func (c *conn) close() {
	if c.dead {
		return
	}
	c.dead = true
	close(c.done)
	c.s.watches.forget(c)
	if ses := c.s.sessions[c.session]; ses != nil && ses.conn == c {
		ses.conn = nil
	}
	delete(c.s.conns, c)
	c.link.serverGone = true
	c.s.forget(c.link)
	c.out, c.waiting = nil, nil
	// Later reads fail at once. The client hears of the end after everything that
	// was written before.
	_ = c.end.Close() // it was open until now
}
