package seqqueue

import (
	"sync"
	"testing"
)

// A reader whose number follows that of a reader that is first is first as well, and need not
// list.
func TestChainReaderBehindReader(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	r := p.make(5, reader)
	p.want("behind a reader that lists", p.make(6, reader), unknown, nil)
	p.listed(r)
	q := p.make(7, reader)
	p.want("behind a reader that lists, itself behind one that is first", q, unknown, nil)
	p.listed(q)
	p.want("behind a reader that is first", p.make(8, reader), first, nil)
}

// What the create of the next member brings with it: a list, if its number will not tell its
// place. For a list that comes later costs another round trip.
func TestChainWantsList(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	want := func(what string, want bool) {
		t.Helper()
		if got, _ := p.ready(); got != want {
			t.Errorf("%s: brings a list: %v, want %v", what, got, want)
		}
	}
	want("the first", true)
	a := p.make(5, mutexTag)
	want("behind one that has missed its place", true)
	b := p.make(6, mutexTag)
	p.want("behind one that lists", b, linked, a)
	want("behind one that has not", false)
	gone := &Member{Node: Node{Tag: mutexTag}}
	gone.Own, gone.chain = Own{Session: p.session, member: gone}, p.chain
	p.leave(gone)
	p.made(gone, "/d/x-lock-0000000007", 1)
	p.want("that has given up before the answer", gone, left, nil)
	want("behind one that has given up before the answer", true)
	p.make(8, mutexTag)
	want("behind one whose number is not the next", true)
	p.make(9, mutexTag)
	want("behind one whose number is", false)
}

// The counter goes on behind its end, through negative numbers. These follow nothing.
func TestChainPastTheEnd(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	m := &Member{Node: Node{Tag: mutexTag}}
	m.Own, m.chain = Own{Session: p.session, member: m}, p.chain
	p.made(m, "/d/x-lock--000000001", 1)
	p.want("with the number 1", p.make(1, mutexTag), unknown, nil)
}

// A try looks at its list also while it is linked. An operator may have deleted the front's
// node, so that the list shows nobody ahead.
func TestChainListedBehindFront(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	b := p.make(6, mutexTag)
	p.want("by its number", b, linked, a)
	p.listed(b)
	p.want("by its list", b, first, nil)
	p.leave(a)
	p.want("after the end of its former front", b, first, nil)
}

// A try takes the turn of a front that is over, and whose node its list still shows. While it
// is linked it stays behind its front, whatever the list shows: an operator may have deleted
// the front's node, and two fronts would tell it two turns.
func TestChainTryBehindFront(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	q := &Queue{dir: "/d"}
	shows := func(m *Member, n *Member) action {
		m.q, m.blockers = q, 1
		return action{deed: watch, nearest: n.Node, list: []string{n.Node.Name, m.Node.Name}}
	}
	a := p.make(5, mutexTag)
	p.listed(a)
	b, c := p.make(6, mutexTag), p.make(7, mutexTag)
	if c.behindOver(shows(c, a)) {
		t.Error("a linked member takes the turn of a holder")
	}
	p.want("behind its front", c, linked, b)
	p.leave(a)
	p.want("behind its front, when another is over", c, linked, b)
	p.leave(b)
	d := p.make(9, mutexTag)
	if d.behindOver(shows(d, c)) {
		t.Error("a member takes the turn of a holder")
	}
	e := p.make(11, mutexTag)
	p.leave(c)
	if !e.behindOver(shows(e, c)) {
		t.Error("a member does not take the turn of a front that is over")
	}
	p.want("behind one that is over", e, first, nil)
}

