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
// After >= Z. If the event came before the answer, After < Z. When Read or
// ReadAtOnce returns, all events that came before its answers are there to be taken.
type Feed interface {
	// Ready holds a token when there may be something to take, or the feed is over.
	Ready() <-chan struct{}
	// Take returns the events since the last call, in their order. An event of kind
	// FeedMissed is the first of its slice: events before it may be missing, and on
	// which connection the feed goes on may have changed. The error says why the feed
	// is over.
	Take() ([]FeedEvent, error)
	// Read reads nodes and returns its head: the last transaction that its last answer shows.
	// It fails if the connection is not the one of the last FeedMissed that was taken.
	//
	// With a persistent watch it is one request, and all answers show the state at the head.
	// It knows no Missing, and an answer with Names has no Stat. An error fails all: it
	// matches client.ErrReplyTooLarge if the answers together are too large, and
	// client.ErrUnsupported where the servers have no such request.
	//
	// With one-shot watches it is one write of many requests. Each answer without an error
	// leaves a watch, and so does the answer that a missing node is still missing.
	// Answer.Unwatched names the exceptions.
	Read(ctx context.Context, asks []Ask) (head int64, answers []Answer, err error)
	// Sync waits until the server has caught up with the leader, and returns the zxid
	// of its answer.
	Sync(ctx context.Context) (int64, error)
	// Connection is the connection of the last FeedMissed that was taken.
	Connection() int
	// Session is the session of that connection, and its timeout. The id is 0 if the client
	// has another connection by now.
	Session() (id int64, timeout time.Duration)
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
	Err error // no node, no permission, or another refusal
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
