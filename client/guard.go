package client

import (
	"context"
	"time"

	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// guard is an inside.Guard: a watch of getData or of getChildren, which leave nothing
// behind on a node that does not exist.
type guard struct {
	hub *hub
	on  *sharedWatch
}

// orderly is inside.Functions.Orderly.
func orderly(s *Session) bool { return s.session.knownProduct() == apacheZooKeeper }

// setGuard is inside.Functions.Guard.
func setGuard(ctx context.Context, s *Session, path string) inside.Guard {
	full, err := s.full(path)
	if err != nil || !orderly(s) {
		return nil
	}
	_, w, err := s.session.watchedOne(ctx, wire.OpGetData, full)
	if err != nil {
		return nil
	}
	return guard{s.session.hub, w}
}

// setGuardOfChildren is inside.Functions.GuardChildren.
func setGuardOfChildren(ctx context.Context, s *Session, path string) ([]string, inside.Guard) {
	full, err := s.full(path)
	if err != nil || !orderly(s) {
		return nil, nil
	}
	x, w, err := s.session.watchedOne(ctx, wire.OpGetChildren, full)
	if err != nil {
		return nil, nil
	}
	return names(x), guard{s.session.hub, w}
}

// Holds compares the numbers of connections, and each session counts its own from 1. The
// session is over before the next one begins, and its hub ends a moment later.
func (g guard) Holds(connection uint64) bool {
	h := g.hub
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.s.ctx.Err() == nil && g.on.conn == connection && connection != 0 && h.all.table.one(g.on.at).on == g.on
}

func (g guard) Stands() bool { return !g.on.fired() }

func (g guard) Stop() { g.hub.giveUp(g.on) }

func (g guard) Resume() (stands bool) {
	g.hub.change(func(t *watchTable, _ time.Time) { stands = t.resume(g.on) })
	return stands
}
