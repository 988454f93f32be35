package seqqueue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

var (
	// ErrExhausted says that the sequence counter of the directory is at, or
	// near, its end.
	ErrExhausted = errors.New("the directory's sequence counter is at its end; order is no longer safe: let everybody stop, delete the directory (it restarts at 0), start again")

	// ErrGone says that the own node was deleted by somebody else.
	ErrGone = errors.New("the own node was deleted by somebody else")
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

// Contends reports whether a child of the directory with this name is a contender, of
// this recipe or of another one that is known.
func (q *Queue) Contends(name string) bool {
	_, numeral := q.tags.parse(name)
	return numeral == number
}

// Line returns the contenders in order, foreign ones included. A missing
// directory is an empty line.
func (q *Queue) Line(ctx context.Context) ([]Node, error) {
	nodes, _, err := q.Look(ctx)
	return nodes, err
}

// Look is Line with the newest change of the directory's children: the id of
// the transaction that made or deleted one last (pzxid).
func (q *Queue) Look(ctx context.Context) (nodes []Node, changed int64, err error) {
	children, stat, err := q.c.Children(ctx, q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return line(q.tags, children), stat.Pzxid, nil
}

// Path returns the path of a contender.
func (q *Queue) Path(n Node) string {
	if q.dir == "/" {
		return "/" + n.Name
	}
	return q.dir + "/" + n.Name
}

// Room refuses to enter a queue whose counter was seen near its end. It asks for
// the counter without using up a number of those that are left: what servers show
// as cversion is 2 x creates - children, in 32 bits.
func (q *Queue) Room(ctx context.Context) error {
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

// admit refuses a member whose number is near the end of the counter.
func (q *Queue) admit(m *Member) error {
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
