package client

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// A deadSession is over for this client, while a server may keep it for up to another
// timeout. Its ephemeral nodes are in the way of other clients until then. Either no
// answer came, or the server that refused the session was cut off from the ensemble.
type deadSession struct {
	id       int64
	password []byte
	timeout  time.Duration
	safe     time.Time // no other client may see it end before then: its holds were promised that
}

// isGone reports whether cause says that the servers have ended the session. A
// refused handshake does not say so. A leader that was deposed and does not know it
// refuses sessions that live on under the next leader.
func isGone(cause error) bool {
	return errors.Is(cause, wire.ErrClosed) || errors.Is(cause, ErrClosed) || errors.Is(cause, zk.ErrSessionExpired)
}

// remember notes a session that is to be ended on a server.
func (c *core) remember(s *sessionState) {
	d := deadSession{id: s.link.SessionID(), password: s.link.Password(), timeout: s.link.Timeout(), safe: s.lease.promised()}
	if d.id == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.dead {
		if known.id == d.id {
			return
		}
	}
	c.dead = append(c.dead, d)
}

// promised is when the nodes of the session's holds may go, zero if there are none.
func (l *lease) promised() time.Time {
	promised := l.state().promised
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle() {
		return time.Time{}
	}
	return promised
}

// buryLocked starts to end dead sessions, now that a server is reachable. The first
// try comes after half of the pause before a second dial, and not before other
// clients may see the session end. The caller holds c.mu.
func (c *core) buryLocked() {
	for _, d := range c.dead {
		pause := max(c.servers.Jitter(1)/2, time.Until(d.safe))
		c.wg.Go(func() { c.bury(d, pause) }) // ends when d has, or with the client
	}
	c.dead = nil
}

// bury ends d on a server. It tries until a server has said that d is over, or until
// d must have expired. Each try is a connection, with a pause before it.
func (c *core) bury(d deadSession, pause time.Duration) {
	ctx, cancel := context.WithTimeout(c.ctx, pause+d.timeout)
	defer cancel()
	for tried := 1; ctxerr.Sleep(ctx, pause) == nil; tried++ {
		c.mu.Lock()
		server, made := c.server, c.made
		c.mu.Unlock()
		err := c.end(ctx, d, server)
		c.journal.Say(slog.LevelDebug, "zookeeper: end a lost session", "session", sessionID(d.id), "server", server, "error", err)
		if err == nil || errors.Is(err, wire.ErrRefused) && made || errors.Is(err, wire.ErrChanged) {
			return // the last try: this server restores no sessions
		}
		pause = c.servers.Jitter(tried)
	}
}

// end shows d to a server and closes it.
func (c *core) end(ctx context.Context, d deadSession, server string) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout/3)
	defer cancel()
	conn, err := c.servers.Dial(ctx, server)
	if err != nil {
		return err
	}
	return wire.EndSession(ctx, conn, d.id, d.password, d.timeout)
}
