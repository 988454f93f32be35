package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

// ID is the session id, the ephemeralOwner of its ephemeral nodes.
func (s *Session) ID() int64 { return s.session.ID() }

// Timeout is the least timeout that a server granted this session.
func (s *Session) Timeout() time.Duration { return s.session.Link().Timeout() }

// ReadOnly reports whether the server of the newest connection is cut off from its quorum, see
// [WithReadOnly]. What it shows may be arbitrarily old.
func (s *Session) ReadOnly() bool { return s.session.cutOff.Load() }

// Context ends with the session. Its cause matches [ErrSessionLost] or
// [ErrClosed].
func (s *Session) Context() context.Context { return s.session.Context() }

// Err is nil while the session can be relied upon, and otherwise says why it is over.
// It is over at the latest one timeout after the newest answered request was sent,
// whether a server is reachable or not. The time for which the machine was suspended
// counts.
func (s *Session) Err() error { return s.session.Err() }

// sessionIn is inside.Functions.In.
func sessionIn(s *Session, c *Client) (*Session, error) {
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
			end := begin + s.core.cfg.checkable(full[begin:])
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

// holding is an inside.Holding.
type holding struct {
	lease.Holding // guarded by leaseKeeper.mu

	s     *Session
	paths []string
	one   [1]string // backs the full paths
}

// hold is inside.Functions.Hold.
func hold(ctx context.Context, s *Session, lost func(error), paths ...string) (inside.Holding, error) {
	h := &holding{Holding: lease.Holding{Lost: lost}, s: s}
	full, err := s.fullPaths(h.one[:0], paths)
	if err != nil {
		return nil, err
	}
	if _, err := s.session.AwaitProduct(ctx); err != nil { // it decides how long the session lives
		return nil, err
	}
	h.paths, h.Full = full, full
	if s.prefix != "" { // otherwise both are the same
		h.paths = slices.Clone(paths)
	}
	if err := h.prove(ctx); err != nil {
		return nil, err
	}
	s.session.lease.add(&h.Holding)
	return h, nil
}

// prove waits until the lease has some time left.
func (h *holding) prove(ctx context.Context) error {
	l := h.s.session.lease
	for {
		t := l.state()
		if t.Left >= t.Beat/2 {
			return nil
		}
		if err := l.m.Policy().Check(t.Timeout); err != nil {
			return err
		}
		if err := h.s.confirm(ctx, h.paths, h.Full); err != nil {
			return err
		}
		if t = l.state(); t.Left >= t.Beat/2 {
			return nil
		}
		// The server has not yet told the leader of a sign of life that is young
		// enough.
		if ctxerr.Sleep(ctx, t.Beat/4) != nil {
			return ctxerr.Ended(ctx)
		}
	}
}

func (h *holding) Err() error {
	s := h.s.session
	over := s.Over
	if !s.lease.expire() { // while the lease stands the session has time left too
		over = s.Err
	}
	if err := over(); err != nil {
		return err
	}
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	return h.Cause
}

func (h *holding) Deadline() time.Time {
	return h.s.session.lease.state().Deadline() // there is a proof, or it would not be held
}

func (h *holding) Jeopardy() <-chan struct{} {
	l := h.s.session.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jeopardy
}

func (h *holding) Confirm(ctx context.Context) error { return h.s.confirm(ctx, h.paths, h.Full) }

func (h *holding) Done() { h.s.session.lease.leave(&h.Holding) }
