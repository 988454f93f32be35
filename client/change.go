package client

import "github.com/go-zookeeper/zk"

// ChangeKind is the kind of a [Change].
type ChangeKind int

// The kinds of changes.
const (
	// ChangeMissed: changes may have been missed, read again. See [Client.Watch].
	ChangeMissed ChangeKind = iota
	// ChangeCreated: the node at the path was created.
	ChangeCreated
	// ChangeDeleted: the node at the path was deleted.
	ChangeDeleted
	// ChangeData: the data of the node at the path was set.
	ChangeData
	// ChangeChildren: a child of the node at the path was created or deleted.
	ChangeChildren
)

// String returns the kind in lower case.
func (k ChangeKind) String() string {
	if k < ChangeMissed || k > ChangeChildren {
		return "unknown"
	}
	return [...]string{"missed", "created", "deleted", "data", "children"}[k]
}

// Change is one change that a [Changes] tells of.
type Change struct {
	Kind ChangeKind
	// Path is the node that changed, in the client's namespace; of a ChangeMissed
	// the path that is watched.
	Path string
	// Zxid is the transaction that made the change. It is -1 where the server
	// does not say it (before ZooKeeper 3.9), and of a ChangeMissed.
	Zxid int64
	// State is the server's own as it sent the event, mostly
	// [zk.StateSyncConnected]; of a ChangeMissed it is zero.
	State zk.State
	// Err is why changes may have been missed: [ErrOverflow], [ErrSessionLost] or
	// another error after a reconnection, and nil for the first ChangeMissed.
	Err error
}
