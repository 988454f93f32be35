package client

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// Session is one session of a [Client]. Its operations run in this session or not at
// all: once it is over they fail with an error that matches [ErrSessionLost] or
// [ErrClosed]. It is safe for concurrent use.
type Session struct {
	ops
}

// ID is the session id, the ephemeralOwner of its ephemeral nodes.
func (s *Session) ID() int64 { return s.session.ID() }

// Timeout is the least timeout that a server granted this session.
func (s *Session) Timeout() time.Duration { return s.session.Link().Timeout() }

// Context ends with the session. Its cause matches [ErrSessionLost] or
// [ErrClosed].
func (s *Session) Context() context.Context { return s.session.Context() }

// Err is nil while the session can be relied upon, and otherwise says why it is over.
// It is over at the latest one timeout after the newest answered request was sent,
// whether a server is reachable or not. The time for which the machine was suspended
// counts.
func (s *Session) Err() error { return s.session.Err() }

// inNamespace is inside.Functions.In.
func inNamespace(s *Session, c *Client) (*Session, error) {
	if c == nil || c.core != s.core {
		return nil, errStranger
	}
	return c.in(s.session), nil
}

var errStranger = errors.New("client: a session has only the paths of the client that it came from, and of that client's namespaces")

// Session waits until the client is connected and returns its session. It waits as an
// operation does: within ctx, and as long as a retry policy that gives up by itself
// allows. The error is an [*OpError]. It matches the error of ctx, [ErrNotConnected]
// with the reason for each server, or [ErrClosed].
func (c *Client) Session(ctx context.Context) (*Session, error) {
	patience := c.patience()
	s, err := c.core.await(ctx, nil, &patience)
	if err != nil {
		return nil, &OpError{Op: sessionOp, Outcome: OutcomeNeverSent, Err: err}
	}
	return c.in(s), nil
}

// in returns s with the namespace and the policy of c.
func (c *Client) in(s *sessionState) *Session {
	in := &Session{c.ops}
	in.session = s
	return in
}

// fullPaths appends paths, as the server knows them, to full.
func (s *Session) fullPaths(full, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, &OpError{Op: "confirm", Path: "(none)", Outcome: OutcomeNeverSent, Err: ErrInvalidPath}
	}
	for _, p := range paths {
		f, err := s.full(p)
		if err != nil {
			return nil, &OpError{Op: "confirm", Path: p, Outcome: OutcomeNeverSent, Err: err}
		}
		full = append(full, f)
	}
	return full, nil
}

// confirm checks paths, in as many transactions as their length needs.
func (s *Session) confirm(ctx context.Context, paths, full []string) error {
	return s.do(ctx, "confirm", paths[0], reads, func(ctx context.Context, t try) error {
		for begin := 0; begin < len(full); {
			end := begin + s.core.checkable(full[begin:])
			parts := make([]Op, 0, end-begin)
			for _, path := range paths[begin:end] {
				parts = append(parts, CheckOp(path, AnyVersion))
			}
			if err := t.s.transact(ctx, parts, checks(full[begin:end])); err != nil {
				if missing := (*MultiError)(nil); errors.As(err, &missing) {
					missing.Index += begin
				}
				return err
			}
			begin = end
		}
		return nil
	})
}

// checks is a transaction that checks that the nodes exist. It takes a quorum even if
// one does not.
func checks(full []string) *wire.Exchange {
	reqs := make([]wire.Request, len(full))
	for i, path := range full {
		reqs[i] = wire.Request{Op: wire.OpCheck, Path: path, Version: AnyVersion}
	}
	x := transaction(reqs)
	x.Urgent = true // a lease may depend on it
	return x
}

// checkable is how many of the nodes fit into one transaction, at least one.
func (c *core) checkable(full []string) int {
	const each, around = 32, 64 // more than a check and a transaction have beside paths
	size := around
	for i, path := range full {
		if size += each + len(path); i > 0 && size > c.cfg.maxRequest {
			return i
		}
	}
	return len(full)
}
