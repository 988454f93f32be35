package seqqueue

import (
	"github.com/docent-go/docent/internal/inside"
)

// plant is a bug that the arena gives to the product's functions: it pretends something
// before the call and takes it back after that. So the product has no seam for it.
type plant string

const (
	sharedFront        plant = "follow stands behind a reader"
	sharedFrontByMade  plant = "made links a writer behind a reader"
	brokenFrontByList  plant = "follow stands behind a broken front"
	brokenFrontByMade  plant = "made links behind a broken front"
	leftFront          plant = "made links behind a front that has left"
	readerBehindAny    plant = "made makes a reader first behind a reader that is not"
	anyNumber          plant = "made links over a gap of numbers"
	anyConnection      plant = "a guard counts on another connection"
	noGuard            plant = "a guard counts that has fired"
	madeTwice          plant = "made takes a second node"
	twoFollowers       plant = "made links two members directly behind one front"
	otherSession       plant = "follow stands behind a front of another session"
	otherSessionByMade plant = "made links behind a front of another session"
	grantBehindWaiting plant = "leave grants although the front was not first"
	silentLeave        plant = "leave wakes nobody"
	silentBreak        plant = "breakOff wakes nobody"
	silentForgetAll    plant = "forgetAll wakes nobody"
	grantAheadOfOthers plant = "aheadGone grants although others were ahead"
	grantPastRead      plant = "aheadGone grants a writer behind a downgraded writer"
	ownNodeForgotten   plant = "a member is granted that knows that its node is gone"
	pastLease          plant = "a member is granted after the end of its session"
)

// pretend sets a variable, and returns what sets it back.
func pretend[T any](at *T, value T) (back func()) {
	was := *at
	*at = value
	return func() { *at = was }
}

func (a *arena) guardOf(i int8) inside.Guard {
	g := &a.guards[i]
	g.fired = g.fired && a.plant != noGuard
	if a.plant == anyConnection {
		g.connection = uint64(a.s.conn)
	}
	return g
}

func (a *arena) guardIndex(g inside.Guard) int8 {
	for i := range a.guards {
		if g == inside.Guard(&a.guards[i]) {
			return int8(i)
		}
	}
	return -1
}

// made is the product's made.
func (a *arena) made(m *Member, n Node) {
	c, before := &a.chain, a.chain.tail
	back := func() {}
	switch {
	case a.plant == madeTwice:
		named := m.Path
		back = func() {
			if m.Path == "" {
				m.Path = named
			}
		}
		m.Path = ""
	case before == nil:
	case a.plant == sharedFrontByMade && before.shared && before.state == first:
		back = pretend(&before.shared, false)
	case a.plant == brokenFrontByMade:
		back = pretend(&before.broken, false)
	case a.plant == leftFront && before.state == left:
		back = pretend(&before.state, unknown)
	case a.plant == readerBehindAny && before.shared && before.state == unknown:
		back = pretend(&before.state, first)
	case a.plant == otherSessionByMade:
		back = pretend(&before.Session, m.Session)
	case a.plant == anyNumber:
		back = pretend(&before.number, n.Sequence()-1)
	case a.plant == twoFollowers && before.state == linked:
		c.tail = before.front
		back = pretend(&before.front.number, before.number)
	}
	c.made(m, "/d/"+n.Name, uint64(a.s.conn))
	back()
}

// next is the product's next.
func (a *arena) next(m *Member, ev event) action {
	switch a.plant {
	case grantAheadOfOthers:
		if ev.news == nearestEnd {
			defer pretend(&m.blockers, 1)()
		}
	case grantPastRead:
		if ev.news == nearestEnd {
			defer pretend(&m.q.key.shared, "")()
		}
	case ownNodeForgotten:
		ev.stands = true
	case pastLease:
		ev.over = false
	}
	for i := range a.modes {
		front := &a.m[i]
		if front == m {
			continue
		}
		switch a.plant {
		case sharedFront:
			defer pretend(&front.shared, false)()
		case brokenFrontByList:
			defer pretend(&front.broken, false)()
		case otherSession:
			defer pretend(&front.Session, m.Session)()
		}
	}
	return m.next(ev, func(n Node) bool { return !m.shared || n.Tag != reader })
}

// leave is the product's leave.
func (a *arena) leave(m *Member) {
	followers, was, front := m.followers, m.state, m.front
	a.perhapsSilent(silentLeave, func() { a.chain.leave(m) })
	for _, f := range followers {
		switch {
		case a.plant == grantBehindWaiting && was == unknown:
			f.state = first
		case a.plant == sharedFront && was == linked && front.shared && f.shared:
			a.chain.forget(f) // as followers of a reader did
		}
	}
}

func (a *arena) breakOff(m *Member) {
	a.perhapsSilent(silentBreak, func() { a.chain.breakOff(m) })
}

func (a *arena) forgetAll() { a.perhapsSilent(silentForgetAll, a.chain.forgetAll) }

// perhapsSilent takes back the tokens that f has given, if p is planted.
func (a *arena) perhapsSilent(p plant, f func()) {
	var had [mostMembers]bool
	for i := range a.modes {
		had[i] = len(a.m[i].woken) > 0
	}
	f()
	for i := range a.modes {
		if a.plant == p && !had[i] && len(a.m[i].woken) > 0 {
			<-a.m[i].woken
		}
	}
}
