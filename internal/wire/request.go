package wire

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/clock"
)

// sentRequest is a request that waits for its reply.
type sentRequest struct {
	at     clock.Stamp
	quorum bool // a quorum must log it
	multi  bool
	create *Create   // nil unless somebody wants to know
	check  *checking // of the Link's own, nil for go-zookeeper's
}

// assemble returns the next whole frame of the stream that goes on with p, nil
// if p ends before the frame does, and how many bytes of p it used. The frame
// is valid until the next call.
func (c *conn) assemble(p []byte) (frame []byte, n int, err error) {
	if len(c.part) == 0 && len(p) >= lengthSize {
		size, err := c.requestSize(p)
		if err != nil {
			return nil, 0, err
		}
		if len(p) >= size {
			return p[:size], size, nil
		}
	}
	if len(c.part) < lengthSize {
		n = min(len(p), lengthSize-len(c.part))
		c.part = append(c.part, p[:n]...)
		if len(c.part) < lengthSize {
			return nil, n, nil
		}
	}
	size, err := c.requestSize(c.part)
	if err != nil {
		return nil, n, err
	}
	more := min(len(p)-n, size-len(c.part))
	if need := len(c.part) + more; need > cap(c.part) {
		// Grow with what arrives, not with what a length promises.
		grown := make([]byte, len(c.part), min(max(need, 2*cap(c.part)), size))
		copy(grown, c.part)
		c.part = grown
	}
	c.part = append(c.part, p[n:n+more]...)
	n += more
	if len(c.part) < size {
		return nil, n, nil
	}
	frame, c.part = c.part, c.part[:0]
	return frame, n, nil
}

// requestSize returns the size of the frame that starts with b, its length
// bytes included.
func (c *conn) requestSize(b []byte) (int, error) {
	n, least := uint32(be32(b)), uint32(requestHeader)
	if !c.hasAsked() {
		least = minConnectRequest
	}
	if n > uint32(c.l.cfg.MaxRequest) {
		return 0, fmt.Errorf("%w: request of %d bytes, limit %d (jute.maxbuffer)", ErrFrameTooLarge, n, c.l.cfg.MaxRequest)
	}
	if n < least {
		return 0, fmt.Errorf("%w: request of %d bytes", ErrProtocol, n)
	}
	return lengthSize + int(n), nil
}

func (c *conn) hasAsked() bool {
	if c.up.Load() {
		return true
	}
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
	frame, err := c.leave(frame)
	if err != nil {
		return err
	}
	if _, err := c.nc.Write(frame); err != nil {
		return c.fail("write", err)
	}
	return nil
}

// leave records a request that is about to be written and returns the frame to
// write: the same one, or a copy with the watch flag set.
func (c *conn) leave(frame []byte) ([]byte, error) {
	xid, op := be32(frame[lengthSize:]), be32(frame[lengthSize+4:])
	l := c.l
	l.mu.Lock()
	if c.err != nil {
		l.mu.Unlock()
		return nil, c.failure()
	}
	defer l.mu.Unlock()
	quorum := isQuorumWrite(op)
	now := l.stamp(quorum)
	switch xid {
	case xidNotification: // its answer could not be told from an event
	case xidPing:
		c.pings.push(now)
	default:
		create := l.claimCreate(op, frame)
		// If an xid is used twice the older time stays: the first reply must
		// not pass for an answer to the second request.
		if _, twice := c.sent[xid]; !twice {
			c.sent[xid] = sentRequest{at: now, quorum: quorum, multi: op == opMulti, create: create}
		}
	}
	if kind, ok := watchKindOf(op); ok && len(l.armed[kind]) > 0 {
		frame = c.flagWatch(kind, frame)
	}
	return frame, nil
}

// stamp reads the clocks. How long the machine has slept is read anew for
// writes only, which spares the others a system call: an older reading makes
// them look older. The caller holds l.mu.
func (l *Link) stamp(fresh bool) clock.Stamp {
	if !fresh {
		return l.cfg.Clock.At(time.Now(), l.slept)
	}
	now := l.cfg.Clock.Now()
	l.slept = now.Slept()
	return now
}
