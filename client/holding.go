package client

import (
	"context"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
)

// Holding is the reliance of one hold on nodes of a [Session] that nobody else
// may see go unnoticed. While there is one, the session is proved by
// heartbeats. It is safe for concurrent use.
type Holding struct {
	s     *Session
	lost  func(error)
	paths []string
	full  []string // as the server knows them

	// Guarded by the lease's mu.
	cause error     // why it ended
	due   time.Time // if it ended with the lease: when its nodes are in the way
}

// Hold begins to rely on the nodes at paths, which this session has made. If
// the newest proof is old it waits for another, within ctx; a session that has
// just made the nodes needs none.
//
// lost is called once if the holding ends before [Holding.Done]: with an error
// that matches [ErrLeaseExpired] at the latest when the deadline less the
// safety margin has come, or zk.ErrNoNode when a heartbeat found a node
// missing. It must not block. It is not called when the session ends, for
// which there is [Session.Context]. If Hold fails lost is not called; the
// error then says why there is no proof, matches zk.ErrNoNode if a node does
// not exist, or [ErrUnsafeTimeout].
//
// After the deadline of a holding that ended with ErrLeaseExpired its nodes are
// in everybody's way. If it is not given up by then, with Done, the nodes are
// deleted in the background, and the session goes on. If the session was not
// proved again by then, it is ended instead, and all that it holds with it.
// Deleting may take several tries, so the paths must be names that nobody will
// use again, such as those of sequential or protected nodes.
func (s *Session) Hold(ctx context.Context, lost func(error), paths ...string) (*Holding, error) {
	full, err := s.fullPaths(paths)
	if err != nil {
		return nil, err
	}
	h := &Holding{s: s, lost: lost, paths: slices.Clone(paths), full: full}
	t, err := h.prove(ctx)
	if err != nil {
		return nil, err
	}
	s.bound.lease.add(h, t)
	return h, nil
}

// prove waits until the lease has some time left, and returns how it stands.
func (h *Holding) prove(ctx context.Context) (standing, error) {
	l := h.s.bound.lease
	for {
		t := l.standing()
		if t.left >= t.beat/2 {
			return t, nil
		}
		if err := l.policy.check(t.timeout); err != nil {
			return t, err
		}
		if err := h.s.confirm(ctx, h.paths, h.full); err != nil {
			return t, err
		}
		if t = l.standing(); t.left >= t.beat/2 {
			return t, nil
		}
		// The server has yet to tell the leader of a sign of life that is
		// young enough.
		pause := time.NewTimer(t.beat / 4)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return t, ctxerr.Ended(ctx)
		}
	}
}

// Err is nil while the nodes can be relied upon. It looks at the clocks
// itself, so that a late timer cannot make a lost lock look held.
func (h *Holding) Err() error {
	s := h.s.bound
	if err := s.err(); err != nil {
		return err
	}
	s.lease.expire()
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	return h.cause
}

// Done gives the holding up. It may be called more than once.
func (h *Holding) Done() { h.s.bound.lease.remove(h) }
