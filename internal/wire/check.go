package wire

import (
	"context"
	"fmt"
	"time"
)

// checking is a [Link.Check] in flight.
type checking struct {
	done  chan struct{} // closed when answered
	index int           // of the part that failed, -1 if none did
	code  int32
	err   error // the answer could not be used
}

// Check commits a transaction that does nothing but check that the nodes at
// paths exist, which takes a quorum. Paths are the server's; there must be at
// least one. It goes past go-zookeeper's queue of requests, of which nothing
// is seen there.
//
// failed is the index of the first node that was refused and why, or -1 and
// nil; either way the transaction was committed, unless why says that the
// session is gone. Without a connection err is [ErrNotConnected] and nothing
// was sent. After any other error it may have been committed. If ctx ends
// while the request is being written the connection is closed, because half a
// frame cannot be taken back; afterwards the connection is left alone.
func (l *Link) Check(ctx context.Context, paths ...string) (failed int, why, err error) {
	if ctx.Err() != nil {
		return -1, nil, fmt.Errorf("wire: check: %w", context.Cause(ctx))
	}
	c, err := l.established()
	if err != nil {
		return -1, nil, err
	}
	k, err := c.requestCheck(ctx, paths)
	if err != nil {
		return -1, nil, err
	}
	select {
	case <-k.done:
	case <-c.dead:
		return -1, nil, fmt.Errorf("wire: check: %w", c.failure())
	case <-ctx.Done():
		return -1, nil, fmt.Errorf("wire: check: %w", context.Cause(ctx))
	}
	if k.index >= 0 {
		why = ServerError(k.code)
	}
	return k.index, why, k.err
}

// requestCheck writes the request.
func (c *conn) requestCheck(ctx context.Context, paths []string) (*checking, error) {
	select {
	case c.turn <- struct{}{}:
		defer c.yield()
	case <-c.dead:
		return nil, fmt.Errorf("wire: check: %w: %w", ErrNotConnected, c.failure())
	case <-ctx.Done():
		return nil, fmt.Errorf("wire: check: %w", context.Cause(ctx))
	}
	k := &checking{done: make(chan struct{}), index: -1}
	l := c.l
	l.mu.Lock()
	if c.err != nil {
		l.mu.Unlock()
		return nil, fmt.Errorf("wire: check: %w: %w", ErrNotConnected, c.failure())
	}
	c.checks++
	xid := xidCheck - c.checks%checkXids
	c.sent[xid] = sentRequest{at: l.stamp(true), quorum: true, check: k}
	l.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		l.drop(c, fmt.Errorf("wire: check: %w", context.Cause(ctx)))
	})
	_, err := c.nc.Write(checkFrame(xid, paths))
	stop()
	if err != nil {
		return nil, fmt.Errorf("wire: check: %w", c.fail("write", err))
	}
	return k, nil
}

// checkFrame returns a multi of one check for each path.
func checkFrame(xid int32, paths []string) []byte {
	b := make([]byte, lengthSize, 64+128*len(paths))
	b = put32(b, xid)
	b = put32(b, opMulti)
	for _, p := range paths {
		b = putPart(b, opCheck, false)
		b = putBytes(b, p)
		b = put32(b, -1) // any version
	}
	return sealFrame(putPart(b, partError, true), 0)
}

// putPart appends the header of one part of a transaction.
func putPart(b []byte, op int32, done bool) []byte {
	b = put32(b, op)
	if done {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return put32(b, -1)
}

// parse reads the results of the parts, in order. Those before the one that
// failed say 0, those after it codeRuntimeInconsistency.
func (k *checking) parse(code int32, body []byte) {
	if code != codeOK {
		k.err = fmt.Errorf("wire: check: %w", ServerError(code))
		return
	}
	for i := 0; ; i++ {
		if len(body) < multiHeader {
			break
		}
		op, done := be32(body), body[4] != 0
		body = body[multiHeader:]
		switch {
		case done:
			return
		case op == opCheck:
			continue
		case op != partError || len(body) < 4:
			k.err = fmt.Errorf("%w: result of a check of type %d", ErrProtocol, op)
			return
		}
		if err := be32(body); err != codeOK && err != codeRuntimeInconsistency && k.index < 0 {
			k.index, k.code = i, err
		}
		body = body[4:]
	}
	k.err = fmt.Errorf("%w: answer to a check ends early", ErrProtocol)
}

// DropLive closes the connection, if there is one, for the next to be dialed:
// the session goes on there. It reports whether there was one that a server
// had accepted at or before the given time.
func (l *Link) DropLive(acceptedBefore time.Time, err error) bool {
	l.mu.Lock()
	c := l.live
	old := c != nil && c.up.Load() && !c.askedAt.At.After(acceptedBefore)
	l.mu.Unlock()
	return old && l.drop(c, err)
}