// All that block must be members, and the list must show each of them.
func TestChainFollowsWhatIsListed(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	p.listed(a)
	b, c := p.make(6, mutexTag), p.make(7, mutexTag)
	m := p.make(9, mutexTag)
	p.want("with a gap of numbers", m, unknown, nil)
	for what, list := range map[string][]string{
		"the head":               {"x-lock-0000000004", b.Node.Name, c.Node.Name},
		"one between":            {a.Node.Name, "x-lock-0000000004", c.Node.Name},
		"two, and shows but two": {a.Node.Name, c.Node.Name},
	} {
		if p.chain.follow(m, c.Node.Name, 3, list) {
			t.Errorf("it follows, and the list lacks %s", what)
		}
	}
	all := []string{a.Node.Name, b.Node.Name, c.Node.Name, m.Node.Name}
	if p.chain.follow(m, c.Node.Name, 4, all) {
		t.Error("it follows behind three members, and four block it")
	}
	if !p.chain.follow(m, c.Node.Name, 3, all) {
		t.Error("it does not follow")
	}
	p.want("behind the last of three", m, linked, c)
	p.leave(c) // it gives up, and m inherits its front
	p.want("behind one that gave up", m, linked, b)
}

// A member that is over stays so, whoever says it again. So the next needs no list.
func TestChainLeavesTwice(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	p.listed(a)
	p.leave(a)
	p.leave(a)
	p.want("that has left twice", a, over, nil)
	p.want("behind it", p.make(6, mutexTag), first, nil)
}

// A foreign child was seen: all that wait list, and so does the next member. Who holds goes on.
func TestChainForgetsAll(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	p.listed(a)
	b, c := p.make(6, mutexTag), p.make(7, mutexTag)
	p.forgetAll()
	p.want("that holds", a, first, nil)
	for _, m := range []*Member{b, c} {
		p.want("that waited", m, unknown, nil)
		if len(m.woken) != 1 {
			t.Error("it was not woken")
		}
	}
	if len(a.followers)+len(b.followers) != 0 {
		t.Errorf("followers %v, %v", a.followers, b.followers)
	}
	p.want("that comes then", p.make(8, mutexTag), unknown, nil)
}

// A member leaves the window once, by its end, or sooner: when its hold is lost, or when others
// may be held beside it.
func TestChainLeavesWindow(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	inside := func(want int) {
		t.Helper()
		if got := p.window.room.inside; got != want {
			t.Errorf("%d are inside, want %d", got, want)
		}
	}
	lost, held, shared := p.make(5, writer), p.make(6, writer), p.make(7, reader)
	for _, m := range []*Member{lost, held, shared} {
		m.q = &Queue{chains: &chains{all: map[chainKey]*chain{}, windows: map[string]*window{}}}
		p.uses++
		p.window.enterPast()
		p.entered(m)
	}
	inside(3)
	p.breakOff(lost)
	inside(2)
	p.leaveWindowIfShared(held)
	inside(2)
	p.leaveWindowIfShared(shared)
	inside(1)
	for _, m := range []*Member{lost, held, shared} {
		m.quit()
	}
	inside(0)
}

// Contenders without a chain have no place to keep.
func TestNoChain(t *testing.T) {
	t.Parallel()
	var c *chain
	m := &Member{}
	c.listed(m)
	c.blocked(m, 3)
	c.breakOff(m)
	c.forget(m)
	c.forgetAll()
	c.leave(m)
	if m.state != unknown || m.broken || m.blockers != 3 {
		t.Errorf("%+v", m.position)
	}
}

// The member behind is known before its create has returned, to the goroutine of the
// transaction that grants the front.
func TestChainNumberBeforeTheCreateReturns(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	front := p.make(5, mutexTag)
	m := &Member{Node: Node{Tag: mutexTag}}
	m.Own, m.chain = Own{Session: p.session, member: m}, p.chain
	node := Node{Name: "x-lock-0000000006", Key: "0000000006", Tag: mutexTag}
	p.made(m, "/d/"+node.Name, 1)
	behind := front.Next()
	var returns sync.WaitGroup
	returns.Go(func() { m.identify(node, "/d/"+node.Name, 6) })
	if behind != m || behind.Number() != 6 {
		t.Errorf("behind is %+v", behind)
	}
	returns.Wait()
}
