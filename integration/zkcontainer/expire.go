package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	return e.expire(ctx, leader, id, password)
}

// expire begins with one member and goes on to the others: the first may be cut off from them.
func (e *Ensemble) expire(ctx context.Context, first *Container, id int64, password []byte) error {
	others := slices.DeleteFunc(e.Members(), func(c *Container) bool { return c == first })
	return expire(ctx, append([]*Container{first}, others...), id, password)
}

// ExpireSession is [Ensemble.ExpireSession] by this server alone.
func (c *Container) ExpireSession(ctx context.Context, id int64, password []byte) error {
	return expire(ctx, []*Container{c}, id, password)
}

// expire asks one member after the other. It repeats, as the client may take its session back in
// between.
func expire(ctx context.Context, members []*Container, id int64, password []byte) error {
	turn := 0
	err := poll(ctx, func(ctx context.Context) error {
		living := slices.DeleteFunc(slices.Clone(members), func(c *Container) bool { return c.life.Err() != nil })
		if len(living) == 0 {
			return hopeless{errTerminated}
		}
		c := living[turn%len(living)]
		turn++
		switch err := c.closeSession(ctx, id, password); {
		case errors.Is(err, errNoSession):
			return nil
		case err != nil:
			return c.wrap("session", err)
		}
		return errors.New("the session was closed, and is there again")
	})
	if err != nil {
		return fmt.Errorf("zkcontainer: expire session %#x: %w", id, err)
	}
	return nil
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
