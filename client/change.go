package client

import "github.com/go-zookeeper/zk"

// ChangeKind is the kind of a [Change].
type ChangeKind int

// The kinds of changes.
const (
	// ChangeMissed: changes may have been missed; read again. See [Client.Watch].
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
	// Path is the node that changed, in the client's namespace. For a ChangeMissed it
	// is the path that is watched.
	Path string
	// Zxid is the transaction that made the change. It is -1 for a ChangeMissed, and
	// where the server does not say it (before ZooKeeper 3.9).
	Zxid int64
	// State is the state that the server put into the event, mostly
	// [zk.StateSyncConnected]. It is zero for a ChangeMissed.
	State zk.State
	// Err is why changes may have been missed: [ErrOverflow], [ErrSessionLost], or
	// another error after a reconnection. It is nil for the first ChangeMissed.
	Err error
}
