package seqqueue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
)

// WatchAfter is how long the node of a holder, or of a member that waits, counts as
// standing after it was seen: in the answer to its create, or in a list. From then on
// the node is watched. So a wait or a hold that is shorter costs the server nothing. If
// another client deletes the node before, the member notices at the end of this time at
// the latest.
const WatchAfter = 20 * time.Millisecond

// watchDeepAfter is the same for a member with several contenders ahead. It lists before
// its turn can come, which shows its own node. The watch only tells it sooner.
const watchDeepAfter = time.Second

// awaitFront waits until m is first, or has to list the directory.
func (m *Member) awaitFront(ctx context.Context) error {
	for {
		ahead, behind := m.awaited()
		if behind == nil {
			return nil
		}
		if m.Told != nil {
			m.Told(ahead, behind.Node.Name)
		}
		if err := m.awaitWake(ctx); errors.Is(err, ErrGone) {
			return err
		} else if err != nil {
			behind.Err = err
			return behind
		}
	}
}

// awaitWake waits for a change of the place of m, and looks after m's own node.
func (m *Member) awaitWake(ctx context.Context) error {
	due, stop := m.due(WatchAfter)
	defer stop()
	look := false
	select {
	case <-m.wake:
	case <-m.Session.Context().Done():
	case <-ctx.Done():
	case <-due:
		look = true
	}
	// Several may come at one instant.
	if err := m.Session.Err(); err != nil {
		return err
	}
	if err := ctxerr.Ended(ctx); err != nil {
		return err
	}
	if _, behind := m.awaited(); look && behind != nil {
		return m.lookAfter(ctx)
	}
	return nil
}

// due returns a channel that says when m's own node has to be read, some time after it was
// seen, and a function that ends that.
func (m *Member) due(after time.Duration) (<-chan struct{}, func()) {
	switch {
	case m.chain == nil || m.blind:
		return nil, func() {}
	case m.watch != nil:
		return m.watch.Done(), func() {}
	}
	due := make(chan struct{})
	t := time.AfterFunc(after-time.Since(m.seen), func() { close(due) })
	return due, func() { t.Stop() }
}

// lookAfter reads m's own node and watches it. It returns ErrGone if another client has
// deleted it. A node that may not be read is found in lists alone.
func (m *Member) lookAfter(ctx context.Context) error {
	at := time.Now()
	_, stat, w, err := m.Session.GetW(ctx, m.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && stat.EphemeralOwner != m.Session.ID():
		w.Stop()
		return ErrGone
	case errors.Is(err, zk.ErrNoAuth):
		m.blind = true
		m.chain.forget(m)
		return nil
	case err != nil:
		return cmp.Or(m.Session.Err(), err)
	}
	m.watch.Stop()
	m.watch, m.seen = w, at
	return nil
}

// stands reports whether m's own node is known to stand, without asking.
func (m *Member) stands() bool {
	return m.watched() || m.watch == nil && time.Since(m.seen) <= WatchAfter
}

// watched reports whether a watch on m's own node has not fired.
func (m *Member) watched() bool {
	if m.watch == nil {
		return false
	}
	select {
	case <-m.watch.Done():
		return false
	default:
		return true
	}
}

// succeed makes m the first, now that n is gone, if n was the only contender that blocked
// m. Numbers only grow while m's own node stands, which isFirst looks at. So no other
// contender has come ahead since. ClickHouse Keeper sends events of sessions that it ends
// with their connections, so there m lists.
func (m *Member) succeed(n Node) {
	if m.behind == 1 && m.inherits(n) && inner.Orderly(m.Session) {
		m.chain.listed(m)
	}
}

// inherits reports whether the end of n can be m's turn. A writer has to list behind a
// writer, which may have left a reader in its place.
func (m *Member) inherits(n Node) bool {
	return m.chain != nil && (m.q.key.shared == "" || m.shared || n.Tag == m.q.key.shared)
}

// isFirst reports whether m is first, as far as is known in the process. A member whose
// own node does not count as standing has to list.
func (m *Member) isFirst() bool {
	if m.chain == nil {
		return false
	}
	if !m.stands() {
		m.chain.forget(m)
	}
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	return m.state == first
}

// awaited says behind which member m waits in the process, and how many have to leave
// before it is m's turn. It returns nil if m does not wait there.
func (m *Member) awaited() (ahead int, behind *WaitError) {
	c := m.chain
	if c == nil {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.state != linked {
		return 0, nil
	}
	if m.wake == nil {
		m.wake = make(chan struct{}, 1)
	}
	front := m
	for ; front.state == linked; front = front.front {
		ahead++
	}
	if front.state == unknown {
		ahead += front.ahead
	}
	return ahead, m.q.waitError(m.front)
}

// follow waits behind ahead in the process, if that can be told.
func (m *Member) follow(ahead Node) bool {
	list := m.list
	m.list = nil
	return m.chain != nil && !m.blind && m.chain.follow(m, ahead.Name, m.behind, list)
}

// leave notes that no hold relies on m any more.
func (m *Member) leave() {
	if m != nil {
		m.chain.leave(m)
	}
}

// quit notes that m's node is deleted, or left to the background.
func (m *Member) quit() {
	if m == nil || m.chain == nil {
		return
	}
	m.watch.Stop()
	c := m.chain
	c.mu.Lock()
	used := m.uses
	m.uses = false
	delete(c.members, m.Node.Name)
	c.exit(m)
	c.mu.Unlock()
	if used {
		m.q.chains.done(c)
	}
}

// count makes m count in the window, which it has entered, and use the chain.
func (c *chain) count(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.counted, m.uses = true, true
}

// enough ends m's part in the window if others may share the lock with it.
func (c *chain) enough(m *Member) {
	if c == nil || !m.shared {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exit(m)
}

// waitError describes a member that is waited for, by its path in the namespace of q. The
// caller holds the mutex of the chain.
func (q *Queue) waitError(behind *Member) *WaitError {
	return &WaitError{
		Node: behind.Node, Path: q.Path(behind.Node), Own: true, Only: behind.state == first, Data: behind.data,
		Stat: &zk.Stat{EphemeralOwner: behind.Session.ID(), Czxid: behind.Czxid, Ctime: behind.since.UnixMilli()},
	}
}
