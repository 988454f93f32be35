package seqqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

// Member is a contender of this process. Await and Vacate are for one goroutine. Once Join has
// returned, the member's node is the same for ever.
type Member struct {
	Own // its node, of which there is one

	Node  Node
	Path  string
	Czxid int64 // of the node, the fencing token

	// Ahead calls Told, unless that is nil. ahead is how many contenders have to leave
	// before it is the member's turn, and behind names the last of them.
	Told func(ahead int, behind string)

	position

	q        *Queue
	bound    *chain               // in whose window m is, if members are apart; or nil
	data     []byte               // of its node
	seen     time.Time            // when its node was known to stand last
	watch    *client.OneShotWatch // on its own node, or nil
	blind    bool                 // its own node may not be read
	doubt    *suspicion           // while m waits, or nil
	nearest  *watchedNode         // the nearest contender ahead that blocks, while m watches it; or nil
	children []string             // a list made since the node was, which Ahead has not read; or nil
	other    []string             // the list of the other directory; nil if another contender may have had the turn since
	one      [1]string            // backs Paths

	firstMade bool // it was the first as the answer to its create was read; guarded by the mutex of the chain
	hadToWait bool // a contender ahead has blocked it in Await
}

// Node is what a contender with the given tag makes in the queue. Parents that are made get
// the same acl. A nil acl is the client's default.
func (q *Queue) Node(tag string, data []byte, acl []zk.ACL) inside.Node[client.Client] {
	return inside.Node[client.Client]{In: q.c, Dir: q.dir, Prefix: tag, Data: data, ACL: acl, List: true, Other: q.other, Movable: q.watchesOwn}
}

// Join makes a node that [Queue.Node] has returned. If the client has as many members in the
// directory as it may, Join waits until one leaves. On error no node remains, or its removal
// goes on in the background until it succeeds or the session is over.
func (q *Queue) Join(ctx context.Context, node inside.Node[client.Client]) (*Member, error) {
	return q.joinWith(ctx, node, false)
}

// JoinPast is Join past the acquires that wait in the process.
func (q *Queue) JoinPast(ctx context.Context, node inside.Node[client.Client]) (*Member, error) {
	return q.joinWith(ctx, node, true)
}

func (q *Queue) joinWith(ctx context.Context, node inside.Node[client.Client], past bool) (*Member, error) {
	if q.chains == nil {
		return q.join(ctx, node, nil, func() {})
	}
	c := q.chains.use(q.key)
	err := q.enter(ctx, c, past)
	if err != nil {
		q.chains.done(c)
		return nil, err
	}
	linked := c
	if q.key.apart {
		linked = nil
		c.join(1)
		defer c.join(-1)
	}
	m, err := q.join(ctx, node, linked, c.window.leave)
	if err != nil {
		q.chains.done(c)
		return nil, err
	}
	c.entered(m)
	return m, nil
}

// enter waits until the window lets the acquire in.
func (q *Queue) enter(ctx context.Context, c *chain, past bool) error {
	if past {
		c.window.enterPast()
		return nil
	}
	if c.window.tryEnter(q.most) {
		return nil
	}
	e := c.window.newEntrant(q.most)
	for {
		// Without a session, or with a client that is closed, no node can be made.
		s, err := q.c.Session(ctx)
		if err == nil {
			var in bool
			if in, err = c.window.enter(ctx, e, s.Context().Done()); in {
				return nil
			}
		}
		if err != nil {
			c.window.giveUp(e)
			return q.waitedBehind(c, err)
		}
	}
}

// waitedBehind returns err with the newest member in the window of c, behind which an acquire
// has waited without a node.
func (q *Queue) waitedBehind(c *chain, err error) error {
	last := q.chains.newest(c.window)
	if last == nil {
		return err
	}
	of := cmp.Or(last.chain, last.bound)
	of.mu.Lock()
	defer of.mu.Unlock()
	behind := q.waitError(last)
	behind.Only, behind.Err = false, err
	return behind
}

// newest returns the member with the highest number in a window, nil if there is none.
func (s *chains) newest(w *window) (last *Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range w.chains {
		c.mu.Lock()
		for _, m := range c.members {
			if last == nil || last.Node.before(m.Node) {
				last = m
			}
		}
		c.mu.Unlock()
	}
	return last
}

// Waiting returns how many acquires of this client wait in the process without a node. behind
// is the name of the newest of the client's nodes, "" if there is none.
func (q *Queue) Waiting() (n int, behind string) {
	if q.chains == nil {
		return 0, ""
	}
	c := q.chains.use(q.key)
	defer q.chains.done(c)
	if last := q.chains.newest(c.window); last != nil {
		behind = last.Node.Name
	}
	return c.window.len(), behind
}

// Crowded reports whether an acquire of this client would have to wait before it makes a
// node.
func (q *Queue) Crowded() bool {
	if q.chains == nil {
		return false
	}
	c := q.chains.use(q.key)
	defer q.chains.done(c)
	if !c.window.tryEnter(q.most) {
		return true
	}
	c.window.leave()
	return false
}

