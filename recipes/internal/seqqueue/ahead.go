// The wait behind a contender that does not hand over in the process. The member watches the
// nearest contender ahead that blocks it. It also watches the contender before that one, so
// that it can list early.

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

// awaitAhead waits until something happens to the nearest contender ahead that blocks. An
// error is a *WaitError about that, or ErrGone.
//
// With more contenders ahead, awaitAhead also watches the one before. When that goes, the
// nearest has most likely become the first, and m lists while it holds. So the end of the
// nearest is a grant, without a list behind it.
func (m *Member) awaitAhead(ctx context.Context, a action) (event, error) {
	second, err := m.watchAhead(ctx, a)
	var ev event
	if err == nil {
		ev, err = m.awaitEvent(ctx, second)
	}
	return ev, m.waitedFor(a.nearest, err)
}

// watchAhead watches the nearest contender, unless m does so already. It also watches the
// contender before that, if its end is of use. second is what it has read of that contender.
func (m *Member) watchAhead(ctx context.Context, a action) (second inside.Watched, err error) {
	paths := make([]string, 0, 2)
	known := m.nearest != nil && m.nearest.Name == a.nearest.Name && m.nearest.Watch != nil && !fired(m.nearest.Watch)
	if !known {
		m.unwatch()
		paths = append(paths, m.q.Path(a.nearest))
	}
	early := a.second.Name != ""
	if early {
		paths = append(paths, m.q.Path(a.second))
	}
	if len(paths) == 0 {
		return second, nil
	}
	nodes, err := inner.Watch(ctx, m.Session, paths...)
	if err != nil {
		return second, err
	}
	if !known {
		m.nearest = &watchedNode{a.nearest, nodes[0]}
	}
	if early {
		second = nodes[len(nodes)-1]
	}
	return second, nil
}

// awaitEvent waits for the end of the nearest contender ahead. It also returns when another
// contender may be the nearest.
func (m *Member) awaitEvent(ctx context.Context, second inside.Watched) (event, error) {
	n := m.nearest
	if second.Watch != nil {
		defer second.Watch.Stop() // a waiter leaves nothing behind
	}
	gone := func() event {
		return event{news: nearestEnd, nearest: n.Node, orderly: inner.Orderly(m.Session)}
	}
	switch {
	case errors.Is(n.Err, zk.ErrNoNode):
		return gone(), nil
	case n.Err != nil:
		return event{}, m.awaitUnread(ctx, n.Node)
	case errors.Is(second.Err, zk.ErrNoNode):
		return event{news: secondEnd}, nil
	}
	var passed <-chan struct{}
	if second.Watch != nil {
		passed = second.Watch.Done()
	}
	if err := m.wait(ctx, n.Watch.Done(), passed); err != nil {
		return event{}, err
	}
	switch kind, _ := n.Watch.Event(); {
	case kind == zk.EventNodeDeleted:
		return gone(), nil
	case kind == 0 && passed != nil && fired(second.Watch):
		return event{news: secondEnd}, nil
	}
	return event{}, nil
}

// listAgain lists the queue for the next call of Ahead. The list shows m's own node. So if
// the watch on that node has fired, no other is needed yet.
func (m *Member) listAgain(ctx context.Context) error {
	at := time.Now()
	children, err := m.listBoth(ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return ErrGone // the directory went, and the node with it
	case err != nil:
		return err
	case !slices.Contains(children, m.Node.Name), m.ownEvent() == zk.EventNodeDeleted:
		return ErrGone
	}
	if m.ownEvent() != 0 {
		m.watch = nil
	}
	m.children, m.seen = children, at
	return nil
}

// listBoth lists the queue and, behind it, its other directory, if it has one.
func (m *Member) listBoth(ctx context.Context) (children []string, err error) {
	if m.q.other == "" {
		children, _, err = m.Session.Children(ctx, m.q.dir)
		return children, err
	}
	lists, err := inner.Lists(ctx, m.Session, m.q.dir, m.q.other)
	if err != nil {
		return nil, err
	}
	m.other = nil
	if m.shownFirst(lists[0]) {
		m.other = lists[1]
	}
	return lists[0], nil
}

// shownFirst reports whether a list of the queue shows m as the first. No other contender has had
// the turn since, so what was listed right behind it is good. That m is the first by now proves
// nothing: the contender ahead may have had the turn after the list.
func (m *Member) shownFirst(children []string) bool {
	v := judge(m.q.tags, m.Node, children, AllBlock)
	return v.listed && !v.blocked
}

// ownEvent returns the event that has ended the watch on m's own node. It returns 0 if there
// is no watch, or if the watch has not fired.
func (m *Member) ownEvent() zk.EventType {
	if m.watch == nil {
		return 0
	}
	event, _ := m.watch.Event()
	return event
}

// wait waits until nearest or second is closed, and looks after m's own node meanwhile. It
// also returns when the connection was lost, and all watches with it: the caller lists.
// The data of m's own node may change, as a request to release is written there. A nil
// channel is not waited for.
func (m *Member) wait(ctx context.Context, nearest, second <-chan struct{}) error {
	after := WatchAfter
	switch {
	case m.q.watchesOwn:
		after = 0
	case m.blockers > 1:
		after = watchDeepAfter
	}
	for {
		due, stop := m.due(after)
		read := false
		select {
		case <-nearest:
		case <-second:
		case <-ctx.Done():
			stop()
			return ctxerr.Ended(ctx)
		case <-due:
			read = m.ownEvent() != zk.EventNotWatching
		}
		stop()
		if err := m.Session.Err(); err != nil || !read {
			return err
		}
		if err := m.watchOwn(ctx); err != nil {
			return err
		}
	}
}

// fired reports whether w has fired, or is nil.
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

// awaitUnread is awaitEvent for a contender whose node this client may not read. A server
// wants READ for a watch too, and sends no event about such a node. But every contender may
// list the directory, and the list shows when the node is gone. A watch on the directory
// costs a list for each contender that comes or goes, so the queue logs a warning once.
// Curator's acquire fails here.
func (m *Member) awaitUnread(ctx context.Context, n Node) error {
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
