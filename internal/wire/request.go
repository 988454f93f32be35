package wire

import (
	"fmt"

	"github.com/docent-go/docent/internal/zoodefs"
)

// frameSize returns the size of the frame at the start of b, with its length bytes.
func (c *conn) frameSize(b []byte) (int, error) {
	least := uint32(requestHeader)
	if !c.hasAsked() {
		least = minConnectRequest
	}
	if len(b) < lengthSize {
		return 0, fmt.Errorf("%w: request of %d bytes", ErrProtocol, len(b))
	}
	switch n := uint32(be32(b)); {
	case n > uint32(c.l.cfg.MaxRequest):
		return 0, fmt.Errorf("%w: request of %d bytes, limit %d (jute.maxbuffer)", ErrFrameTooLarge, n, c.l.cfg.MaxRequest)
	case n < least || int(n) > len(b)-lengthSize:
		return 0, fmt.Errorf("%w: request of %d bytes, of which there are %d", ErrProtocol, n, len(b)-lengthSize)
	default:
		return lengthSize + int(n), nil
	}
}

func (c *conn) hasAsked() bool {
	_, asked := c.question()
	return asked
}

// forward sends one whole frame.
func (c *conn) forward(frame []byte) error {
	if !c.up.Load() {
		if !c.hasAsked() {
			return c.ask(frame)
		}
		return c.fail("write", fmt.Errorf("%w: request before the handshake was accepted", ErrProtocol))
	}
	if err := c.record(frame); err != nil {
		return err
	}
	if _, err := c.nc.Write(frame); err != nil {
		return c.fail("write", err)
	}
	return nil
}

// record records a request of go-zookeeper's that is about to be written.
func (c *conn) record(frame []byte) error {
	xid, op := be32(frame[lengthSize:]), Op(be32(frame[lengthSize+4:]))
	l := c.l
	l.mu.Lock()
	if c.err != nil {
		l.mu.Unlock()
		return c.failure()
	}
	defer l.mu.Unlock()
	// The header of the answer to a transaction does not say whether a part was
	// refused because the session is over.
	quorum := isQuorumWrite(op) && op != OpMulti
	now := l.stamp(quorum)
	c.handed += int64(len(frame))
	switch {
	case xid == zoodefs.XidNotification || ownXid(xid): // its answer could not be told from others
	case op == OpAuth: // its answer is no sign of life
	case xid == zoodefs.XidPing:
		c.pings = append(c.pings, now)
	default:
		// If an xid is used twice the older time stays. The first reply must not
		// count as an answer to the second request.
		if _, twice := c.sent[xid]; !twice {
			c.sent[xid] = sentRequest{at: now, quorum: quorum, end: c.handed}
		}
	}
	return nil
}