// join makes the node. c is nil if the queue has no chains, or if its members are apart. On
// error left is called as soon as no node of the acquire stands: that may be later.
func (q *Queue) join(ctx context.Context, node inside.Node[client.Client], c *chain, left func()) (_ *Member, err error) {
	var gone *Gone
	defer func() {
		if err != nil {
			gone.Then(left)
		}
	}()
	if err := q.MayJoin(ctx); err != nil {
		return nil, err
	}
	if c != nil {
		c.join(1)
		defer c.join(-1)
	}
	for {
		s, err := q.c.Session(ctx)
		if err != nil {
			return nil, err
		}
		m := q.member(s, node.Prefix)
		if m.data = node.Data; c != nil {
			m.chain = c
			list, arm := c.ready()
			if arm {
				c.armed(inner.Guard(ctx, s, q.dir))
			}
			node.List = list
			node.Made = m.made
		}
		gone = &Gone{}
		gone.Of(&node)
		e, err := inner.CreateAndList(ctx, s, node)
		if err == nil {
			gone = nil
			if err := q.adopt(m, node.Prefix, e); err != nil {
				return nil, err
			}
			return m, nil
		}
		if c != nil {
			c.leave(m) // the create may still be answered
		}
		if !errors.Is(err, client.ErrSessionLost) || ctx.Err() != nil {
			return nil, err
		}
		// No place was lost with the session.
	}
}

// MayJoin returns an error if an acquire must not join. If q saw a foreign child last, MayJoin
// lists the directory again. For a new node would make the other recipe refuse as well.
//
// If q saw a number near the end of the counter, MayJoin reads the counter again. That uses up
// none of the numbers that are left. What servers show as cversion is 2 x creates - children,
// in 32 bits.
func (q *Queue) MayJoin(ctx context.Context) error {
	if q.mixed.Load() {
		if _, err := q.Unmixed(ctx); err != nil {
			return err
		}
	}
	if !q.refused.Load() {
		return nil
	}
	exists, stat, err := q.c.Exists(ctx, q.dir)
	if err != nil {
		return err
	}
	if exists && int64(uint32(stat.Cversion)+uint32(stat.NumChildren))/2 >= lastSequence { //nolint:gosec // modulo 2^32 on purpose
		return fmt.Errorf("%w (%s)", ErrExhausted, q.dir)
	}
	q.refused.Store(false) // the directory is a new one
	return nil
}

// Seat is room in the window of a chained queue for an acquire that has no node yet. It is for
// one goroutine.
type Seat struct {
	q *Queue
	c *chain // nil once the seat is left or taken by a member
}

// Seat returns a seat, nil if the client has as many members as it may, or if acquires wait for
// that. With past it returns one in any case. The caller leaves the seat.
func (q *Queue) Seat(past bool) *Seat {
	c := q.chains.use(q.key)
	switch {
	case past:
		c.window.enterPast()
	case !c.window.tryEnter(q.most):
		q.chains.done(c)
		return nil
	}
	return &Seat{q, c}
}

// Until makes the seat stay taken until gone, after a create that has failed.
func (s *Seat) Until(gone *Gone) {
	gone.Then(s.c.window.leave)
	s.q.chains.done(s.c)
	s.c = nil
}

// Leave makes room for another acquire, unless a member has the seat, or Until was called.
func (s *Seat) Leave() {
	if s.c != nil {
		s.c.window.leave()
		s.q.chains.done(s.c)
		s.c = nil
	}
}

// Adopt makes a member in that seat of a node with the given tag that was just made in the
// directory. It refuses a number near the end of the counter. On error the node is
// being deleted.
func (s *Seat) Adopt(in *client.Session, tag string, e inside.Entry) (*Member, error) {
	m := s.q.member(in, tag)
	m.chain = s.c
	s.c.entered(m)
	s.c = nil
	return m, s.q.adopt(m, tag, e)
}

// member is a member without a node.
func (q *Queue) member(s *client.Session, tag string) *Member {
	m := &Member{Node: Node{Tag: tag}, q: q}
	m.Own = Own{Session: s, member: m}
	m.shared = q.key.shared != "" && tag == q.key.shared
	return m
}

// adopt gives m its node, which has the given tag. Until identify has returned, a late
// answer on an earlier connection may still write to m.
func (q *Queue) adopt(m *Member, tag string, e inside.Entry) error {
	m.children, m.one = e.Children, [1]string{e.Path}
	m.Paths = m.one[:]
	name := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
	node, numeral := parse(tag, name)
	if numeral != number {
		node = Node{Name: name, Key: "-1", Tag: tag} // the counter has passed its end
	}
	m.identify(node, e.Path, e.Czxid)
	switch n := m.Node.Sequence(); {
	case n < 0 || n >= lastSequence:
		q.refused.Store(true)
		m.VacateInBackground()
		return fmt.Errorf("%w (got %s)", ErrExhausted, m.Path)
	case n >= warnSequence && q.warned.CompareAndSwap(false, true):
		inner.Logger(q.c).Warn("zookeeper: a queue has used up half of its sequence numbers; it will refuse to work near the end",
			"directory", q.dir, "sequence", n, "limit", int64(lastSequence))
	}
	if e.Other != nil && (m.shownFirst(e.Children) || m.firstAtOnce()) {
		m.other = e.Other
	}
	return nil
}

