// The wait behind a member of the same session, which hands over in the process. Meanwhile the
// waiting member looks after its own node. ahead.go has the wait behind other contenders.

package seqqueue

import (
	"context"
	"errors"

	"github.com/docent-go/docent/internal/ctxerr"
)

// awaitFront waits behind a front, until m is woken or its own node was looked after.
func (m *Member) awaitFront(ctx context.Context, a action) error {
	if m.Told != nil {
		m.Told(a.ahead, a.front.Node.Name)
	}
	err := m.awaitChange(ctx)
	if err == nil || errors.Is(err, ErrGone) {
		return err
	}
	a.front.Err = err
	return a.front
}

// awaitChange waits for a change of m's state, and looks after m's own node.
func (m *Member) awaitChange(ctx context.Context) error {
	after := WatchAfter
	if m.gated() {
		after = watchDeepAfter
	}
	due, stop := m.due(after)
	defer stop()
	read := false
	select {
	case <-m.woken:
	case <-m.Session.Context().Done():
	case <-ctx.Done():
	case <-due:
		read = true
	}
	// Several of these may come at one instant.
	if err := m.Session.Err(); err != nil {
		return err
	}
	if err := ctxerr.Ended(ctx); err != nil {
		return err
	}
	if _, behind := m.awaited(); read && behind != nil {
		return m.watchOwn(ctx)
	}
	return nil
}

// behindOver reports whether the nearest contender that blocks m by its list is a member that
// is over, so that m is the first.
func (m *Member) behindOver(a action) bool {
	if _, front := m.awaited(); front != nil {
		return false // its front is not over
	}
	return m.follow(a.nearest, a.list) && m.isFirst(true)
}
