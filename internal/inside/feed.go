package inside

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// Feed is what a cache needs of the client: events and replies of one connection, in
// an order that can be told. It is for one goroutine.
//
// Every answer carries a zxid Z: the answer shows the state after exactly the
// transactions up to Z. Z never goes back on a connection. Every event of a
// transaction z carries a bound After < z. If an answer with Z came before the event,
// After >= Z. If the event came before the answer, After < Z. When Read returns, all
// events that came before its answers are there to be taken. The comparison of another
// Feed may end a one-shot watch by an event that is of no later transaction.
type Feed interface {
	// Ready holds a token when there may be something to take, or the feed is over.
	Ready() <-chan struct{}
	// Take returns the events since the last call, in their order. An event of kind
	// FeedMissed is the first of its slice: events before it may be missing, and on
	// which connection the feed goes on may have changed. The error says why the feed
	// is over.
	Take() ([]FeedEvent, error)
	// Read sends the requests in one write and waits for the answers. It fails if the
	// connection is not the one of the last FeedMissed that was taken. With one-shot
	// watches, each answer without an error leaves a watch, and so does the answer
	// that a missing node is still missing. Answer.Unwatched names the exceptions.
	Read(ctx context.Context, asks []Ask) ([]Answer, error)
	// Sync waits until the server has caught up with the leader, and returns the zxid
	// of its answer.
	Sync(ctx context.Context) (int64, error)
	// Compare asks the server which nodes have changed since a transaction. Those come
	// as events, except for those that are returned, of which the server was not
	// asked. The events have come when Compare returns. The zxid is that of the last
	// answer, 0 without one. Where the servers cannot compare, the error matches
	// client.ErrUnsupported.
	Compare(ctx context.Context, since int64, asks []Ask) (unasked []Ask, zxid int64, err error)
	// Connection is the connection of the last FeedMissed that was taken.
	Connection() int
	// Close ends the feed. The client removes its watches in the background.
	Close()
}

// FeedMode says which watches a Feed uses.
type FeedMode int

// The modes of a feed.
const (
	FeedDeep    FeedMode = iota // a persistent watch on the node and all below it
	FeedNode                    // a persistent watch on the node
	FeedOneShot                 // the watches that its reads leave
)

// Ask asks for the data of a node, or for its children, or, if the node is Missing,
// whether it has been created.
type Ask struct {
	Path     string // in the client's namespace
	Children bool
	Missing  bool
}

// Answer answers an Ask.
type Answer struct {
	Zxid int64
	Err  error // no node, no permission, or another refusal
	// Unwatched says that no watch stands of which the feed would hear: an event that
	// came before the answer has ended it.
	Unwatched bool
	Data      []byte
	Names     []string
	Stat      zk.Stat
}

// FeedKind is the kind of a FeedEvent.
type FeedKind int

// The kinds of events.
const (
	FeedMissed FeedKind = iota
	FeedCreated
	FeedDeleted
	FeedData
	FeedChildren
)

// FeedEvent is an event of a Feed.
type FeedEvent struct {
	Kind  FeedKind
	Path  string // in the client's namespace
	Zxid  int64  // its transaction, -1 if the server does not say it
	After int64  // less than its transaction
}

// Contact tells whether a client is connected.
type Contact struct {
	Connected  bool
	Closed     bool
	Connection int             // the connection, counted
	Since      time.Time       // of the state
	Err        error           // why it is not connected
	Changed    <-chan struct{} // closed at the next change
}
