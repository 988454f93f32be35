package seqqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

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
