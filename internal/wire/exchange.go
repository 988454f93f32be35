package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
)

// Exchange is one request of the Link's own and its reply. It serves one
// [Link.Do]; after that its methods and Reply may be read by its caller.
type Exchange struct {
	Request Request
	Reply   Reply // of use once Answered
	// Urgent lets the request pass those that wait to be written.
	Urgent bool
	// Keep lets the answer be waited for, by [Exchange.Settle], when Do has given
	// up.
	Keep bool

	size int           // of the request, as it is written
	got  int           // of the answer; set before answered
	conn *conn         // that it was sent on
	lead *Exchange     // the first of those that were sent together
	left atomic.Int32  // of a lead: how many of them have no answer
	done chan struct{} // of a lead: closed with the last answer

	answered atomic.Bool // Reply and err are set
	err      error       // the answer could not be read
	sent     atomic.Bool // handed to the connection; set under l.mu

	// Guarded by l.mu until Do returns.
	xid   int32
	frame []byte // as it is written
}

// Sent reports whether the request, or its end, may have reached a server: if
// it is false the server has not run the request and never will.
func (x *Exchange) Sent() bool { return x.sent.Load() }

// Answered reports whether the server's answer to the request has arrived.
func (x *Exchange) Answered() bool { return x.answered.Load() }

// Err is why an answer that has arrived could not be read: it matches
// [ErrProtocol].
func (x *Exchange) Err() error { return x.err }

// Bytes returns the sizes of the request, once it was sent, and of its answer, once
// that has arrived, both with the four length bytes.
func (x *Exchange) Bytes() (sent, received int) {
	if x.Sent() {
		sent = x.size
	}
	if x.Answered() {
		received = x.got
	}
	return sent, received
}

// Settle waits for the answer to a request with Keep that a Do has given up,
// until the connection or ctx ends, and gives it up for good. [Exchange.Answered]
// tells whether the answer has come.
func (x *Exchange) Settle(ctx context.Context) {
	if !x.Sent() {
		return
	}
	select {
	case <-x.lead.done:
	case <-x.conn.dead:
	case <-ctx.Done():
	}
	x.Keep = false
	x.conn.forget([]*Exchange{x})
}

const (
	// inlineBytes may be unanswered on a connection for a caller to write to it
	// by itself. The least send buffer of a kernel has room for more, so that
	// this write does not wait for the network.
	inlineBytes = 4 << 10
	// flushBytes are written at once, if so many wait.
	flushBytes = 64 << 10
)

// Do sends the requests of xs in their order, all in one write, and waits for
// the answers. It returns nil when all have been answered, which does not say
// that none was refused.
//
// It returns an error that matches [ErrFrameTooLarge] if a request is too large
// and [ErrNotConnected] without a connection; then nothing was sent. After any
// other error, the end of ctx or of the connection, [Exchange.Sent] and
// [Exchange.Answered] tell what is known of each request; a request that was
// not sent by then never is, and an answer that comes later is thrown away.
//
// The requests are encoded before Do returns: their bytes belong to the caller
// again. A write that blocks does not keep Do beyond ctx and does not cost the
// connection.
func (l *Link) Do(ctx context.Context, xs ...*Exchange) error {
	if err := ctxerr.Ended(ctx); err != nil {
		return err
	}
	c, err := l.established()
	if err != nil {
		return err
	}
	if err := c.send(xs); err != nil {
		return err
	}
	select {
	case <-xs[0].done:
		return nil
	case <-c.dead:
		err = c.failure()
	case <-ctx.Done():
		err = ctxerr.Ended(ctx)
	}
	if c.forget(xs) {
		return nil
	}
	return err
}

// established returns the live connection if its handshake was accepted.
func (l *Link) established() (*conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, overError(l.cause))
	}
	if l.live == nil || !l.live.up.Load() {
		return nil, ErrNotConnected
	}
	return l.live, nil
}

// send encodes the requests and writes them, or queues them for the flusher where
// a write could wait for the network.
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
	case c.closing && xs[0].Request.Op != opCloseSession:
		// The server would not answer what comes behind a closeSession. It would
		// close the connection with that unread, which takes the answers to
		// earlier requests along.
		defer l.mu.Unlock()
		return fmt.Errorf("%w: the session is being closed", ErrNotConnected)
	}
	c.closing = c.closing || xs[0].Request.Op == opCloseSession
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
		l.flushers.Go(c.flush) // ends with the queue or the connection
	}
	return nil
}

