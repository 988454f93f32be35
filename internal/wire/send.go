package wire

import (
	"fmt"
	"slices"

	"github.com/docent-go/docent/internal/zoodefs"
)

const (
	// inlineBytes is how many unanswered bytes a connection may have for a caller to
	// write to it by itself. The smallest send buffer of a kernel has room for more,
	// so this write does not wait for the network.
	inlineBytes = 4 << 10
	// flushBytes is how many bytes of the queue are written at once, if there are so
	// many.
	flushBytes = 64 << 10
)

// send encodes the requests and writes them. If a write could wait for the network,
// send queues them for the flusher.
func (c *conn) send(xs []*Exchange) error {
	l := c.l
	b, err := encode(xs, l.cfg.MaxRequest)
	if err != nil {
		return err
	}
	for _, x := range xs {
		x.conn, x.lead = c, xs[0]
	}
	xs[0].done = make(chan struct{})
	xs[0].left.Store(int32(len(xs)))
	l.mu.Lock()
	switch {
	case c.err != nil:
		defer l.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrNotConnected, c.err)
	case c.closing && xs[0].Request.Op != zoodefs.OpCloseSession:
		// The server would not answer a request behind a closeSession. It would close
		// the connection with that request unread, and the answers to earlier
		// requests would be lost.
		defer l.mu.Unlock()
		return fmt.Errorf("%w: the session is being closed", ErrNotConnected)
	}
	c.closing = c.closing || xs[0].Request.Op == zoodefs.OpCloseSession
	if len(c.queue) == 0 && c.inline && c.handed-c.acked+int64(len(b)) <= inlineBytes && c.tryTurn() {
		c.hand(xs)
		l.mu.Unlock()
		c.write(xs, b)
		return nil
	}
	defer l.mu.Unlock()
	at := len(c.queue)
	if xs[0].Urgent {
		at = 0
	}
	c.queue = slices.Insert(c.queue, at, xs...)
	if !c.flushing {
		c.flushing = true
		l.flushers.Go(c.flusher) // ends with the queue or the connection
	}
	return nil
}

// encode returns the frames of xs, one behind the other, still without xids.
func encode(xs []*Exchange, limit int) ([]byte, error) {
	const overhead = 96 // bytes of a request beside its path and data, mostly
	size := 0
	for _, x := range xs {
		if x.Request.Op == OpCheck {
			return nil, errLoneCheck
		}
		size += overhead + len(x.Request.Path) + len(x.Request.Data) + overhead*len(x.Request.Parts)
	}
	b := make([]byte, 0, size)
	for _, x := range xs {
		start := len(b)
		b = put32(put64(b, 0), int32(x.Request.Op)) // length and xid come later
		b = sealFrame(x.Request.append(b), start)
		if n := len(b) - start - lengthSize; n > limit {
			return nil, fmt.Errorf("%w: request of %d bytes, limit %d", ErrFrameTooLarge, n, limit)
		}
	}
	rest := b
	for _, x := range xs {
		n := lengthSize + int(be32(rest))
		x.frame, rest = rest[:n:n], rest[n:]
		x.size = n
	}
	return b, nil
}

// hand gives xs their xids and registers them for their answers. It comes before the
// write, so no answer can come before it. The caller holds l.mu.
func (c *conn) hand(xs []*Exchange) {
	at := c.l.stamp(slices.ContainsFunc(xs, func(x *Exchange) bool { return isQuorumWrite(x.Request.Op) }))
	for _, x := range xs {
		x.xid = xidOwn - 1 - int32(c.xids%ownXids)
		c.xids++
		put32(x.frame[lengthSize:lengthSize], x.xid)
		c.handed += int64(len(x.frame))
		x.sent.Store(true)
		c.sent[x.xid] = sentRequest{at: at, quorum: isQuorumWrite(x.Request.Op), end: c.handed, x: x, op: x.Request.Op}
	}
}

// write writes b, which holds the requests of xs, and yields the turn. A server
// cannot run a request whose end is missing: such a request counts as not sent.
func (c *conn) write(xs []*Exchange, b []byte) {
	n, err := c.nc.Write(b)
	if err != nil {
		c.unsend(xs, len(b)-n)
	}
	c.yield()
	if err != nil {
		_ = c.fail("write", err)
	}
}

// unsend takes back the exchanges of xs whose bytes are among the last missing ones,
// which were not written. The caller has the turn.
func (c *conn) unsend(xs []*Exchange, missing int) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	for _, x := range xs {
		if r := c.sent[x.xid]; r.x == x && r.end > c.handed-int64(missing) {
			delete(c.sent, x.xid)
			x.sent.Store(false)
		}
	}
}

// flush writes the queue until it is empty or the connection fails.
func (c *conn) flush() {
	for {
		select {
		case c.turn <- struct{}{}:
		case <-c.dead:
			return
		}
		xs, b := c.take()
		if len(xs) == 0 {
			c.yield()
			return
		}
		c.write(xs, b)
	}
}

func (c *conn) yield() { <-c.turn }

// take takes the next exchanges to write from the queue. Exchanges of one Do stay
// together. Once the connection has failed it takes none: the client knows that those
// in the queue were not sent.
func (c *conn) take() (xs []*Exchange, b []byte) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.err != nil {
		return nil, nil
	}
	n, size := 0, 0
	for ; n < len(c.queue); n++ {
		x := c.queue[n]
		// Only on a socket does a write cost a system call. Elsewhere each Do has its
		// own write, so the writes of a simulation do not depend on the scheduler.
		if full := !c.inline || size >= flushBytes; x.lead == x && n > 0 && full {
			break
		}
		size += len(x.frame)
	}
	b = make([]byte, 0, size)
	xs, c.queue = c.queue[:n:n], c.queue[n:]
	c.hand(xs)
	for _, x := range xs {
		b = append(b, x.frame...)
	}
	c.flushing = n > 0
	return xs, b
}
