package seqqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

var (
	// ErrExhausted says that the sequence counter of the directory is at, or
	// near, its end.
	ErrExhausted = errors.New("the directory's sequence counter is at its end; order is no longer safe: let everybody stop, delete the directory (it restarts at 0), start again")

	// ErrGone says that the own node was deleted by somebody else.
	ErrGone = errors.New("the own node was deleted by somebody else")

	// ErrForeign says that somebody contends in the directory by rules of
	// another protocol, so that neither would wait for the other.
	ErrForeign = errors.New("another library's lock is in use in this directory, and the two would not wait for each other")
)

// Queue is a directory of contenders. Any number of processes and values may
// stand for the same directory. It is safe for concurrent use.
type Queue struct {
	c    *client.Client
	dir  string
	tags Tags
	side string // another directory that a join lists, or ""

	warned  atomic.Bool // that half of the numbers are used up
	blind   atomic.Bool // a warning of a node that may not be read was logged
	refused atomic.Bool // a number near the end was seen
}

// New returns the queue in dir of the contenders that tags describe.
func New(c *client.Client, dir string, tags Tags) *Queue {
	return &Queue{c: c, dir: dir, tags: tags}
}

// Beside makes every join list another directory as well; see
// [Member.Beside]. It is for the maker of the queue, before its use.
func (q *Queue) Beside(dir string) *Queue {
	q.side = dir
	return q
}

// Dir is the directory.
func (q *Queue) Dir() string { return q.dir }

