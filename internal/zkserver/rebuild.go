package zkserver

// catchUp applies the history up to its nth transaction. No client is connected
// meanwhile.
func (m *Member) catchUp(n int) {
	if m.stale || m.applied > n {
		m.rebuild(n)
		return
	}
	for ; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// rebuild makes the member's state from the first n transactions, and drops the
// state it had.
func (m *Member) rebuild(n int) {
	m.stale = false
	m.tree = newDataTree(m.watches, &m.cfg)
	m.prep = m.newPrep()
	clear(m.sessions)
	for m.applied = 0; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// forgetTail loses the last n transactions of a member whose process has ended.
// Transactions that it has not applied are the last ones.
func (m *Member) forgetTail(n int) {
	kept := min(n, len(m.log))
	m.log = m.log[:len(m.log)-kept]
	if n -= kept; n > 0 {
		m.rebuild(min(max(m.applied-n, 0), len(m.e.history)))
	}
}

// cutHistory makes the history end where that of a new leader ends. Transactions
// that the new leader does not know are lost. That happens only if crashes have
// taken them from a majority.
func (m *Member) cutHistory() {
	e := m.e
	known := m.applied
	for _, entry := range m.log {
		if entry.r.committed {
			known++
		}
	}
	if known >= len(e.history) {
		return
	}
	e.history = e.history[:known:known]
	for _, o := range e.members {
		o.stale = o.stale || o.applied > known
	}
}