// encode returns the frames of xs, one behind the other, still without xids.
func encode(xs []*Exchange, limit int) ([]byte, error) {
	const beside = 96 // bytes of a request beside its path and data, mostly
	size := 0
	for _, x := range xs {
		size += beside + len(x.Request.Path) + len(x.Request.Data) + beside*len(x.Request.Parts)
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

// hand gives xs their xids and makes them wait for their answers. It comes before
// the write, so that no answer can come before it. The caller holds l.mu.
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

// write writes b, which are the requests of xs, and yields the turn. A server
// cannot run a request whose end is missing: such a one was not sent.
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

// unsend takes back those of xs of which the last missing bytes were not
// written. The caller has the turn.
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

// flush writes what is queued, until nothing is or the connection fails.
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

// take takes from the queue what is to be written next. Requests of one Do stay
// together. Once the connection has failed nothing is taken, so that what waits
// is known not to have been sent.
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
		// A write costs a system call on a socket only. Elsewhere each Do has its
		// own, so that the writes of a simulation do not depend on the scheduler.
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

// forget gives up those of xs that have no answer, and reports whether there
// was none. One that waits in the queue is never sent.
func (c *conn) forget(xs []*Exchange) (all bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	all = true
	for _, x := range xs {
		switch {
		case x.answered.Load():
			continue
		case !x.Sent():
			if i := slices.Index(c.queue, x); i >= 0 {
				c.queue = slices.Delete(c.queue, i, i+1)
				c.closing = c.closing && x.Request.Op != opCloseSession
				x.count()
			}
		case x.Keep: // what it asked for is not needed any more
			x.Request, x.frame = Request{Op: x.Request.Op}, nil
		case c.sent[x.xid].x == x:
			delete(c.sent, x.xid)
			x.count()
		}
		all = false
	}
	return all
}

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
		c.settle(r, reply, unread)
	}
	return nil
}

// body returns the body of the reply of n bytes that comes next, and how much is
// to be discarded when it is of no more use. Memory grows with what arrives,
// not with what a length promises.
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
		err = io.ErrUnexpectedEOF // it is within the frame
	}
	return b.Bytes(), 0, err
}

// settle takes a reply as evidence and hands it to its exchange. It ends the
// Link if the reply says that the session is over.
func (c *conn) settle(r sentRequest, reply Reply, unread error) {
	// A leader that has ended the session says so as if a part had been refused.
	for _, p := range reply.Parts {
		if p.Code == codeSessionExpired || p.Code == codeSessionMoved {
			reply.Code = p.Code
			break
		}
	}
	l, x := c.l, r.x
	l.mu.Lock()
	if reply.Code != codeSessionExpired && reply.Code != codeSessionMoved {
		c.seen(r.at)
		// A transaction of which a part was refused was committed too.
		if r.quorum && reply.Code == codeOK && unread == nil {
			c.committed(r.at)
		}
	}
	l.mu.Unlock()
	x.Reply, x.err = reply, unread
	x.answered.Store(true)
	expired := reply.Code == codeSessionExpired
	switch {
	case r.op == opCloseSession && (expired || reply.Code == codeOK):
		l.End(ErrClosed)
	case r.op == opCloseSession:
		l.mu.Lock()
		c.closing = false
		l.mu.Unlock()
	case expired:
		l.End(zk.ErrSessionExpired)
	}
	x.count()
}

// count notes that x is answered or given up.
func (x *Exchange) count() {
	if x.lead.left.Add(-1) == 0 {
		close(x.lead.done)
	}
}

// prolong moves the deadline that go-zookeeper set for its next frame: it does
// not see that the server answers.
func (c *conn) prolong() {
	if now := time.Now(); c.readSpan > 0 && now.Sub(c.readSet) > c.readSpan/8 {
		c.readSet = now
		_ = c.nc.SetReadDeadline(now.Add(c.readSpan))
	}
}

// buffers reports whether a kernel takes what is written to nc and sends it
// later. Other connections may hold their writer until the peer has read; so may
// a Unix socket, which counts much more than the bytes of a small write.
func buffers(nc net.Conn) bool {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	_, ok := nc.(*net.TCPConn)
	return ok
}
