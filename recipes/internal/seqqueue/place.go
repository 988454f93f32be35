// What the process knows of a member's place, from its chain, and what a member tells its chain.

package seqqueue

import (
	"cmp"
	"time"
)

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

// Forget deletes what is known of m's place, as its node may have been deleted since it was
// made. An acquire calls it that does other work between Join and Await.
func (m *Member) Forget() {
	m.children, m.other = nil, nil
	m.chain.forget(m)
}

// Next returns the member that waits behind m and for nothing else, nil if none is known.
func (m *Member) Next() *Member {
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	if len(m.followers) != 1 {
		return nil
	}
	return m.followers[0]
}

// Number is the number of m's node. Any goroutine may call it as soon as Next has returned m:
// the create of that node may not have returned yet.
func (m *Member) Number() int64 {
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	return m.Node.Sequence()
}

// Granted notes that a transaction has granted m, and has deleted its node. behind is what
// Next returned before the servers ran that transaction, or nil. Any goroutine may call Granted. The one
// that waits for m still has to call Unwatch.
func (m *Member) Granted(behind *Member) {
	m.chain.granted(m, behind)
	m.retire()
}

// Gapless reports whether m became the first without a gap: its node stood before the servers
// deleted that of the member ahead, by the transaction that granted that member. So no contender of another client has
// had the turn since the member ahead was the first.
func (m *Member) Gapless() bool {
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	return m.gapless && m.state == first
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
