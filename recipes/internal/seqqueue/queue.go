package seqqueue

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

var (
	// ErrExhausted says that the sequence counter of the directory is at, or
	// near, its end.
	ErrExhausted = errors.New("the directory's sequence counter is at its end; order is no longer safe: let every client stop, delete the directory (it restarts at 0), start again")

	// ErrGone says that another client has deleted the caller's node.
	ErrGone = errors.New("its node was deleted by another client")
)

// Queue is a directory of contenders. Any number of processes and values may
// stand for the same directory. It is safe for concurrent use.
type Queue struct {
	c    *client.Client
	dir  string
	tags Tags
	side string // another directory that a join lists, or ""

	chains *chains  // nil if every contender lists for itself
	key    chainKey // of the one for dir
	most   int      // members of this client, and of other values for dir

	warned  atomic.Bool // that half of the numbers are used up
	blind   atomic.Bool // a warning of a node that may not be read was logged
	refused atomic.Bool // a number near the end was seen
	mixed   atomic.Bool // a foreign child was seen
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

// MostMembers is how many members of one client stand in a directory by default.
const MostMembers = 64

// Chained lets members of one session that stand behind each other hand their turn over
// in the process. It also bounds how many there are; see chain. Members with the shared
// tag, if that is not "", do not block each other. Every member must leave by its Own.
// It is for the maker of the queue, before its use.
func (q *Queue) Chained(full, shared string, most int) *Queue {
	q.chains, q.key, q.most = chainsOf(q.c), chainKey{full, shared}, most
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

// Idle reports whether none of children, which the directory has, is a contender of any
// recipe or a part of another one's site.
func (q *Queue) Idle(children []string) bool {
	return !slices.ContainsFunc(children, func(name string) bool {
		_, numeral := q.tags.parse(name)
		return numeral != noNumber || slices.Contains(q.tags.Site.Names, name)
	})
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
