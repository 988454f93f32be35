package seqqueue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
)

// Ahead returns the nearest contender that blocks, nil if none does. It uses
// the list that came with the node the first time and asks for a new one
// later.
func (m *Member) Ahead(ctx context.Context, blocks Blocks) (*Node, error) {
	children := m.children
	v := judge(m.q.tags, m.Node, children, blocks)
	m.children = nil
	if !v.listed { // no list yet, or one that was answered before the create
		var err error
		children, _, err = m.Session.Children(ctx, m.q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, ErrGone // the directory went, and the node with it
		}
		if err != nil {
			return nil, err
		}
		if v = judge(m.q.tags, m.Node, children, blocks); !v.listed {
			return nil, ErrGone
		}
	}
	if err := m.q.Foreign(v.foreign); err != nil {
		return nil, err
	}
	switch {
	case v.wrapped:
		return nil, ErrExhausted
	case v.blocked:
		if m.Told != nil {
			m.Told(upTo(m.q.tags, v.nearest, children), v.nearest.Name)
		}
		nearest := v.nearest // not all of v, also when nobody blocks
		return &nearest, nil
	}
	if err := m.Session.Err(); err != nil {
		return nil, err // first in a line that the session no longer stands in
	}
	if m.Told != nil {
		m.Told(0, "")
	}
	return nil, ctxerr.Ended(ctx)
}
