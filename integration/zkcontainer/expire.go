package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Session is a client's session as the server has granted it.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration

	member *Container // the one that the client is connected to
}

// ExpireSession ends a session as if its timeout had passed: a second connection takes it
// over and closes it. The client hears of it when it next speaks to a server. A session
// that has ended already is no error; nor is a wrong password, which servers answer in
// the same way. It returns when a server has said that the session is no more.
//
// Clients that do not show their password can use a [Link], which hears it.
func (e *Ensemble) ExpireSession(ctx context.Context, id int64, password []byte) error {
	leader, err := e.Leader(ctx)
	if err != nil {
		return fmt.Errorf("zkcontainer: expire session %#x: %w", id, err)
	}
	return leader.expire(ctx, id, password)
}

// ExpireSession is [Ensemble.ExpireSession] by this server.
func (c *Container) ExpireSession(ctx context.Context, id int64, password []byte) error {
	return c.expire(ctx, id, password)
}

// expire repeats, as the client may take its session back in between.
func (c *Container) expire(ctx context.Context, id int64, password []byte) error {
	err := poll(ctx, func(ctx context.Context) error {
		switch err := c.closeSession(ctx, id, password); {
		case errors.Is(err, errNoSession):
			return nil
		case err != nil:
			return err
		}
		return errors.New("the session was closed, and is there again")
	})
	return c.wrap(fmt.Sprintf("expire session %#x", id), err)
}

// closeSession sends the handshake and the end of the session at once, so that the server
// has both before the client can come back.
func (c *Container) closeSession(ctx context.Context, id int64, password []byte) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Addr())
	if err != nil {
		return err
	}
	s := &session{conn: conn, stop: endWith(ctx, conn)}
	defer s.drop()
	both := append(frame(connectRequest(id, password)), frame(request(1, opClose, nil))...)
	if _, err := conn.Write(both); err != nil {
		return err
	}
	if err := s.accepted(); err != nil {
		return err
	}
	_, _ = s.read() // the answer, or the end of the connection
	return nil
}
