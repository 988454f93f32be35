package zkserver

// catchUp applies the history up to its nth transaction. Nobody is connected
// while it does.
func (m *Member) catchUp(n int) {
	if m.stale || m.applied > n {
		m.rebuild(n)
		return
	}
	for ; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// rebuild makes the member's state anew from the first n transactions.
func (m *Member) rebuild(n int) {
	m.stale = false
	m.tree = newDataTree(m.watches, &m.cfg)
	m.prep = m.newPrep()
	clear(m.sessions)
	for m.applied = 0; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// forgetTail loses the last n transactions of a member whose process has
// ended: first those it has not applied.
func (m *Member) forgetTail(n int) {
	kept := min(n, len(m.log))
	m.log = m.log[:len(m.log)-kept]
	if n -= kept; n > 0 {
		m.rebuild(min(max(m.applied-n, 0), len(m.e.history)))
	}
}

// cutHistory makes the history end where that of a new leader does. What it
// does not know is lost; that happens only when crashes have taken it from a
// majority.
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
