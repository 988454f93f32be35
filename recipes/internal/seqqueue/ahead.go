package seqqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

// WaitError says behind which contender a wait has ended, and what the waiter had
// read of its node when it began to watch it.
type WaitError struct {
	Node Node
	Path string
	Data []byte   // of the node
	Stat *zk.Stat // nil if the node was not read
	Own  bool     // the node is of the waiter's own session
	Only bool     // it alone blocked the waiter when the queue was listed last
	Err  error    // why the wait has ended
}

// Error names the node and the reason.
func (e *WaitError) Error() string { return "waiting behind " + e.Node.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *WaitError) Unwrap() error { return e.Err }

// watched is a contender ahead that the member watches.
type watched struct {
	Node
	inside.Watched
}

// gone waits until something happens to n, the nearest contender ahead. The caller then
// looks at the queue again. After an error gone says what it knows of n.
//
// With more contenders ahead, gone also watches the last but one. When that goes, n has
// most likely become the first, and gone lists while n holds. So the end of n is a grant,
// without a list behind it.
func (m *Member) gone(ctx context.Context, n Node) error {
	said := &WaitError{Node: n, Path: m.q.Path(n), Only: m.behind == 1}
	second, err := m.regard(ctx, n)
	if m.nearest != nil {
		said.Data, said.Stat = m.nearest.Data, m.nearest.Stat
		said.Own = said.Stat != nil && said.Stat.EphemeralOwner == m.Session.ID()
	}
	if err == nil {
		err = m.outwait(ctx, second)
		said.Only = m.behind == 1
	}
	if err == nil || errors.Is(err, ErrGone) {
		return err
	}
	said.Err = err
	return said
}

// regard watches n, unless m does so already, and the contender before n if its end is of
// use. It returns what it has read of that one.
func (m *Member) regard(ctx context.Context, n Node) (second inside.Watched, err error) {
	paths := make([]string, 0, 2)
	known := m.nearest != nil && m.nearest.Name == n.Name && m.nearest.Watch != nil && !fired(m.nearest.Watch)
	if !known {
		m.unwatch()
		paths = append(paths, m.q.Path(n))
	}
	early := m.behind > 1 && m.inherits(n)
	if early {
		paths = append(paths, m.q.Path(m.second))
	}
	if len(paths) == 0 {
		return second, nil
	}
	nodes, err := inner.Watch(ctx, m.Session, paths...)
	if err != nil {
		return second, err
	}
	if !known {
		m.nearest = &watched{n, nodes[0]}
	}
	if early {
		second = nodes[len(nodes)-1]
	}
	return second, nil
}

// outwait waits for the end of the nearest contender ahead. It also returns when another
// one may be the nearest.
func (m *Member) outwait(ctx context.Context, second inside.Watched) error {
	n := m.nearest
	if second.Watch != nil {
		defer second.Watch.Stop() // a waiter leaves nothing behind
	}
	switch {
	case errors.Is(n.Err, zk.ErrNoNode):
		m.succeed(n.Node)
		return nil
	case n.Err != nil:
		return m.goneUnread(ctx, n.Node)
	case errors.Is(second.Err, zk.ErrNoNode):
		return m.look(ctx)
	}
	var passed <-chan struct{}
	if second.Watch != nil {
		passed = second.Watch.Done()
	}
	if err := m.wait(ctx, n.Watch.Done(), passed); err != nil {
		return err
	}
	switch event, _ := n.Watch.Event(); {
	case event == zk.EventNodeDeleted:
		m.succeed(n.Node)
	case event == 0 && passed != nil && fired(second.Watch):
		return m.look(ctx)
	}
	return nil
}

// look lists the queue for the next call of Ahead. The list shows m's own node, and takes
// the place of a watch on it that has fired.
func (m *Member) look(ctx context.Context) error {
	at := time.Now()
	children, _, err := m.Session.Children(ctx, m.q.dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return ErrGone // the directory went, and the node with it
	case err != nil:
		return err
	case !slices.Contains(children, m.Node.Name), m.lost() == zk.EventNodeDeleted:
		return ErrGone
	}
	if m.lost() != 0 {
		m.watch = nil
	}
	m.children, m.seen = children, at
	return nil
}

// lost returns the event that has ended the watch on m's own node, 0 if there is no watch
// or it stands.
func (m *Member) lost() zk.EventType {
	if m.watch == nil {
		return 0
	}
	event, _ := m.watch.Event()
	return event
}

// wait waits until front or second is closed, and looks after m's own node meanwhile. It
// also returns when the connection was lost, which takes all watches: the caller lists.
// The data of m's own node may change, as a request to release is written there. A nil
// channel is not waited for.
func (m *Member) wait(ctx context.Context, front, second <-chan struct{}) error {
	after := WatchAfter
	if m.behind > 1 {
		after = watchDeepAfter
	}
	for {
		due, stop := m.due(after)
		look := false
		select {
		case <-front:
		case <-second:
		case <-ctx.Done():
			stop()
			return ctxerr.Ended(ctx)
		case <-due:
			look = m.lost() != zk.EventNotWatching
		}
		stop()
		if err := m.Session.Err(); err != nil || !look {
			return err
		}
		if err := m.lookAfter(ctx); err != nil {
			return err
		}
	}
}

// fired reports whether w is no watch any more.
func fired(w inside.OneShot) bool {
	if w == nil {
		return true
	}
	select {
	case <-w.Done():
		return true
	default:
		return false
	}
}

// unwatch ends the watch on the nearest contender ahead.
func (m *Member) unwatch() {
	if m.nearest != nil && m.nearest.Watch != nil {
		m.nearest.Watch.Stop()
	}
	m.nearest = nil
}

// goneUnread is gone for a contender whose node this client may not read, and so
// may not watch. A server wants READ for both, and sends no event about such a
// node. The list of the directory, which every contender may read, says as well
// that the node is gone. Watching it costs a list for each contender that comes
// or goes, so the queue logs a warning once. Curator's acquire fails here.
func (m *Member) goneUnread(ctx context.Context, n Node) error {
	if m.q.blind.CompareAndSwap(false, true) {
		inner.Logger(m.q.c).Warn("zookeeper: a contender ahead may not be read, so that the whole directory is watched instead",
			"node", m.q.Path(n), "remedy", "give every contender READ on the others' nodes")
	}
	children, _, w, err := m.Session.ChildrenW(ctx, m.q.dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return ErrGone // the directory went, and its own node with it
	case err != nil:
		return err
	case !slices.Contains(children, n.Name):
		m.children = children // says which contender is ahead now
		return nil
	default:
		return m.wait(ctx, w.Done(), nil)
	}
}
