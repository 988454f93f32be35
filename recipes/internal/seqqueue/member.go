package seqqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

// Member is a contender of this process. Await and Delete are for one goroutine; the
// rest never changes.
type Member struct {
	Own // its one node

	Node  Node
	Path  string
	Czxid int64 // of the node, the fencing token

	// Told, unless it is nil, is called by Ahead with how many have to leave before
	// it is the member's turn, and the name of the last of them.
	Told func(ahead int, behind string)

	q        *Queue
	behind   int       // contenders that blocked it when the queue was listed last
	children []string  // a list made since the node was; nil if there is none
	beside   []string  // of the other directory, if no other contender can have had the turn since; or nil
	one      [1]string // backs Paths
}

// Node is what a contender with the given tag makes in the queue. acl is also that
// of parents that are made; nil is the client's default.
func (q *Queue) Node(tag string, data []byte, acl []zk.ACL) inside.Node[client.Client] {
	return inside.Node[client.Client]{In: q.c, Dir: q.dir, Prefix: tag, Data: data, ACL: acl, List: true, Beside: q.side}
}

// Join enters the queue with a node that [Queue.Node] has returned. On error no
// node remains, or its removal goes on in the background until it succeeds or the
// session is over.
func (q *Queue) Join(ctx context.Context, node inside.Node[client.Client]) (*Member, error) {
	if err := q.Room(ctx); err != nil {
		return nil, err
	}
	for {
		s, err := q.c.Session(ctx)
		if err != nil {
			return nil, err
		}
		e, err := inner.CreateAndList(ctx, s, node)
		switch {
		case err == nil:
			return q.Adopt(s, node.Prefix, e)
		case !errors.Is(err, client.ErrSessionLost) || ctx.Err() != nil:
			return nil, err
		}
		// There was no place yet that could be lost with the session.
	}
}

// Room refuses to enter a queue that has a foreign child, if it had one when this
// value looked last: the node of an entrant would refuse the other recipe, too.
//
// Room also refuses a queue whose counter was seen near its end. It asks for the
// counter without using up a number of those that are left: what servers show
// as cversion is 2 x creates - children, in 32 bits.
func (q *Queue) Room(ctx context.Context) error {
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

// Adopt makes a member of a node with the given tag that was just made in the
// directory. It refuses a number near the end of the counter. On error the node is
// being deleted.
func (q *Queue) Adopt(s *client.Session, tag string, e inside.Entry) (*Member, error) {
	m := &Member{Path: e.Path, Czxid: e.Czxid, q: q, children: e.Children, one: [1]string{e.Path}}
	m.Own = Own{Session: s, Paths: m.one[:]}
	name := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
	var numeral numeral
	if m.Node, numeral = parse(tag, name); numeral != number {
		m.Node = Node{Name: name, Key: "-1", Tag: tag} // past the end of the counter
	}
	switch n := m.Node.Sequence(); {
	case n < 0 || n >= lastSequence:
		q.refused.Store(true)
		m.DeleteInBackground()
		return nil, fmt.Errorf("%w (got %s)", ErrExhausted, m.Path)
	case n >= warnSequence && q.warned.CompareAndSwap(false, true):
		inner.Logger(q.c).Warn("zookeeper: a queue has used up half of its sequence numbers; it will refuse to work near the end",
			"directory", q.dir, "sequence", n, "limit", int64(lastSequence))
	}
	// The other directory was listed after the queue. If this member was the first in
	// the queue then, no other member has had the turn since, and the list is good.
	if e.Beside != nil {
		if v := judge(q.tags, m.Node, e.Children, Everybody); v.listed && !v.blocked {
			m.beside = e.Beside
		}
	}
	return m, nil
}

// Ahead returns the nearest contender that blocks, nil if none does. It uses
// the list that came with the node the first time and asks for a new one
// later.
func (m *Member) Ahead(ctx context.Context, blocks Blocks) (*Node, error) {
	children := m.children
	v := judge(m.q.tags, m.Node, children, blocks)
	m.children = nil
	if !v.listed { // no list yet, or one that was answered before the create
		var err error
		children, _, err = m.Session.Children(ctx, m.q.dir)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, ErrGone // the directory went, and the node with it
		}
		if err != nil {
			return nil, err
		}
		if v = judge(m.q.tags, m.Node, children, blocks); !v.listed {
			return nil, ErrGone
		}
	}
	if err := m.q.mix(ctx, m.Session, v); err != nil {
		return nil, err
	}
	switch {
	case v.wrapped:
		return nil, ErrExhausted
	case v.blocked:
		m.behind = v.ahead
		if m.Told != nil {
			m.Told(upTo(m.q.tags, v.nearest, children), v.nearest.Name)
		}
		nearest := v.nearest // not all of v, also when no contender blocks
		return &nearest, nil
	}
	if err := m.Session.Err(); err != nil {
		return nil, err // first in a line that the session no longer stands in
	}
	if m.Told != nil {
		m.Told(0, "")
	}
	return nil, ctxerr.Ended(ctx)
}

