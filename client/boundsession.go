package client

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// Session is one session of a [Client]. Its operations run in this session or
// not at all: once it is over they fail with an error that matches
// [ErrSessionLost] or [ErrClosed]. It is safe for concurrent use.
type Session struct {
	ops
}

// ID is the session id, the ephemeralOwner of its ephemeral nodes.
func (s *Session) ID() int64 { return s.bound.link.SessionID() }

// Timeout is the least timeout that a server granted this session.
func (s *Session) Timeout() time.Duration { return s.bound.link.Timeout() }

// Context ends with the session. Its cause matches [ErrSessionLost] or
// [ErrClosed].
func (s *Session) Context() context.Context { return s.bound.ctx }

// Err is nil while the session can be relied upon, and says why it is over
// otherwise. It is over at the latest when its timeout has passed since the
// send time of the newest answered request, reachable server or not.
func (s *Session) Err() error { return s.bound.err() }

// In returns the same session with the paths of c, which must have the same
// Root as the client that s came from; nil otherwise.
func (s *Session) In(c *Client) *Session {
	if c.core != s.core {
		return nil
	}
	return &Session{ops{core: c.core, prefix: c.prefix, bound: s.bound}}
}

// Session waits until the client is connected and returns its session.
// The error is that of ctx, joined with why the servers are not reached, or
// [ErrClosed].
func (c *Client) Session(ctx context.Context) (*Session, error) {
	s, err := c.core.connected(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{ops{core: c.core, prefix: c.prefix, bound: s}}, nil
}

// Deadline returns the instant before which no other client can see this
// session end, by what is known now: proofs that arrive later move it. It is
// zero before the first. It is worth what the [LeasePolicy] assumes, and
// counts the time for which this machine was suspended.
//
// While nothing is held nothing is proved, and it may lie in the past although
// the session lives.
func (s *Session) Deadline() time.Time {
	t := s.bound.lease.standing()
	if t.proof.Kind == wire.NoProof {
		return time.Time{}
	}
	return t.deadline()
}

// Jeopardy returns a channel that is closed while the connection is in doubt:
// it is down, or a heartbeat was not answered in time. Once the doubt is over
// Jeopardy returns a new one.
func (s *Session) Jeopardy() <-chan struct{} {
	l := s.bound.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jeopardy
}

// Confirm commits a transaction that checks that the nodes at paths exist,
// which proves this session as well. It is repeated by the retry policy. The
// error matches zk.ErrNoNode if one does not exist.
func (s *Session) Confirm(ctx context.Context, paths ...string) error {
	full, err := s.fullPaths(paths)
	if err != nil {
		return err
	}
	return s.confirm(ctx, paths, full)
}

func (s *Session) fullPaths(paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, &OpError{Op: "confirm", Path: "(none)", Outcome: OutcomeNeverSent, Err: ErrInvalidPath}
	}
	full := make([]string, len(paths))
	for i, p := range paths {
		f, err := s.full(p)
		if err != nil {
			return nil, &OpError{Op: "confirm", Path: p, Outcome: OutcomeNeverSent, Err: err}
		}
		full[i] = f
	}
	return full, nil
}

func (s *Session) confirm(ctx context.Context, paths, full []string) error {
	return s.do(ctx, "confirm", paths[0], reads, func(ctx context.Context, t try) error {
		failed, why, err := t.s.link.Check(ctx, full...)
		switch {
		case errors.Is(err, wire.ErrNotConnected):
			return &fault{err, OutcomeNeverSent}
		case err != nil:
			return t.s.fault(err)
		case failed < 0:
			return nil
		}
		err = answerOf(why)
		t.s.ifExpired(err)
		return &fault{&MultiError{Index: failed, Op: "check", Path: paths[failed], Err: err}, OutcomeRefused}
	})
}
