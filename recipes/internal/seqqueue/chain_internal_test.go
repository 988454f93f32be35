package seqqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// fakeGuard is a guard of one connection.
type fakeGuard struct {
	connection uint64
	fired      bool
}

func (g *fakeGuard) Holds(connection uint64) bool { return !g.fired && connection == g.connection }
func (g *fakeGuard) Stands() bool                 { return !g.fired }
func (*fakeGuard) Stop()                          {}
func (*fakeGuard) Resume() bool                   { return true }

// tape makes members of a chain and tells them the answers of their creates.
type tape struct {
	t *testing.T
	*chain
	session *client.Session
	guard   *fakeGuard
}

func newTape(t *testing.T) *tape {
	t.Helper()
	c := testrig.Connect(t.Context(), t, "zk", zktest.NewServer(t).DialContext)
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := &fakeGuard{connection: 1}
	return &tape{t, &chain{guard: g, window: &window{}, members: map[string]*Member{}}, s, g}
}

// make makes a member with a number.
func (p *tape) make(n int, tag string) *Member {
	p.t.Helper()
	m := &Member{Node: Node{Tag: tag}}
	m.Own = Own{Session: p.session, member: m}
	m.chain, m.shared, m.woken = p.chain, tag == "__READ__", make(chan struct{}, 1)
	path := fmt.Sprintf("/d/x-%s%010d", tag, n)
	p.made(m, path, 1)
	node, _ := parse(tag, path[3:])
	m.identify(node, path, int64(n))
	return m
}

// follow is that of a member whose list shows all members.
func (p *tape) follow(m *Member, name string, ahead int) bool {
	return p.chain.follow(m, name, ahead, slices.Collect(maps.Keys(p.members)))
}

func (p *tape) want(what string, m *Member, s state, front *Member) {
	p.t.Helper()
	if m.state != s || m.front != front {
		p.t.Errorf("%s: state %d behind %v, want %d behind %v", what, m.state, m.front, s, front)
	}
}

const (
	mutexTag = "lock-"
	reader   = "__READ__"
	writer   = "__WRIT__"
)

// A member whose number follows another member's number knows its place: it waits
// for that member. If that member was first, the next has the turn when it
// leaves.
func TestChain(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	p.want("the first of all", a, unknown, nil)
	p.listed(a)
	b, c := p.make(6, mutexTag), p.make(7, mutexTag)
	p.want("behind a holder", b, linked, a)
	p.want("behind a waiter", c, linked, b)
	p.leave(a)
	p.want("behind one that has left", b, first, nil)
	p.want("behind the first", c, linked, b)
	p.leave(b)
	p.leave(c)
	p.want("behind one that is over", p.make(8, mutexTag), first, nil)
}

// A member that was only waiting gives no turn. The next member waits for the
// node that it waited for, or lists.
func TestChainGivesUp(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	b, c := p.make(6, mutexTag), p.make(7, mutexTag)
	p.want("behind one that lists", b, linked, a)
	p.leave(a)
	p.want("behind one that gave up before it was first", b, unknown, nil)
	p.listed(b)
	d := p.make(8, mutexTag)
	p.leave(c)
	p.want("behind one that gave up, of a known front", d, linked, b)
	if len(b.followers) != 1 {
		t.Errorf("%d follow one member", len(b.followers))
	}
	p.leave(d)
	p.want("directly behind one that gave up", p.make(9, mutexTag), unknown, nil)
	p.leave(b)
	if len(b.followers) != 0 {
		t.Errorf("followers of one that is over: %v", b.followers)
	}
}

