package barrier_test

import (
	"fmt"
	"slices"
)

// shortAt is where a member of a short program is.
type shortAt int

const (
	shortWaits   shortAt = iota // in Enter, with a node
	shortOutside                // in Enter, for the end of a round
	shortInside
	shortLeaves
	shortDone   // its last call has returned nil
	shortFailed // its last call has failed, or it is inside no more
)

var shortPlaces = [...]string{"waits", "waits outside", "is inside", "leaves", "is done", "has failed"}

// shortMember is a member as the rule has it.
type shortMember struct {
	client byte
	at     shortAt
	node   bool  // while it leaves
	awaits []int // whom its Leave waits for
}

// shortRule says what has happened when all is at rest: a round of two opens when two wait,
// Leave waits for those that were inside, and the lowest keeps its node to the end. It
// knows no zxids, no requests and nothing of the library.
type shortRule struct {
	rounds  bool
	members []shortMember
	open    bool // a round
	stale   bool // a ready node stands of which the members have died
}

func (r *shortRule) clone() shortRule {
	c := *r
	c.members = slices.Clone(r.members)
	return c
}

// shortCall is a call of a program: 'E'nter by a client, 'L'eave, 'C'ancel of what a member
// waits for, close ('X') of a member inside, or the loss ('S') of a client's session.
type shortCall struct {
	op     byte
	client byte
	who    int
}

// String is how a program is written.
func (c shortCall) String() string {
	if c.client != 0 {
		return fmt.Sprintf("%c%c", c.op, c.client)
	}
	return fmt.Sprintf("%c%d", c.op, c.who)
}

// calls are those that make sense now. The first member is of client a.
func (r *shortRule) calls(most int, lost bool) (all []shortCall) {
	if n := len(r.members); n < most {
		all = append(all, shortCall{op: 'E', client: 'a'})
		if n > 0 {
			all = append(all, shortCall{op: 'E', client: 'b'})
		}
	}
	for i, m := range r.members {
		switch m.at {
		case shortInside:
			all = append(all, shortCall{op: 'L', who: i}, shortCall{op: 'X', who: i})
		case shortWaits, shortOutside, shortLeaves:
			all = append(all, shortCall{op: 'C', who: i})
		default:
		}
	}
	for _, client := range []byte("ab") {
		if !lost && slices.ContainsFunc(r.members, func(m shortMember) bool { return m.client == client && m.at < shortDone }) {
			all = append(all, shortCall{op: 'S', client: client})
		}
	}
	return all
}

// play makes a call, and lets all come to rest.
func (r *shortRule) play(c shortCall) {
	gives := func(m *shortMember) { m.at, m.node = shortFailed, false }
	switch c.op {
	case 'E':
		r.stale = false
		m := shortMember{client: c.client}
		switch {
		case r.open && r.rounds:
			m.at = shortOutside
		case r.open:
			m.at = shortInside
		}
		r.members = append(r.members, m)
	case 'L':
		m := &r.members[c.who]
		m.at, m.node = shortLeaves, true
		for i := range r.members {
			if i != c.who && r.stands(i) {
				m.awaits = append(m.awaits, i)
			}
		}
	case 'C', 'X':
		gives(&r.members[c.who])
	case 'S':
		for i := range r.members {
			if m := &r.members[i]; m.client == c.client && (m.at == shortInside || m.at == shortLeaves && m.node) {
				gives(m)
			}
		}
	}
	r.rest()
}

// stands reports whether the node of a member of the round stands.
func (r *shortRule) stands(i int) bool {
	m := &r.members[i]
	return m.at == shortInside || m.at == shortLeaves && m.node
}

func (r *shortRule) rest() {
	left := false
	for changed := true; changed; {
		changed = false
		for i := range r.members {
			m := &r.members[i]
			if m.at != shortLeaves {
				continue
			}
			m.awaits = slices.DeleteFunc(slices.Clone(m.awaits), func(j int) bool { return !r.stands(j) })
			switch {
			case len(m.awaits) == 0:
				m.at, m.node, left, changed = shortDone, false, true, true
			case m.node && m.awaits[0] < i:
				m.node, changed = false, true
			}
		}
	}
	inside := 0
	for i := range r.members {
		if r.stands(i) {
			inside++
		}
	}
	if r.open && inside == 0 {
		r.open, r.stale = false, !left
	}
	if r.open {
		return
	}
	var wait []*shortMember
	for i := range r.members {
		if m := &r.members[i]; m.at == shortWaits || m.at == shortOutside {
			m.at, r.stale = shortWaits, false
			wait = append(wait, m)
		}
	}
	if len(wait) >= 2 {
		r.open = true
		for _, m := range wait {
			m.at = shortInside
		}
	}
}

// nodes is how many members' nodes stand.
func (r *shortRule) nodes() (n int) {
	for i := range r.members {
		if r.stands(i) || r.members[i].at == shortWaits {
			n++
		}
	}
	return n
}