// Line returns the contenders in order, foreign ones included. A missing
// directory is an empty line.
func (q *Queue) Line(ctx context.Context) ([]Node, error) {
	children, _, err := q.c.Children(ctx, q.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	return line(q.tags, children), nil
}

// Foreign returns an error that matches [ErrForeign] and names n if n goes by
// the rules of another library.
func (q *Queue) Foreign(n Node) error {
	if n.Library == "" {
		return nil
	}
	return fmt.Errorf("%w: %s of %s", ErrForeign, q.Path(n), n.Library)
}

// Path returns the path of a contender.
func (q *Queue) Path(n Node) string {
	if q.dir == "/" {
		return "/" + n.Name
	}
	return q.dir + "/" + n.Name
}

// Member is an own contender. Await and Leave are for one goroutine; the
// rest never changes.
type Member struct {
	Session *client.Session // that made the node and takes it with it
	Node    Node
	Path    string
	Czxid   int64 // of the node, the fencing token

	// Told, unless it is nil, is called by Ahead with how many have to leave before
	// it is the member's turn, and the name of the last of them.
	Told func(ahead int, behind string)

	q        *Queue
	children []string // a list made since the node was; nil if there is none
	beside   []string // of the other directory, if nobody but us can have had the turn since; or nil
}

// Join enters the queue with a node that has the given tag. acl is also that of
// parents that are made; nil is the client's default. On error no node remains,
// or its removal goes on in the background until it succeeds or the session is
// over.
func (q *Queue) Join(ctx context.Context, tag string, data []byte, acl []zk.ACL) (*Member, error) {
	if err := q.Room(ctx); err != nil {
		return nil, err
	}
	m, err := q.join(ctx, tag, data, acl)
	for errors.Is(err, client.ErrSessionLost) && ctx.Err() == nil {
		m, err = q.join(ctx, tag, data, acl) // there was no place yet that could be lost
	}
	return m, err
}

// admit refuses a number near the end of the counter.
func (m *Member) admit() error {
	q := m.q
	switch n := m.Node.Sequence(); {
	case n < 0 || n >= lastSequence:
		q.refused.Store(true)
		return fmt.Errorf("%w (got %s)", ErrExhausted, m.Path)
	case n >= warnSequence && q.warned.CompareAndSwap(false, true):
		inner.Logger(q.c).Warn("zookeeper: a queue has used up half of its sequence numbers; it will refuse to work near the end",
			"directory", q.dir, "sequence", n, "limit", int64(lastSequence))
	}
	return nil
}

// room asks for the counter without using up a number of those that are left:
// what servers show as cversion is 2 x creates - children, in 32 bits.
func (q *Queue) room(ctx context.Context) error {
	exists, stat, err := q.c.Exists(ctx, q.dir)
	if err != nil {
		return err
	}
	if exists && int64(uint32(stat.Cversion)+uint32(stat.NumChildren))/2 >= lastSequence { //nolint:gosec // modulo 2^32 on purpose
		return fmt.Errorf("%w (%s)", ErrExhausted, q.dir)
	}
	q.refused.Store(false) // the directory was made anew
	return nil
}

func (q *Queue) join(ctx context.Context, tag string, data []byte, acl []zk.ACL) (*Member, error) {
	s, err := q.c.Session(ctx)
	if err != nil {
		return nil, err
	}
	e, err := inner.CreateAndList(ctx, s, inside.Node[client.Client]{
		Dir: q.dir, Prefix: tag, Data: data, ACL: acl, Beside: q.side,
	})
	if err != nil {
		return nil, err
	}
	return q.Adopt(s, tag, e)
}

func (q *Queue) member(s *client.Session, tag string, e inside.Entry) *Member {
	m := &Member{Session: s, Path: e.Path, Czxid: e.Czxid, q: q, children: e.Children}
	name := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
	var numeral numeral
	if m.Node, numeral = parse(tag, name); numeral != number {
		m.Node = Node{Name: name, Key: "-1", Tag: tag} // past the end of the counter
	}
	// The other directory was listed last: a member that was the first in line
	// before has been alone in having the turn since.
	if v := judge(q.tags, m.Node, e.Children, Everybody); v.listed && !v.blocked {
		m.beside = e.Beside
	}
	return m
}

// Adopt makes a member of a node with the given tag that was made in the
// directory in one transaction with others. On error the node is being removed.
func (q *Queue) Adopt(s *client.Session, tag string, e inside.Entry) (*Member, error) {
	m := q.member(s, tag, e)
	if err := m.admit(); err != nil {
		m.LeaveInBackground()
		return nil, err
	}
	return m, nil
}

// Room refuses to enter a queue whose counter was seen near its end.
func (q *Queue) Room(ctx context.Context) error {
	if !q.refused.Load() {
		return nil
	}
	return q.room(ctx)
}

// Await returns nil when nobody ahead blocks. Otherwise it waits for those
// who do, until ctx ends, the session is over or the own node is found to be
// gone. It leaves the node where it is: after an error the caller must Leave.
func (m *Member) Await(ctx context.Context, blocks Blocks) error {
	for {
		ahead, err := m.Ahead(ctx, blocks)
		if err != nil || ahead == nil {
			return err
		}
		if own, err := m.gone(ctx, *ahead); err != nil {
			whose := ""
			if own && ctx.Err() != nil { // it may have waited for its caller
				whose = ", which is this client's own (a call within that hold passes the hold's context)"
			}
			return fmt.Errorf("waiting behind %s%s: %w", ahead.Name, whose, err)
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

// gone waits until something happens to n; the caller lists again to see
// what. own is whether n is of the same session.
func (m *Member) gone(ctx context.Context, n Node) (own bool, err error) {
	_, stat, w, err := m.Session.GetW(ctx, m.q.Path(n))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return false, nil
	case errors.Is(err, zk.ErrNoAuth):
		return false, m.goneUnread(ctx, n)
	case err != nil:
		return false, err
	}
	defer w.Stop() // somebody who gives up leaves nothing behind
	own = stat.EphemeralOwner == m.Session.ID()
	return own, m.wait(ctx, w)
}

// wait waits until w fires.
func (m *Member) wait(ctx context.Context, w *client.Watch) error {
	select {
	case <-w.Done():
		return m.Session.Err()
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	}
}

// Leave deletes the node. It returns [ErrGone] if somebody else had, the
// session's end if the node goes with it, and any other error when the node
// may still stand; its removal then goes on in the background until it
// succeeds or the session is over.
func (m *Member) Leave(ctx context.Context) error {
	err := m.Session.Err()
	if err == nil {
		err = m.Session.Delete(ctx, m.Path, client.AnyVersion)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return ErrGone
	}
	m.LeaveInBackground() // of no effect if the node goes with the session
	return cmp.Or(m.Session.Err(), err)
}

// LeaveInBackground deletes the node without waiting.
func (m *Member) LeaveInBackground() {
	_ = inner.DeleteInBackground(m.Session, m.Path) // the path came from the server
}
