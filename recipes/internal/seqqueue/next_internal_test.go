package seqqueue

import (
	"slices"
	"testing"
)

const stranger = "x-lock-0000000002"

// waiter makes a member of a mutex's directory, with a list or without.
func (p *tape) waiter(n int, children ...string) *Member {
	p.t.Helper()
	m := p.make(n, mutexTag)
	p.within(m)
	if m.children = children; children != nil {
		m.children = append(m.children, m.Node.Name)
	}
	return m
}

// within gives m its queue.
func (p *tape) within(m *Member) {
	m.q = &Queue{dir: "/d", tags: Tags{
		Contenders: []string{mutexTag},
		Foreign:    []Foreign{{Tag: writer, Recipe: "read/write lock", Library: func(string) string { return "Curator" }}},
		Site:       Site{Names: []string{"leases", "locks"}, Last: "locks"},
	}}
}

// Each row of the table of next: what has happened to a member, and what it does.
func TestNext(t *testing.T) {
	t.Parallel()
	stands := event{stands: true}
	ends := func(m *Member, ev event, blockers int) (*Member, event) {
		m.blockers, ev.news = blockers, nearestEnd
		return m, ev
	}
	for _, tt := range []struct {
		name string
		// set makes what the member knows, and returns the event.
		set  func(p *tape) (*Member, event)
		want deed
		then state
	}{
		{"the second has left", func(p *tape) (*Member, event) {
			return p.waiter(5), event{news: secondEnd, stands: true}
		}, list, unknown},
		{"the only one ahead has left", func(p *tape) (*Member, event) {
			return ends(p.waiter(5), event{stands: true, orderly: true}, 1)
		}, take, first},
		{"the only one ahead has left, of a server without that order", func(p *tape) (*Member, event) {
			return ends(p.waiter(5), stands, 1)
		}, list, unknown},
		{"the nearest of two has left", func(p *tape) (*Member, event) {
			return ends(p.waiter(5), event{stands: true, orderly: true}, 2)
		}, list, unknown},
		{"the only one ahead has left, and its own node is old news", func(p *tape) (*Member, event) {
			return ends(p.waiter(5), event{orderly: true}, 1)
		}, list, unknown},
		{"it is linked", func(p *tape) (*Member, event) {
			p.waiter(4)
			return p.waiter(5), stands
		}, park, linked},
		{"it is linked, and has a list", func(p *tape) (*Member, event) {
			p.waiter(4)
			return p.waiter(5, stranger), stands
		}, park, linked},
		{"it is first", func(p *tape) (*Member, event) {
			m := p.waiter(5)
			p.listed(m)
			return m, stands
		}, take, first},
		{"it is first, and its session is over", func(p *tape) (*Member, event) {
			m := p.waiter(5)
			p.listed(m)
			return m, event{stands: true, over: true}
		}, fail, first},
		{"it was first, by old news", func(p *tape) (*Member, event) {
			m := p.waiter(5)
			p.listed(m)
			return m, event{}
		}, list, unknown},
		{"it knows nothing", func(p *tape) (*Member, event) {
			return p.waiter(5), stands
		}, list, unknown},
		{"its list is older than its node", func(p *tape) (*Member, event) {
			m := p.waiter(5)
			m.children = []string{stranger}
			return m, stands
		}, list, unknown},
		{"its list shows a foreign child", func(p *tape) (*Member, event) {
			return p.waiter(5, stranger, "x-__WRIT__0000000001"), stands
		}, check, unknown},
		{"its list shows what may be a foreign child", func(p *tape) (*Member, event) {
			return p.waiter(5, stranger, "locks"), stands
		}, check, unknown},
		{"the foreign child is not in use", func(p *tape) (*Member, event) {
			return p.waiter(5), event{news: unmixed, stands: true, verdict: &verdict{listed: true, maybe: true}}
		}, take, first},
		{"its list shows a number past the end", func(p *tape) (*Member, event) {
			return p.waiter(5, "x-lock--2147483648"), stands
		}, stop, unknown},
		{"its list shows nobody ahead", func(p *tape) (*Member, event) {
			return p.waiter(5, "x-lock-0000000006"), stands
		}, take, first},
		{"its list shows nobody ahead, and its session is over", func(p *tape) (*Member, event) {
			return p.waiter(5, "x-lock-0000000006"), event{over: true}
		}, fail, first},
		{"its list shows a member", func(p *tape) (*Member, event) {
			front := p.waiter(3)
			p.listed(front)
			return p.waiter(5, front.Node.Name), stands
		}, park, linked},
		{"its list shows a member that is over", func(p *tape) (*Member, event) {
			front := p.waiter(3)
			p.listed(front)
			p.leave(front)
			return p.waiter(5, front.Node.Name), stands
		}, take, first},
		{"its list shows a member that is over, and its own node is old news", func(p *tape) (*Member, event) {
			front := p.waiter(3)
			p.listed(front)
			p.leave(front)
			m := p.waiter(5, front.Node.Name)
			return m, event{news: unmixed, verdict: &verdict{listed: true, blocked: true, blockers: 1, nearest: front.Node}}
		}, list, unknown},
		{"its list shows a stranger", func(p *tape) (*Member, event) {
			return p.waiter(5, stranger), stands
		}, watch, unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			m, ev := tt.set(p)
			a := m.next(ev, AllBlock)
			if a.deed != tt.want || m.state != tt.then {
				t.Errorf("deed %d in state %d, want %d in %d", a.deed, m.state, tt.want, tt.then)
			}
		})
	}
}

