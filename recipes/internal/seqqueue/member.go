package seqqueue

import (
	"time"

	"github.com/docent-go/docent/client"
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

// Own are nodes that one session has made for one waiter or one holder.
type Own struct {
	Session *client.Session // that made the nodes; they are deleted with it
	Paths   []string        // at least one

	member *Member // whose node it is, nil if the nodes are of no member
}

// watchedNode is a contender ahead that the member watches.
type watchedNode struct {
	Node
	inside.Watched
}

// HadToWait reports whether a contender ahead has blocked m in Await.
func (m *Member) HadToWait() bool { return m.hadToWait }

// Unwatch ends the watch on the member's own node.
func (m *Member) Unwatch() {
	m.watch.Stop()
	m.watch = nil
}

// OtherChildren returns, once, the children of the queue's other directory. They were listed
// when this member was the first in line already. If there is no such list, OtherChildren
// returns nil.
func (m *Member) OtherChildren() []string {
	other := m.other
	m.other = nil
	return other
}
