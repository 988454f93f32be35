package seqqueue

// This file has the decisions of a member that waits. They do no I/O, and read no clock and
// no context. [Member.do] makes what next returns, and returns the next event.

// deed is what a member that waits does next.
type deed int

const (
	list  deed = iota // list the directory
	check             // ask whether a foreign child is in use: the verdict may say so
	park              // wait behind a front, in the process
	watch             // watch the nearest contender ahead, and the one before it
	take              // no contender ahead blocks: the turn has come
	fail              // the turn has come, and the session is over
	stop              // the directory's counter has passed its end
)

// action is a deed with what it needs.
type action struct {
	deed deed

	front *WaitError // of park: about the front
	ahead int        // of park: contenders that have to leave before

	nearest Node     // of watch
	second  Node     // of watch: the contender before, if its end is of use
	list    []string // of watch: that has shown these
	early   bool     // of list: the nearest still stands

	verdict *verdict // of check
}

// news is what a member that waits is told.
type news int

const (
	perhaps    news = iota // something may have changed; its list may be a new one
	nearestEnd             // the nearest contender ahead that blocked it is gone
	secondEnd              // the contender before that is gone, and the nearest stands
	unmixed                // the foreign child is not in use
)

// event is news with what it tells, and what was true when it was told.
type event struct {
	news    news
	nearest Node     // of nearestEnd
	orderly bool     // of nearestEnd: the server ends a session in an order; see aheadGone
	verdict *verdict // of unmixed

	stands bool // its own node is known to stand
	over   bool // its session is over
}

// next says what m does after an event.
//
//	the member is            event       deed
//	any                      secondEnd   list, early
//	unknown                  nearestEnd  as if first, if that end is its turn: see aheadGone
//	linked                   any other   park
//	first, its node stands   any other   take; fail if its session is over
//	first, otherwise         any other   as if it were unknown
//	unknown, without a list  any other   list
//	unknown, with a list     any other   by what the list shows:
//	                                     a foreign child, perhaps in use: check, until unmixed
//	                                     a number past the end: stop
//	                                     none that blocks: take, or fail
//	                                     a front, see [chain.follow]: park, or take if that is over
//	                                     else: watch
func (m *Member) next(ev event, blocks Blocks) action {
	switch ev.news {
	case secondEnd:
		return action{deed: list, early: true}
	case nearestEnd:
		m.aheadGone(ev.nearest, ev.orderly)
	case perhaps, unmixed:
	}
	if ahead, front := m.awaited(); front != nil {
		return action{deed: park, front: front, ahead: ahead}
	}
	a := m.look(ev, blocks)
	if a.deed != watch || !m.follow(a.nearest, a.list) {
		return a
	}
	if ahead, front := m.awaited(); front != nil {
		return action{deed: park, front: front, ahead: ahead}
	}
	ev.news = perhaps // its list was read
	return m.look(ev, blocks)
}

// look is next of a member that does not wait in the process.
func (m *Member) look(ev event, blocks Blocks) action {
	if m.isFirst(ev.stands) {
		return turn(ev)
	}
	var v verdict
	if ev.news == unmixed {
		v = *ev.verdict
	} else {
		v = judge(m.q.tags, m.Node, m.children, blocks)
		if !v.listed { // no list yet, or one that was answered before the create
			return action{deed: list}
		}
		if v.foreign != "" || v.maybe {
			foreign := v
			return action{deed: check, verdict: &foreign}
		}
		m.q.mixed.Store(false)
	}
	children := m.children
	m.children = nil
	switch {
	case v.wrapped:
		return action{deed: stop}
	case !v.blocked:
		m.chain.listed(m)
		return turn(ev)
	}
	m.other = nil // others may have the turn before m
	m.chain.blocked(m, v.blockers)
	a := action{deed: watch, nearest: v.nearest, list: children}
	if m.endIsTurn(v.nearest) && !m.gated() {
		a.second = v.second
	}
	return a
}

// turn is the deed of a member whose turn has come.
func turn(ev event) action {
	if ev.over {
		return action{deed: fail} // its node is deleted with the session
	}
	return action{deed: take}
}
