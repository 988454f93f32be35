package wire

import (
	"context"
	"fmt"
)

// closing is a closeSession in flight.
type closing struct {
	done chan struct{} // closed when answered
	err  error         // set before done is closed
}

func (s *closing) answered() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// CloseSession closes the session on the live connection and waits for the
// server's answer, of which go-zookeeper sees nothing. After nil the Link is
// over with [ErrClosed] and the server has removed the session's ephemeral
// nodes. Concurrent calls share one request.
//
// Without a connection it returns [ErrNotConnected] and nothing was sent. After
// any other error the Link is not over on its account, but the request may have
// been sent and the session may be closed at the server. If ctx ends while the
// request is being written the connection is closed, because half a frame
// cannot be taken back.
func (l *Link) CloseSession(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wire: close session: %w", context.Cause(ctx))
	}
	c, err := l.established()
	if err != nil {
		return err
	}
	s, err := c.requestClose(ctx)
	if err != nil {
		return err
	}
	select {
	case <-s.done:
	case <-c.dead:
		err = fmt.Errorf("wire: close session: %w", c.failure())
	case <-ctx.Done():
		err = fmt.Errorf("wire: close session: %w", context.Cause(ctx))
	}
	if !s.answered() {
		return err
	}
	if s.err == nil {
		// The answer is noted a moment before the Link ends.
		<-l.over
	}
	return s.err
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

// requestClose writes the closeSession unless one is in flight.
func (c *conn) requestClose(ctx context.Context) (*closing, error) {
	select {
	case c.turn <- struct{}{}:
		defer c.yield()
	case <-c.dead:
		if s := c.confirmed(); s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("wire: close session: %w: %w", ErrNotConnected, c.failure())
	case <-ctx.Done():
		return nil, fmt.Errorf("wire: close session: %w", context.Cause(ctx))
	}
	s, first := c.startClosing()
	if !first {
		return s, nil
	}
	stop := context.AfterFunc(ctx, func() {
		c.l.drop(c, fmt.Errorf("wire: close session: %w", context.Cause(ctx)))
	})
	_, err := c.nc.Write(closeFrame())
	stop()
	if err != nil {
		return nil, fmt.Errorf("wire: close session: %w", c.fail("write", err))
	}
	return s, nil
}

// startClosing returns the request in flight or begins one. A request that was
// answered with an error may be repeated.
func (c *conn) startClosing() (s *closing, first bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.closing == nil || c.closing.answered() && c.closing.err != nil {
		c.closing = &closing{done: make(chan struct{})}
		return c.closing, true
	}
	return c.closing, false
}

// confirmed returns the request that closed the session, for callers that came
// while its answer did; nil if there is none.
func (c *conn) confirmed() *closing {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if s := c.closing; s != nil && s.answered() && s.err == nil {
		return s
	}
	return nil
}

// closeAnswered ends the Link if the answer says that the session is gone.
func (c *conn) closeAnswered(s *closing, code int32) error {
	if code != codeOK && code != codeSessionExpired {
		s.err = fmt.Errorf("wire: close session: %w", ServerError(code))
		close(s.done)
		return nil
	}
	close(s.done)
	c.l.End(ErrClosed)
	return c.failure()
}
