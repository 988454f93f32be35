package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// Close is [Client.CloseContext] with a limit of 5 s. It makes a Client an
// [io.Closer].
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.core.ctx), closeLimit)
	defer cancel()
	return c.CloseContext(ctx)
}

const closeLimit = 5 * time.Second

// CloseContext ends the contexts of the session and of the locks held in it, then
// the session on the server. The server removes the ephemeral nodes and watches of
// the session at once. CloseContext then waits for every goroutine of the client.
//
// Operations in flight are answered first; later ones fail with [ErrClosed]. While
// no server is reachable, CloseContext waits for one. It gives up when ctx ends, or
// when the session timeout has passed, since the servers then end the session by
// themselves. A hook of [Observer] or a log handler may close the client: for hooks
// and handlers that have not returned CloseContext waits 0.2 s.
//
// It returns within ctx. The error says that the session could not be ended on the
// server: its ephemeral nodes then stay until the session expires, at most the
// session timeout later. Either way the client is closed, and what still runs ends
// by itself shortly. A second call waits for the first and returns the result of
// the first. CloseContext closes all namespaces of the client.
func (c *Client) CloseContext(ctx context.Context) error {
	ctxerr.Require(ctx)
	k := c.core
	err, done := k.closeOnce.Do(ctx, func() error { return k.shutDown(ctx) })
	if !done {
		return fmt.Errorf("client: close: %w", ctxerr.Ended(ctx))
	}
	return err
}

func (c *core) shutDown(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	s := c.current
	c.broadcast()
	c.mu.Unlock()

	c.watches.end(ErrClosed)
	if s != nil {
		s.retire()
		c.parents.Leave(ctx, s)
	}
	err := c.endSession(ctx, s)
	c.cancel(ErrClosed) // no next session
	if s != nil {
		s.link.End(ErrClosed)
	}
	c.states.add(StateChange{State: Closed, At: time.Now()})

	go func() { // ends when the last goroutine of the client does
		c.wg.Wait()
		close(c.idle)
		c.told.Wait()
		c.teller.Wait()
		close(c.quiet)
	}()
	select {
	case <-c.idle:
	case <-ctx.Done():
		return err
	}
	moment := time.NewTimer(hooksMoment)
	defer moment.Stop()
	select {
	case <-c.quiet:
	case <-moment.C: // a hook or handler that may be waiting for this call
	case <-ctx.Done():
	}
	return err
}

// hooksMoment is how long Close waits for hooks and log handlers. It is long enough
// to tell them of the end, and short for a hook that called Close itself.
const hooksMoment = 200 * time.Millisecond

// newMoment is how long Close waits for the answer to a request for a new session. If
// the answer comes later, the session has no nodes and expires by itself.
const newMoment = 200 * time.Millisecond

// awaitNew waits for the answer to a request for a new session, if there is one on
// its way. It does not wait if no server has ever accepted this client, because a
// Connect that fails may be waiting for Close.
func (c *core) awaitNew(ctx context.Context, s *sessionState) {
	c.mu.Lock()
	met := c.server != ""
	c.mu.Unlock()
	if !met {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, newMoment)
	defer cancel()
	s.link.AwaitNew(ctx)
}

// endSession asks a server to end s. It asks again after every reconnection, until
// ctx or the session's own lease ends.
func (c *core) endSession(ctx context.Context, s *sessionState) error {
	if s == nil {
		return nil
	}
	c.awaitNew(ctx, s)
	over := func() bool { return s.link.Cause() != nil }
	if s.link.SessionID() == 0 || over() {
		return nil
	}
	unended := func(why error) error {
		return fmt.Errorf("client: close: session %s was not ended on the server, it expires within %v: %w",
			sessionID(s.link.SessionID()), s.link.Timeout(), why)
	}
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		switch {
		case over() && s.unburied(s.link.Cause()):
			return unended(s.link.Cause())
		case over():
			return nil // there is nothing left to end
		}
		err := s.link.CloseSession(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return unended(ctxerr.Ended(ctx))
		}
		if !errors.Is(err, wire.ErrNotConnected) {
			// The connection was cut in between, and the next try finds it disconnected or
			// reconnected. Or the server refuses, and is asked again after a pause.
			_ = ctxerr.Sleep(ctx, c.servers.Jitter(1)) // CloseSession sees the end
			continue
		}
		select {
		case <-changed:
		case <-s.link.Over():
		case <-ctx.Done():
		}
	}
}