// What a member needs for that which it does.
func TestNextSays(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	stands := event{stands: true}

	m := p.waiter(5, "x-lock-0000000001", stranger)
	m.q.mixed.Store(true)
	a := m.next(stands, AllBlock)
	if a.nearest.Name != stranger || a.second.Name != "x-lock-0000000001" || !slices.Contains(a.list, m.Node.Name) {
		t.Errorf("watches %+v", a)
	}
	if m.blockers != 2 || m.children != nil || m.q.mixed.Load() {
		t.Errorf("%d block it, its list is %v, foreign children: %v", m.blockers, m.children, m.q.mixed.Load())
	}

	b := p.waiter(6)
	if a := b.next(stands, AllBlock); a.ahead != 3 || a.front.Node != m.Node {
		t.Errorf("waits behind %v, and %d have to leave before", a.front, a.ahead)
	}
	c := p.waiter(8, "x-lock-0000000001", stranger, m.Node.Name, b.Node.Name)
	p.listed(m)
	c.children = []string{m.Node.Name, b.Node.Name, c.Node.Name}
	if a := c.next(stands, AllBlock); a.deed != park || a.ahead != 2 || a.front.Node != b.Node {
		t.Errorf("does %d, waits behind %v, and %d have to leave before", a.deed, a.front, a.ahead)
	}

	m = p.waiter(10, "x-__WRIT__0000000001")
	if a := m.next(stands, AllBlock); a.verdict.foreign != "x-__WRIT__0000000001" || m.children == nil {
		t.Errorf("asks for %+v, and has the list %v", a.verdict, m.children)
	}
	if a := m.next(event{news: secondEnd}, AllBlock); !a.early {
		t.Errorf("does %+v", a)
	}
}

// A member of a gate watches the nearest contender alone: its list forgets what was read of
// the directory behind the gate.
func TestNextAtAGate(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.key.gate = true
	m := p.make(5, mutexTag)
	m.q = &Queue{dir: "/d", tags: Tags{Contenders: []string{mutexTag}}}
	m.children, m.other = []string{"x-lock-0000000001", "x-lock-0000000002", m.Node.Name}, []string{"lease"}
	if a := m.next(event{}, AllBlock); a.deed != watch || a.nearest.Sequence() != 2 || a.second.Name != "" || m.OtherChildren() != nil {
		t.Errorf("does %+v", a)
	}
}

// A writer behind a writer watches no second contender: a list must follow anyhow.
func TestNextOfAWriter(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	m := p.make(5, writer)
	m.q = &Queue{dir: "/d", tags: Tags{Contenders: []string{writer, reader}}, key: chainKey{dir: "/d", shared: reader}}
	m.children = []string{"x-__WRIT__0000000001", "x-__WRIT__0000000002", m.Node.Name}
	if a := m.next(event{stands: true}, AllBlock); a.deed != watch || a.nearest.Sequence() != 2 || a.second.Name != "" {
		t.Errorf("does %+v", a)
	}
}
