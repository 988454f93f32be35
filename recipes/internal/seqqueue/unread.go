package seqqueue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// goneUnread is gone for a contender whose node this client may not read, and
// so may not watch: a server takes READ for both, and sends no event about such
// a node. The list of the directory, which every contender may read, says as
// well that the node is gone. Watching it costs a list for each contender that
// comes or goes, so the queue logs a warning once. Curator's acquire fails here.
func (m *Member) goneUnread(ctx context.Context, n Node) error {
	if m.q.blind.CompareAndSwap(false, true) {
		inner.Logger(m.q.c).Warn("zookeeper: a contender ahead may not be read, so that the whole directory is watched instead",
			"node", m.q.Path(n), "remedy", "give all who contend READ on each other's nodes")
	}
	children, _, w, err := m.Session.ChildrenW(ctx, m.q.dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return ErrGone // the directory went, and the own node with it
	case err != nil:
		return err
	case !slices.Contains(children, n.Name):
		m.children = children // says who is ahead now
		return nil
	default:
		return m.wait(ctx, w)
	}
}