// A number tells nothing if another client made the one before, if the directory may be a
// new one, or on another connection.
// A member that a transaction grants hands its turn to the one behind. That one is the first
// without a gap, if it stood there before the transaction was run.
func TestChainGranted(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a, b, c := p.make(1, mutexTag), p.make(2, mutexTag), p.make(3, mutexTag)
	p.listed(a)
	behind := a.Next()
	a.Granted(behind)
	if behind != b || a.state != over || !b.Gapless() || c.Gapless() {
		t.Fatalf("behind %v, a is %v, b is %v", behind, a.state, b.state)
	}
	b.Granted(nil)
	if b.state != over || c.state != first || c.Gapless() {
		t.Errorf("nobody was known behind: b is %v, c is %v", b.state, c.state)
	}
	d, e := p.make(4, mutexTag), p.make(5, mutexTag)
	c.Granted(e) // another member is behind
	if d.state != first || d.Gapless() || e.state != linked || e.gapless {
		t.Errorf("d is %v, e is %v", d.state, e.state)
	}
	f := p.make(6, mutexTag)
	e.Granted(f) // it has not had its turn: the transaction was another's
	if e.state != left || f.Gapless() || f.gapless {
		t.Errorf("e is %v, f is %v", e.state, f.state)
	}
	p.listed(d)
	if d.Granted(d.Next()); f.state != first {
		t.Errorf("f is %v", f.state)
	}
}

func TestChainGaps(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.listed(p.make(5, mutexTag))
	p.want("behind another client's", p.make(7, mutexTag), unknown, nil)
	p.guard.fired = true
	p.want("in a directory that may be new", p.make(8, mutexTag), unknown, nil)
	p.guard = &fakeGuard{connection: 1}
	p.chain.guard = p.guard
	a := p.make(9, mutexTag)
	p.want("first with a new guard", a, unknown, nil)
	p.listed(a)
	old := p.guard
	p.chain.guard = &fakeGuard{connection: 1}
	p.want("behind one of an older guard", p.make(10, mutexTag), unknown, nil)
	p.chain.guard = old
	old.connection = 2
	p.want("on another connection", p.make(11, mutexTag), unknown, nil)
}

// A hold that was lost, or that a reader stands in for, gives no turn by its end.
func TestChainBroken(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, writer)
	p.listed(a)
	b := p.make(6, writer)
	p.breakOff(a)
	p.want("behind one that is broken", b, unknown, nil)
	if len(b.woken) != 1 {
		t.Error("it was not woken")
	}
	if p.follow(b, a.Node.Name, 1) {
		t.Error("follows one that is broken")
	}
	p.leave(a)
	p.want("behind one that was broken", b, unknown, nil)
	p.leave(b)
	c := p.make(7, writer)
	p.listed(c)
	p.breakOff(c)
	p.leave(c)
	p.want("behind one that was broken and is over", p.make(8, writer), unknown, nil)
}

// The answer of a create may come when the client has given the connection up. If
// the client then finds no node, it makes another node, which stands behind the
// members that follow.
func TestChainRepeatedCreate(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.listed(p.make(5, mutexTag))
	m := &Member{Node: Node{Tag: mutexTag}}
	m.Own = Own{Session: p.session, member: m}
	m.chain, m.woken = p.chain, make(chan struct{}, 1)
	p.made(m, "/d/x-lock-0000000006", 1)
	follower := p.make(7, mutexTag)
	p.want("behind the first node", follower, linked, m)
	m.identify(Node{Name: "x-lock-0000000008", Key: "0000000008", Tag: mutexTag}, "/d/x-lock-0000000008", 8)
	p.want("with another node", m, unknown, nil)
	p.want("ahead of that", follower, unknown, nil)
}

// An operator deletes the node of a create that is not answered yet, and the client makes
// another node under a new guard. A follower of the first node must not wait for the second.
func TestChainMadeTwice(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	w := &Member{Node: Node{Tag: mutexTag}}
	w.Own = Own{Session: p.session, member: w}
	w.chain, w.woken = p.chain, make(chan struct{}, 1)
	p.made(w, "/d/x-lock-0000000005", 1)
	follower := p.make(6, mutexTag)
	p.want("behind the first node", follower, linked, w)
	p.chain.guard = &fakeGuard{connection: 2}
	p.made(w, "/d/x-lock-0000000007", 2)
	w.identify(Node{Name: "x-lock-0000000007", Key: "0000000007", Tag: mutexTag}, "/d/x-lock-0000000007", 7)
	p.want("behind the node that is gone", follower, unknown, nil)
	if len(w.followers) != 0 {
		t.Error("the second node is a front")
	}
}

