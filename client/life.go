package client

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// owe makes what the client owes the servers.
func (c *core) owe() {
	life := duties.Life{
		Context: c.ctx, Go: c.begin, Timeout: c.servers.Timeout, Journal: c.journal,
		Await: func(ctx context.Context) (duties.Session, error) {
			s, err := c.await(ctx, nil, nil)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
	}
	c.parents = duties.NewParents(life)
	c.graves = duties.NewGraves(duties.GravesConfig{Life: life, Server: c.reachable, Dial: c.servers.Dial, Pause: c.servers.Jitter})
	c.remover = duties.NewRemover(duties.RemoverConfig{
		Life: life, Tell: c.tellRemoval,
		Policy:  func() retry.Policy { return retry.Default().WithRand(c.cfg.rand).WithCap(c.servers.Timeout() / 3) },
		Lasting: func(err error) bool { return fateOf(err) == OutcomeRefused && !passing(err) },
		Closed:  func(err error) bool { return errors.Is(err, ErrClosed) },
	})
}

// begin starts a goroutine that Close waits for, unless the client is being closed.
func (c *core) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.wg.Go(f)
	return true
}

// reachable is the server that accepted the newest session last, and whether it makes sessions.
func (c *core) reachable() (server string, makes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server, c.made
}

// Context ends with the session.
func (s *sessionState) Context() context.Context { return s.ctx }

// Do sends requests, in one write, and waits for the answers.
func (s *sessionState) Do(ctx context.Context, xs ...*wire.Exchange) error {
	return s.exchange(ctx, xs...)
}

// Outcome is outcome, for duties.
func (s *sessionState) Outcome(ctx context.Context, x *wire.Exchange, err error) error {
	return s.outcome(ctx, x, err)
}

// deleteInBackground is inside.Functions.DeleteInBackground.
func deleteInBackground(s *Session, path string, gone func()) error {
	full, err := s.full(path)
	if err != nil {
		call(gone)
		return &OpError{Op: "delete", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	s.core.remover.Add(&duties.Removal{Owner: s.session, What: full, Full: []string{full}, Gone: gone})
	return nil
}

// ClickHouse Keeper keeps a session whose connection was lost until its timeout has
// passed. No client can come back to end it: Keeper gives it another session. So the
// nodes of the lost session would be in the way of other clients. The client deletes
// them one by one in a later session.

// wallSteps is how much later than its timeout Keeper may end a session: it looks
// every 500 ms.
const wallSteps = time.Second

// isGone reports whether cause says that the servers have ended the session. A
// refused handshake does not say so. A leader that was deposed and does not know it
// refuses sessions that live on under the next leader.
func isGone(cause error) bool {
	return errors.Is(cause, wire.ErrClosed) || errors.Is(cause, ErrClosed) || errors.Is(cause, zk.ErrSessionExpired)
}

// unburied reports whether a server may keep the session after that end, and does not
// end it for this client.
func (s *sessionState) unburied(cause error) bool {
	return s.knownProduct() == clickHouseKeeper && !isGone(cause)
}

// linger has the nodes deleted that were held in s, which is over. They are deleted
// at the deadline that was promised to their holders.
func (s *sessionState) linger() {
	s.mu.Lock()
	s.kept = time.Now().Add(s.link.Timeout() + wallSteps)
	s.mu.Unlock()
	due := s.lease.promised()
	for _, path := range s.lease.nodes() {
		s.core.remover.Add(&duties.Removal{Owner: s, What: path, Full: []string{path}, Due: due})
	}
}

// Standing is what is known of the session's end. It lingers while a server may keep it.
func (s *sessionState) Standing() duties.Standing {
	if s.over() == nil {
		return duties.Stands
	}
	if cause := s.link.Cause(); cause == nil || !s.unburied(cause) {
		return duties.Over
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.IsZero() || time.Now().Before(s.kept) {
		return duties.Lingers
	}
	return duties.Over
}
