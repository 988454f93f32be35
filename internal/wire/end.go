package wire

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// End ends the session on this Link: the connection is closed, a dial or Pace in
// progress is cancelled, and no dial follows. The first cause wins; a nil cause means
// [ErrOver]. End does not wait for the network, and the session may live on at the
// server until it expires there. If another callback is running, OnOver may come
// after End has returned.
func (l *Link) End(cause error) {
	if c := l.finish(cause); c != nil {
		go c.close()
	}
}

// finish is End, but leaves it to the caller to call close of the connection, which it
// returns if there is one.
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
	l.deliver()
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
// restore sessions. From now on the loss of the connection ends the session in the
// same step. The cause wraps why, and nothing more is dialed. If the connection is
// lost already the session ends now.
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
// restoring it. The server's answer of size bytes names that one. No client will use
// it, so disown closes it before it closes the connection. The limit of the handshake
// bounds that.
func (c *conn) disown(why error, size int) {
	mine := c.l.finish(why) == c
	if !mine {
		return
	}
	defer func() { go c.close() }()
	defer time.AfterFunc(c.l.limit(), c.shut).Stop()
	if _, err := c.br.Discard(size); err != nil {
		return
	}
	const xid = xidOwn - 1
	b := put32(put32(make([]byte, lengthSize), xid), int32(zoodefs.OpCloseSession))
	if _, err := c.nc.Write(sealFrame(b, 0)); err != nil {
		return
	}
	// The server answers before it closes the connection. If this side closed the
	// connection earlier, the request could be lost.
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

// failConn makes c fail with err, unless it has failed already. It reports whether
// this call made it fail.
func (l *Link) failConn(c *conn, err error) bool {
	l.mu.Lock()
	first := l.downLocked(c, err)
	l.mu.Unlock()
	if first {
		l.deliver()
		go c.close()
	}
	return first
}

// downLocked records the failure of c. After it has released l.mu the caller delivers,
// and lets a goroutine close c.
func (l *Link) downLocked(c *conn, err error) bool {
	if c.err != nil {
		return false
	}
	err = c.suspect(err)
	c.err = err
	l.flushers.Add(1) // for close
	c.late.Stop()
	l.enqueueDialed(c.dialed, err)
	c.dialed = nil
	close(c.dead)
	if l.live == c {
		l.live = nil
	}
	l.enqueueDown(c.server, err)
	if l.frail != nil && c.up.Load() {
		l.overLocked(fmt.Errorf("%w: %w", l.frail, err))
	}
	return true
}

func (l *Link) enqueueDown(server string, err error) {
	if f := l.cfg.OnDown; f != nil {
		l.events = append(l.events, func() { f(server, err) })
	}
}

// DropLive closes the connection if a server had accepted it at or before the given
// time. The session goes on with the next dial. DropLive reports whether it closed
// one.
func (l *Link) DropLive(acceptedBefore time.Time, err error) bool {
	l.mu.Lock()
	c := l.live
	old := c != nil && c.up.Load() && !c.askedAt.At.After(acceptedBefore)
	l.mu.Unlock()
	return old && l.failConn(c, err)
}
