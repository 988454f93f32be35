package wire

import "fmt"

// End ends the session on this Link: the connection is closed, a dial or Pace
// in progress is cancelled, and no dial follows. The first cause wins; a nil
// cause stands for [ErrOver]. It does not wait for the network, and the session
// may live on at the server until it expires there. OnOver may be delivered
// after End has returned if another callback is running.
func (l *Link) End(cause error) {
	if c := l.finish(cause); c != nil {
		c.shut()
	}
}

// finish is End but for closing the connection, which it returns if there is one.
func (l *Link) finish(cause error) *conn {
	if cause == nil {
		cause = ErrOver
	}
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return nil
	}
	c := l.live
	l.frail = nil // the cause is the given one
	if c != nil {
		l.downLocked(c, cause)
	}
	l.overLocked(cause)
	l.mu.Unlock()
	l.deliver() // before the caller closes the connection, which may block
	return c
}

// overLocked ends the session, which is not over yet. The caller delivers after it
// has released l.mu.
func (l *Link) overLocked(cause error) {
	l.cause = cause
	l.end(cause)
	if f := l.cfg.OnOver; f != nil {
		l.events = append(l.events, func() { f(cause) })
	}
}

// EndOnLoss makes the session end with its connection, for servers that do not
// restore sessions: from now on the loss of the connection ends it, in the same
// step and with a cause that wraps why, and nothing is dialed for it any more. If
// the connection is lost already the session ends now.
func (l *Link) EndOnLoss(why error) {
	l.mu.Lock()
	l.frail = why
	lost := l.id != 0 && (l.live == nil || !l.live.up.Load())
	l.mu.Unlock()
	if lost {
		l.End(fmt.Errorf("%w: %w", why, ErrNotConnected))
	}
}

// disown ends the session because the server has made another one instead of
// restoring it, which the answer of size bytes names. Nobody will use that one, so
// it is closed before the connection is. The limit of the handshake bounds that.
func (c *conn) disown(why error, size int) {
	mine := c.l.finish(why) == c
	if !mine {
		return
	}
	defer c.shut()
	if _, err := c.br.Discard(size); err != nil {
		return
	}
	const xid = xidOwn - 1
	b := put32(put32(make([]byte, lengthSize), xid), int32(opCloseSession))
	if _, err := c.nc.Write(sealFrame(b, 0)); err != nil {
		return
	}
	// The server answers before it closes the connection. To close it from here
	// any earlier could take the request back.
	for {
		head, err := c.br.Peek(lengthSize + replyHeader)
		if err != nil || be32(head[lengthSize:]) == xid {
			return
		}
		if _, err := c.br.Discard(lengthSize + int(uint32(be32(head)))); err != nil {
			return
		}
	}
}
