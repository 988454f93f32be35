package wire

import (
	"context"
	"fmt"
	"slices"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Sent reports whether the request, or its end, may have reached a server. If it is
// false the server has not run the request and never will.
func (x *Exchange) Sent() bool { return x.sent.Load() }

// Answered reports whether the server's answer to the request has arrived.
func (x *Exchange) Answered() bool { return x.answered.Load() }

// Err is why an answer that has arrived could not be read. It matches [ErrProtocol].
func (x *Exchange) Err() error { return x.err }

// Connection tells connections of the Link apart. It is the number of the one that the
// request was sent on, from 1. It is 0 for a request that no Do has taken.
func (x *Exchange) Connection() uint64 {
	if x.conn == nil {
		return 0
	}
	return x.conn.number
}

// Bytes returns the size of the request if it was sent, and of its answer if that has
// arrived. Both count the four length bytes.
func (x *Exchange) Bytes() (sent, received int) {
	if x.Sent() {
		sent = x.size
	}
	if x.Answered() {
		received = x.got
	}
	return sent, received
}

// AwaitAnswer waits for the answer to a request with Keep after its Do has given up. It
// waits until the connection or ctx ends, and then gives the request up for good.
// [Exchange.Answered] tells whether the answer has come.
func (x *Exchange) AwaitAnswer(ctx context.Context) {
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

// Do sends the requests of xs in their order, all in one write, and waits for the
// answers. It returns nil when all have been answered; some may have been refused.
//
// The error matches [ErrFrameTooLarge] if a request is too large, and
// [ErrNotConnected] without a connection; then nothing was sent. Any other error is
// the end of ctx or of the connection. Then [Exchange.Sent] and [Exchange.Answered]
// tell what is known of each request. A request that has not been sent by then never
// is, and a later answer is thrown away.
//
// The requests are encoded before Do returns: their bytes belong to the caller again.
// A write that blocks does not keep Do beyond the end of ctx, and does not cost the
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
	if f := xs[0].OnQueued; f != nil {
		f()
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

// forget gives up the exchanges of xs that have no answer, and reports whether all
// had one. An exchange that waits in the queue is never sent.
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
				c.closing = c.closing && x.Request.Op != zoodefs.OpCloseSession
				x.count()
			}
		case x.Keep: // the bytes of the request are not needed any more
			x.Request, x.frame = Request{Op: x.Request.Op}, nil
		case c.sent[x.xid].x == x:
			delete(c.sent, x.xid)
			x.count()
		}
		all = false
	}
	return all
}

// count notes that x has been answered or given up.
func (x *Exchange) count() {
	if x.lead.left.Add(-1) == 0 {
		close(x.lead.done)
	}
}
