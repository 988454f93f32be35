package client

import (
	"context"
	"slices"
	"time"

	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

// holding is an inside.Holding.
type holding struct {
	lease.Holding // guarded by the lease's mu

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
	if _, err := s.session.awaitProduct(ctx); err != nil { // it decides how long the session lives
		return nil, err
	}
	h.paths, h.Full = full, full
	if s.prefix != "" { // otherwise both are the same
		h.paths = slices.Clone(paths)
	}
	if err := h.prove(ctx); err != nil {
		return nil, err
	}
	s.session.lease.add(h)
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
	if !s.lease.expire() { // otherwise the session has time left as well: it ends later
		s.expire()
	}
	if err := s.over(); err != nil {
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

func (h *holding) Done() { h.s.session.lease.remove(h) }
