package inside

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// ProtectedPrefix starts the name of a protected node; a UUID in its canonical form
// and a dash follow. It is the same as in Curator (ProtectedUtils), so each library
// knows the other's nodes.
const ProtectedPrefix = "_c_"

// Node is a node that [Functions.CreateAndList] or [Functions.CreateGroup] makes in
// Dir. It is protected, ephemeral and sequential, and its name is Prefix and a
// number. If Plain is set there is no number.
type Node[Client any] struct {
	Dir, Prefix string
	In          *Client // whose namespace Dir, and the path of the result, are in; nil: the session's
	Plain       bool
	Data        []byte
	ACL         []zk.ACL // of the node, and of parents that are made; nil: the client's default
	Persistent  bool     // parents that are made are persistent, and not containers
	List        bool     // list Dir behind the create
	Other       string   // another directory to list, in the same namespace; "" for none
	More        []string // directories to list behind Other, in the same namespace

	// Movable says in the UUID of the name that a client may delete the node while its maker
	// waits: the maker hears of that at once, and stands in line again. Of several nodes the
	// first one decides.
	Movable bool

	// Made is called if the server answers that the node was made, with its path and the
	// number of the connection. It is called on the goroutine that reads from the
	// connection, in the order in which the nodes were made, and before CreateAndList or
	// CreateGroup returns. It may be called after that has given up. It is not called for
	// a node that was found after its answer was lost. It must not block. Optional.
	Made func(path string, connection uint64)

	// Gone is called if CreateAndList or CreateGroup fails: as soon as no node of it stands or
	// can come to stand, or the client is closed. So it may be called long after that has
	// returned. Of several nodes that of the first one is called. It must not block. Optional.
	Gone func()
}

// Entry is a node that was made.
type Entry struct {
	Path  string // of the node
	Czxid int64  // the id of the transaction that made it: it grows with every create

	// Connection is the number of the connection on which the answer came, 0 if the node
	// was found after its answer was lost.
	Connection uint64

	// Children are the children of its parent, in no order, as seen at some moment
	// after the create; nil if they are not known.
	Children []string
	// Other are the children of the other directory that was listed, as seen after
	// Children; nil if they are not known. If that directory is missing there are
	// none.
	Other []string
	// More are the children of each directory of Node.More, in its order, as Other.
	More [][]string
	// Stats are the stats of the directories of More, as they were listed. One that is not
	// known, or of a directory that is missing, is zero.
	Stats []zk.Stat
}

// Guard is a watch on a node, of its data or of its children. The server sends its event
// before the answer to any request that it has run after the change (see
// seqqueue/chain.go). Say Holds is true when the answer to a create arrives on a
// connection. Then the node that stood when the guard was set still stood at that create.
// It had the same data, or the same children. It is safe for concurrent use and does not
// block.
type Guard interface {
	// Holds reports that the watch was set on the connection with this number, and has
	// not fired.
	Holds(connection uint64) bool
	// Stands reports that the watch has not fired on any connection.
	Stands() bool
	// Stop gives the watch up. It is removed from the server a moment later, unless
	// Resume is called before. It must not be called twice without Resume.
	Stop()
	// Resume takes Stop back, and reports whether the watch still stands.
	Resume() bool
}

// Holding is the reliance of one hold on nodes of a session. It ends before another
// client can see the nodes deleted with the session. While there is a holding,
// heartbeats prove the session. It is safe for concurrent use.
type Holding interface {
	// Err is nil while the nodes can be relied upon. It looks at the clocks
	// itself, so that a late timer cannot make a lost lock look held.
	Err() error

	// Deadline returns the instant before which no other client can see the session
	// end, by what is known now. Later proofs move it. It is as reliable as the
	// assumptions of the client.LeasePolicy, and counts the time for which this
	// machine was suspended.
	//
	// It is of use only while something is held. While nothing is held no heartbeat
	// proves the session, so Deadline may lie in the past although the session lives.
	// A session that is lost is ended on a server as soon as one is reachable.
	Deadline() time.Time

	// Jeopardy returns a channel that is closed while the connection is in doubt: it
	// is lost, or a heartbeat was not answered in time. Once the doubt is over
	// Jeopardy returns a new channel.
	Jeopardy() <-chan struct{}

	// Confirm commits a transaction that checks that the nodes exist, which proves
	// the session as well. The client repeats it by the retry policy. The error
	// matches client.ErrNoNode if a node does not exist.
	Confirm(ctx context.Context) error

	// Done ends the holding. It may be called more than once.
	Done()
}
