package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

func (c *core) shutDown(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	s := c.current
	c.broadcast()
	c.mu.Unlock()

	c.watches.End(ErrClosed)
	if s != nil {
		s.retire()
		c.parents.Leave(ctx, s)
	}
	err := c.endSession(ctx, s)
	c.cancel(ErrClosed) // no next session
	if s != nil {
		s.Link().End(ErrClosed)
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
	if met, _ := c.servers.Reached(); met == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, newMoment)
	defer cancel()
	s.Link().AwaitNew(ctx)
}

// endSession asks a server to end s. It asks again after every reconnection, until
// ctx or the session's own lease ends.
func (c *core) endSession(ctx context.Context, s *sessionState) error {
	if s == nil {
		return nil
	}
	c.awaitNew(ctx, s)
	over := func() bool { return s.Link().Cause() != nil }
	if s.ID() == 0 || over() {
		return nil
	}
	unended := func(why error) error {
		return fmt.Errorf("client: close: session %s was not ended on the server, it expires within %v: %w",
			session.ID(s.ID()), s.Link().Timeout(), why)
	}
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		switch {
		case over() && s.Unburiable(s.Link().Cause()):
			return unended(s.Link().Cause())
		case over():
			return nil // there is nothing left to end
		}
		err := s.Link().CloseSession(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return unended(ctxerr.Ended(ctx))
		}
		// No server lets this client end it: one says so, or has said nothing else before.
		if errors.Is(err, wire.ServerError(fate.AuthRequired)) {
			return unended(fate.AuthRequired)
		}
		if why := s.Barred(); why != nil {
			return unended(why)
		}
		if !errors.Is(err, wire.ErrNotConnected) {
			// The connection was cut in between, and the next try finds it disconnected or
			// reconnected. Or the server refuses, and is asked again after a pause.
			_ = ctxerr.Sleep(ctx, c.servers.Jitter(1)) // CloseSession sees the end
			continue
		}
		select {
		case <-changed:
		case <-s.Link().Over():
		case <-ctx.Done():
		}
	}
}
