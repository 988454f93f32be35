// The wait behind a member of the same session, which hands over in the process. Meanwhile the
// waiting member looks after its own node. ahead.go has the wait behind other contenders.

package seqqueue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
)

// WatchAfter is how long the node of a holder, or of a member that waits, counts as standing
// after it was seen. The answer to its create shows the node, and so does a list. After that
// time the node is watched. So a shorter wait or hold costs the server nothing. If another client deletes the
// node before it is watched, the member notices at the end of this time.
const WatchAfter = 20 * time.Millisecond

// watchDeepAfter is the same for a member with several contenders ahead. Such a member lists
// before its turn can come, and the list shows its own node. The watch only tells it sooner.
// So it is for a member of a gate, whose node is checked by the transaction that grants it.
const watchDeepAfter = time.Second

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

// due returns a channel that is closed when m's own node has to be read. That is when its
// watch has fired or, without a watch, some time after the node was seen. The caller ends the
// wait with stop.
func (m *Member) due(after time.Duration) (read <-chan struct{}, stop func()) {
	switch {
	case m.chain == nil && !m.q.watchesOwn || m.blind:
		return nil, func() {}
	case m.watch != nil:
		return m.watch.Done(), func() {}
	}
	due := make(chan struct{})
	t := time.AfterFunc(after-time.Since(m.seen), func() { close(due) })
	return due, func() { t.Stop() }
}

// watchOwn reads m's own node and watches it. If another client has deleted the node, it
// returns ErrGone. If m may not read its own node, only lists show that node.
func (m *Member) watchOwn(ctx context.Context) error {
	m.suspect(ctx)
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
	return m.gated() || m.watched() || m.watch == nil && time.Since(m.seen) <= WatchAfter
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

// aheadGone is called when n is gone. If n was the only contender that blocked m, m is the
// first. Numbers only grow while m's own node stands, which isFirst checks. So no other
// contender has come ahead since. ClickHouse Keeper ends sessions with their connections, and
// sends events of that. So m lists there.
func (m *Member) aheadGone(n Node, orderly bool) {
	if m.blockers == 1 && m.endIsTurn(n) && orderly {
		m.chain.listed(m)
	}
}

// gated reports whether a transaction of the caller checks m's own node; see [Queue.Gate].
func (m *Member) gated() bool { return m.chain != nil && m.chain.key.gate }

// endIsTurn reports whether the end of n can be m's turn. A writer behind a writer has to
// list: by a downgrade the writer ahead may have left a reader.
func (m *Member) endIsTurn(n Node) bool {
	return m.chain != nil && (m.q.key.shared == "" || m.shared || n.Tag == m.q.key.shared)
}

// isFirst reports whether m is first, as far as is known in the process. A member whose
// own node does not count as standing has to list.
func (m *Member) isFirst(stands bool) bool {
	if m.chain == nil {
		return false
	}
	if !stands {
		m.chain.forget(m)
	}
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	return m.state == first || m.state == over && m.gated() // granted
}

// made is called as the answer to the create is read, in the order of the answers. What has
// been answered before was run before, and so before the lists that follow the create.
func (m *Member) made(path string, connection uint64) {
	c := m.chain
	c.made(m, path, connection)
	c.mu.Lock()
	defer c.mu.Unlock()
	m.firstMade = m.state == first
}

// firstAtOnce reports whether m was the first when the answer to its create was read.
func (m *Member) firstAtOnce() bool {
	if m.chain == nil {
		return false
	}
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	return m.firstMade && m.state == first
}

// awaited says behind which member m waits in the process. ahead is how many contenders have
// to leave before it is m's turn. If m does not wait in the process, behind is nil.
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
	if m.woken == nil {
		m.woken = make(chan struct{}, 1)
	}
	front := m
	for ; front.state == linked; front = front.front {
		ahead++
	}
	if front.state == unknown {
		ahead += front.blockers
	}
	return ahead, m.q.waitError(m.front)
}

// follow reports whether m can wait in the process behind ahead, the nearest contender that
// blocks m. list has shown it.
func (m *Member) follow(ahead Node, list []string) bool {
	return m.chain != nil && !m.blind && m.chain.follow(m, ahead.Name, m.blockers, list)
}

// behindOver reports whether the nearest contender that blocks m by its list is a member that
// is over, so that m is the first.
func (m *Member) behindOver(a action) bool {
	if _, front := m.awaited(); front != nil {
		return false // its front is not over
	}
	return m.follow(a.nearest, a.list) && m.isFirst(true)
}

// leave notes that no hold relies on m any more.
func (m *Member) leave() {
	if m != nil {
		m.chain.leave(m)
	}
}

// breakOff notes that the hold of m was lost, or that another node has taken its place.
func (m *Member) breakOff() {
	switch {
	case m == nil:
	case m.bound != nil:
		m.bound.mu.Lock()
		defer m.bound.mu.Unlock()
		m.broken = true
		m.bound.leaveWindow(m)
	default:
		m.chain.breakOff(m)
	}
}

// quit notes that m's node is deleted, or that the remover is to delete it.
func (m *Member) quit() {
	if m == nil {
		return
	}
	m.Unwatch()
	m.retire()
}

// quitLater is quit, but for the window: that m leaves when gone is called.
func (m *Member) quitLater() (gone func()) {
	if m == nil {
		return nil
	}
	w := m.keepPlace()
	m.quit()
	return w
}

// keepPlace takes m out of the window, and keeps its place for the caller, who makes room by
// leave. leave is nil if m has no place.
func (m *Member) keepPlace() (leave func()) {
	c := cmp.Or(m.chain, m.bound)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.inWindow {
		return nil
	}
	m.inWindow = false
	return c.window.leave
}

// retire takes m off its chain.
func (m *Member) retire() {
	c := cmp.Or(m.chain, m.bound)
	if c == nil {
		return
	}
	c.mu.Lock()
	used := m.usesChain
	m.usesChain = false
	delete(c.members, m.Node.Name)
	c.leaveWindow(m)
	c.mu.Unlock()
	if used {
		m.q.chains.done(c)
	}
}

// entered notes that m has entered the window, and that it uses the chain.
func (c *chain) entered(m *Member) {
	c.mu.Lock()
	m.inWindow, m.usesChain = true, true
	c.mu.Unlock()
	if c.key.apart {
		m.bound = c
		c.note(m)
	}
}

// note enters m, which is apart, among the members, for those that wait without a node.
func (c *chain) note(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.since = time.Now()
	c.members[m.Node.Name] = m
}

// leaveWindowIfShared takes m out of the window if other members may be held beside it.
func (c *chain) leaveWindowIfShared(m *Member) {
	if c == nil || !m.shared {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveWindow(m)
}

// waitError describes the member behind which another one waits, by its path in the namespace
// of q. The caller holds the chain's mutex.
func (q *Queue) waitError(behind *Member) *WaitError {
	return &WaitError{
		Node: behind.Node, Path: q.Path(behind.Node), Own: true, Only: behind.state == first, Data: behind.data,
		Stat: &zk.Stat{EphemeralOwner: behind.Session.ID(), Czxid: behind.Czxid, Ctime: behind.since.UnixMilli()},
	}
}