// Readers go together. A writer behind a reader lists, also if that reader is the only one.
func TestChainShared(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	w := p.make(5, writer)
	p.listed(w)
	r1, r2 := p.make(6, reader), p.make(7, reader)
	p.want("a reader behind a writer", r1, linked, w)
	p.want("a reader behind that", r2, linked, w)
	w2 := p.make(8, writer)
	p.want("a writer behind readers", w2, unknown, nil)
	if p.follow(w2, r2.Node.Name, 3) {
		t.Error("a writer follows one of several readers")
	}
	p.leave(w)
	p.want("the first reader", r1, first, nil)
	p.want("the second reader", r2, first, nil)
	p.leave(r1)
	if p.follow(w2, r2.Node.Name, 1) {
		t.Error("a writer follows a reader")
	}
	p.leave(r2)
	p.want("a writer behind a reader that is over", w2, unknown, nil)
	p.want("a writer behind a reader that has left, by its number", p.make(9, writer), linked, w2)
}

// A list that shows a member right ahead links as well, and not to one of another kind.
func TestChainFollow(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.chain.guard = nil
	a, b := p.make(5, mutexTag), p.make(7, mutexTag)
	if p.follow(b, "x-lock-0000000006", 1) {
		t.Error("follows a stranger")
	}
	if p.follow(b, a.Node.Name, 1) {
		t.Error("follows a member that lists itself")
	}
	p.listed(a)
	if p.follow(b, a.Node.Name, 2) {
		t.Error("follows the first, while another contender stands ahead of both")
	}
	sessions := newSessions(t)
	if a.Session, b.Session = sessions[0], sessions[1]; p.follow(b, a.Node.Name, 1) {
		t.Error("follows a member of another session")
	}
	if b.Session = sessions[0]; !p.follow(b, a.Node.Name, 1) {
		t.Error("does not follow a member")
	}
	p.leave(a)
	p.want("behind one that a list has shown", b, first, nil)
	select {
	case <-b.woken:
	default:
		t.Error("it was not woken")
	}
}

// The window lets in as many as there may be, in order, and forgets one whose context ends.
func TestWindow(t *testing.T) {
	t.Parallel()
	var w window
	for i, want := range []bool{true, true, false} {
		if w.tryEnter(2) != want {
			t.Fatalf("entry %d of two", i+1)
		}
	}
	first, second := w.newEntrant(2), w.newEntrant(2)
	ended, end := context.WithCancel(t.Context())
	end()
	if in, err := w.enter(ended, first, nil); in || !errors.Is(err, context.Canceled) {
		t.Errorf("entered %v, error %v", in, err)
	}
	over := make(chan struct{})
	close(over)
	if in, err := w.enter(t.Context(), first, over); in || err != nil {
		t.Errorf("entered %v, error %v, without a session", in, err)
	}
	w.giveUp(first)
	if n := w.len(); n != 1 {
		t.Errorf("%d wait", n)
	}
	w.leave()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if in, err := w.enter(ctx, second, nil); !in || err != nil {
		t.Errorf("entered %v, error %v", in, err)
	}
	third := w.newEntrant(2)
	w.giveUp(second) // let in, and given back
	if in, err := w.enter(ctx, third, nil); !in || err != nil {
		t.Errorf("entered %v, error %v", in, err)
	}
	if w.tryEnter(2) {
		t.Error("three are in")
	}
}

// A node that was not seen for long is looked at before its member has the turn.
func TestChainStale(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	p.listed(a)
	if !a.isFirst(a.stands()) {
		t.Error("not first")
	}
	a.seen = time.Now().Add(-2 * WatchAfter)
	if a.isFirst(a.stands()) {
		t.Error("first, by old news")
	}
}
