package wire

import "github.com/go-zookeeper/zk"

// Event is a notification of a watch.
type Event struct {
	Type  zk.EventType
	State zk.State
	Path  string // of the server
	// Zxid is the transaction that the notification tells of. Servers before
	// ZooKeeper 3.9 do not say it and send -1 (ZOOKEEPER-4655).
	Zxid int64
	// After is a transaction that the server had applied before the one of the
	// notification: the newest that a reply showed which came before.
	After int64
}

// The modes of an OpAddWatch, in Request.Flags (ZooDefs.AddWatchModes).
const (
	WatchPersistent int32 = 0
	WatchRecursive  int32 = 1
)

// The kinds of an OpRemoveWatches, in Request.Flags (Watcher.WatcherType).
const (
	RemoveChildren int32 = 1
	RemoveData     int32 = 2
	RemoveAny      int32 = 3 // persistent ones too
)