// Await returns nil when no contender ahead blocks. Otherwise it waits for one that
// does, until ctx ends, the session is over or its own node is found to be gone. It leaves the node where it is: after an error the caller must delete it.
func (m *Member) Await(ctx context.Context, blocks Blocks) error {
	for {
		ahead, err := m.Ahead(ctx, blocks)
		if err != nil || ahead == nil {
			return err
		}
		if err := m.gone(ctx, *ahead); err != nil {
			return err
		}
	}
}

// Outdate forgets the list that came with the node, which says nothing about
// what has become of the node since. It is for those who do other things
// between joining and Await.
func (m *Member) Outdate() { m.children, m.beside = nil, nil }

// Beside returns, once, the children of the queue's other directory as they
// were at some moment at which this member was the first in line, and nil if
// they are not known.
func (m *Member) Beside() []string {
	side := m.beside
	m.beside = nil
	return side
}

// WaitError says behind which contender a wait has ended, and what the waiter had
// read of its node when it began to watch it.
type WaitError struct {
	Node Node
	Path string
	Data []byte   // of the node
	Stat *zk.Stat // nil if the node was not read
	Own  bool     // the node is of the waiter's own session
	Only bool     // it alone blocked the waiter when the queue was listed last
	Err  error    // why the wait has ended
}

// Error names the node and the reason.
func (e *WaitError) Error() string { return "waiting behind " + e.Node.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *WaitError) Unwrap() error { return e.Err }

// gone waits until something happens to n; the caller lists again to see
// what. After an error it says what it knows of n.
func (m *Member) gone(ctx context.Context, n Node) error {
	said := &WaitError{Node: n, Path: m.q.Path(n), Only: m.behind == 1}
	data, stat, w, err := m.Session.GetW(ctx, said.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case errors.Is(err, zk.ErrNoAuth):
		err = m.goneUnread(ctx, n)
	case err == nil:
		defer w.Stop() // a waiter that gives up leaves nothing behind
		said.Data, said.Stat, said.Own = data, stat, stat.EphemeralOwner == m.Session.ID()
		err = m.wait(ctx, w)
	}
	if err == nil {
		return nil
	}
	said.Err = err
	return said
}

// wait waits until w fires.
func (m *Member) wait(ctx context.Context, w *client.OneShotWatch) error {
	select {
	case <-w.Done():
		return m.Session.Err()
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	}
}

// goneUnread is gone for a contender whose node this client may not read, and
// so may not watch: a server takes READ for both, and sends no event about such
// a node. The list of the directory, which every contender may read, says as
// well that the node is gone. Watching it costs a list for each contender that
// comes or goes, so the queue logs a warning once. Curator's acquire fails here.
func (m *Member) goneUnread(ctx context.Context, n Node) error {
	if m.q.blind.CompareAndSwap(false, true) {
		inner.Logger(m.q.c).Warn("zookeeper: a contender ahead may not be read, so that the whole directory is watched instead",
			"node", m.q.Path(n), "remedy", "give all who contend READ on each other's nodes")
	}
	children, _, w, err := m.Session.ChildrenW(ctx, m.q.dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return ErrGone // the directory went, and its own node with it
	case err != nil:
		return err
	case !slices.Contains(children, n.Name):
		m.children = children // says who is ahead now
		return nil
	default:
		return m.wait(ctx, w)
	}
}
