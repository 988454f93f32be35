package client

import (
	"context"
	"errors"

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

// Standing is what is known of the session's end. A server may keep a session that is over.
func (s *sessionState) Standing() duties.Standing {
	switch {
	case s.lingers():
		return duties.Lingers
	case s.over() != nil:
		return duties.Over
	default:
		return duties.Stands
	}
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
