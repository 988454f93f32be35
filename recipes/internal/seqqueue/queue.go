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
	c     *client.Client
	dir   string
	tags  Tags
	other string // another directory that a join lists, or ""

	chains *chains  // nil if there may be any number of members, which are apart
	key    chainKey // of the one for dir
	most   int      // members of this client, and of other values for dir

	watchesOwn bool // a member that waits watches its own node from the beginning, as the node's name says

	patience atomic.Int64 // how long a member waits at least before it warns that it may wait for itself

	warned  atomic.Bool // that half of the numbers are used up
	blind   atomic.Bool // a warning of a node that may not be read was logged
	bare    atomic.Bool // a warning of a contender named by a number alone was logged
	refused atomic.Bool // a number near the end was seen
	mixed   atomic.Bool // a foreign child was seen
}

// chainKey tells the chains of one client apart. Members of two recipes are never in one
// chain, also if a program gives both recipes the same directory. Then each recipe finds the
// nodes of the other by its lists.
type chainKey struct {
	dir    string // its path on the server
	shared string // the tag of members that do not block each other, or ""
	gate   bool   // members hold nothing by their nodes: see [Queue.Gate]
	apart  bool   // members know nothing of each other: see [Queue.Windowed]
}

// New returns the queue in dir of the contenders that tags describe.
func New(c *client.Client, dir string, tags Tags) *Queue {
	return &Queue{c: c, dir: dir, tags: tags}
}

// ListOther makes every join list another directory as well; see [Member.OtherChildren].
// The maker of the queue calls it before any use.
func (q *Queue) ListOther(dir string) *Queue {
	q.other = dir
	return q
}

// MostMembers is how many members one client has in a directory at most, by default.
const MostMembers = 64

// Chained lets members of one session that stand behind each other hand their turn over
// in the process; see chain. It also bounds how many members there are; see window. Members
// with the shared tag, if that is not "", do not block each other. Every member must leave
// by its Own. The maker of the queue calls Chained before any use.
func (q *Queue) Chained(full, shared string, most int) *Queue {
	q.chains, q.key, q.most = chainsOf(q.c), chainKey{dir: full, shared: shared}, most
	return q
}

// Gate is Chained for a queue whose members hold nothing by their nodes. A transaction of the
// caller grants: it deletes the node of the member, and so checks that the node stood. So a
// member looks after its own node only once it has waited for a second, and none lists before
// its turn. The caller calls [Member.Granted] with the answer.
func (q *Queue) Gate(full string, most int) *Queue {
	q.chains, q.key, q.most = chainsOf(q.c), chainKey{dir: full, gate: true}, most
	return q
}

// Windowed bounds how many members there are, as Chained does, and no more: each member lists and
// watches for itself. Members with the shared tag, if that is not "", do not count once they have
// their turn. Every member must leave by its Own. The maker of the queue calls Windowed before any
// use, and not with Chained.
func (q *Queue) Windowed(full, shared string, most int) *Queue {
	q.chains, q.key, q.most = chainsOf(q.c), chainKey{dir: full, shared: shared, apart: true}, most
	return q
}

// WatchOwn makes every member that waits in the directory watch its own node from the
// beginning. So it hears of the deletion of that node at once. Its node is Movable by its
// name: the caller must join again then. The maker of the queue calls WatchOwn before any
// use, and not with Chained.
func (q *Queue) WatchOwn() *Queue {
	q.watchesOwn = true
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

// Idle reports whether no lock uses a directory with these children. None of them is a
// contender of any recipe then, or a part of another recipe's site.
func (q *Queue) Idle(children []string) bool {
	return !slices.ContainsFunc(children, func(name string) bool {
		_, numeral := q.tags.parse(name)
		return numeral != noNumber || slices.Contains(q.tags.Site.Names, name)
	})
}

// Line returns the contenders in order, foreign ones included. A missing
// directory is an empty line.
func (q *Queue) Line(ctx context.Context) ([]Node, error) {
	nodes, _, err := q.LineWithChange(ctx)
	return nodes, err
}

// LineWithChange is Line, and also returns the id of the newest transaction that made or
// deleted a child of the directory (pzxid). It is 0 if that is not known: other servers than those
// of Apache ZooKeeper do not count deletions.
func (q *Queue) LineWithChange(ctx context.Context) (nodes []Node, changed int64, err error) {
	children, stat, err := q.c.Children(ctx, q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if q.c.Product() != "Apache ZooKeeper" {
		return line(q.tags, children), 0, nil
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
