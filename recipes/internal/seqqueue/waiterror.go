package seqqueue

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// WaitError says behind which contender a wait has ended. It also has what the waiter read
// of that contender's node when it began to watch the node.
type WaitError struct {
	Node   Node
	Path   string
	Data   []byte   // of the node
	Stat   *zk.Stat // nil if the node was not read
	Hidden bool     // its ACL does not let the waiter read it
	Own    bool     // the node is of the waiter's session
	Only   bool     // no other contender blocked the waiter when the queue was listed last
	Err    error    // why the wait has ended
}

// Error names the node and the reason.
func (e *WaitError) Error() string { return "waiting behind " + e.Node.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *WaitError) Unwrap() error { return e.Err }

// waitedFor is the error of a wait for n, with what m has read of n.
func (m *Member) waitedFor(n Node, err error) error {
	if err == nil || errors.Is(err, ErrGone) {
		return err
	}
	said := &WaitError{Node: n, Path: m.q.Path(n), Only: m.blockers == 1, Err: err}
	if m.nearest != nil {
		said.Hidden = errors.Is(m.nearest.Err, zk.ErrNoAuth)
		said.Data, said.Stat = m.nearest.Data, m.nearest.Stat
		said.Own = said.Stat != nil && said.Stat.EphemeralOwner == m.Session.ID()
	}
	return said
}

// waitError describes the member behind which another one waits, by its path in the namespace
// of q. The caller holds the chain's mutex.
func (q *Queue) waitError(behind *Member) *WaitError {
	return &WaitError{
		Node: behind.Node, Path: q.Path(behind.Node), Own: true, Only: behind.state == first, Data: behind.data,
		Stat: &zk.Stat{EphemeralOwner: behind.Session.ID(), Czxid: behind.Czxid, Ctime: behind.since.UnixMilli()},
	}
}