// Ahead returns the nearest contender that blocks, nil if none does. The first call uses the
// list that came with the node. Later calls list the directory again. A member of the same
// session that is over blocks nobody, though its node may still stand.
func (m *Member) Ahead(ctx context.Context, blocks Blocks) (*Node, error) {
	for ev := (event{}); ; {
		a := m.look(m.now(ev), blocks)
		switch a.deed { //nolint:exhaustive // do has the others
		case take:
			return nil, m.atTurn(ctx)
		case watch:
			if m.behindOver(a) {
				return nil, m.atTurn(ctx)
			}
			m.tellAhead(a)
			nearest := a.nearest // not all of a, also when no contender blocks
			return &nearest, nil
		}
		var err error
		if ev, err = m.do(ctx, a); err != nil {
			return nil, err
		}
	}
}

// Await waits until no contender ahead blocks. It ends with an error if ctx ends, if the
// session is over, or if the member's own node is found to be gone. It leaves the node where
// it is: after an error the caller must delete the node.
func (m *Member) Await(ctx context.Context, blocks Blocks) error {
	defer m.unwatch()
	for ev := (event{}); ; {
		a := m.next(m.now(ev), blocks)
		if a.deed == take {
			m.calm(true)
			return m.atTurn(ctx)
		}
		var err error
		if ev, err = m.do(ctx, a); err != nil {
			m.calm(false)
			return err
		}
	}
}

// now adds to ev what is true now.
func (m *Member) now(ev event) event {
	ev.stands, ev.over = m.stands(), m.Session.Err() != nil
	return ev
}

// do does what next has returned, other than take.
func (m *Member) do(ctx context.Context, a action) (event, error) {
	switch a.deed {
	case list:
		err := m.listAgain(ctx)
		if a.early {
			err = m.waitedFor(m.nearest.Node, err)
		}
		return event{}, err
	case check:
		if err := m.q.mix(ctx, m.Session, *a.verdict); err != nil {
			m.chain.forgetAll()
			return event{}, err
		}
		return event{news: unmixed, verdict: a.verdict}, nil
	case park:
		m.hadToWait = true
		m.unwatch()
		return event{}, m.awaitFront(ctx, a)
	case watch:
		m.hadToWait = true
		m.tellAhead(a)
		if a.nearest.Tag == Bare && m.q.bare.CompareAndSwap(false, true) {
			inner.Logger(m.q.c).Warn("zookeeper: waiting for a contender that is named by a number alone; its program may not wait for this lock",
				"node", m.q.Path(a.nearest), "remedy", `let that program sort by the last ten digits of the names; see "A lock of your own" in docs/mixing.md`)
		}
		return m.awaitAhead(ctx, a)
	case stop:
		return event{}, ErrExhausted
	case fail, take:
	}
	return event{}, m.Session.Err()
}

// tellAhead calls Told with the nearest contender ahead.
func (m *Member) tellAhead(a action) {
	if m.Told != nil {
		m.Told(upTo(m.q.tags, a.nearest, a.list), a.nearest.Name)
	}
}

// atTurn takes the turn, if ctx has not ended.
func (m *Member) atTurn(ctx context.Context) error {
	if m.Told != nil {
		m.Told(0, "")
	}
	cmp.Or(m.chain, m.bound).leaveWindowIfShared(m)
	return ctxerr.Ended(ctx)
}

// HadToWait reports whether a contender ahead has blocked m in Await.
func (m *Member) HadToWait() bool { return m.hadToWait }

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

// Due returns a channel that is closed when a member of a gate that is the first should look
// after its own node. The caller ends that with stop.
func (m *Member) Due() (look <-chan struct{}, stop func()) { return m.due(watchDeepAfter) }

// LookAfter reads and watches the member's own node. If another client has deleted the node,
// or a transaction that was to grant the member, it returns [ErrGone].
func (m *Member) LookAfter(ctx context.Context) error { return m.watchOwn(ctx) }

// Unwatch ends the watch on the member's own node.
func (m *Member) Unwatch() {
	m.watch.Stop()
	m.watch = nil
}

// Gapless reports whether m became the first without a gap: its node stood before the servers
// deleted that of the member ahead, by the transaction that granted that member. So no contender of another client has
// had the turn since the member ahead was the first.
func (m *Member) Gapless() bool {
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	return m.gapless && m.state == first
}

// OtherChildren returns, once, the children of the queue's other directory. They were listed
// when this member was the first in line already. If there is no such list, OtherChildren
// returns nil.
func (m *Member) OtherChildren() []string {
	other := m.other
	m.other = nil
	return other
}
