package zktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zkserver"
)

// Stat is the metadata of a node as a client sees it. Times are milliseconds since
// the Unix epoch by the server's wall clock.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// Node is one node of the tree, as the server knows it.
type Node struct {
	Path string
	Data []byte
	Stat Stat
	// Counter is the stored counter that the next sequential child gets as its
	// suffix.
	Counter int32
	// Container reports a container node. TTL is positive for a node with a time
	// to live.
	Container bool
	TTL       time.Duration
}

func publicNode(n zkserver.Node) Node {
	return Node{
		Path: n.Path, Data: n.Data, Stat: Stat(n.Stat),
		Counter: n.Counter, Container: n.Container, TTL: n.TTL,
	}
}

// Tree returns all nodes in the order of their paths, without the nodes of the
// system.
func (s *Server) Tree() []Node {
	var out []Node
	for _, n := range s.engine.Tree() {
		out = append(out, publicNode(n))
	}
	return out
}

// Node returns the node at path and whether there is one.
func (s *Server) Node(path string) (Node, bool) {
	n, ok := s.engine.Node(path)
	return publicNode(n), ok
}

// Children returns the names of the children of path in alphabetical order. It
// returns none if there is no such node.
func (s *Server) Children(path string) []string { return s.engine.Children(path) }

// Session is a session, as the server knows it.
type Session struct {
	ID int64
	// Client is the name of the link that made the session.
	Client string
	// Timeout is what client and server agreed on when the session was made.
	Timeout time.Duration
	// ExpiresIn is the time left without a further sign of life.
	ExpiresIn time.Duration
	// Connected reports whether a connection is attached.
	Connected bool
	// Ephemerals are the paths of the session's nodes, in alphabetical order.
	Ephemerals []string
}

// Sessions returns the live sessions in the order of their ids. A server numbers
// its sessions in the order in which they are made. So the oldest session comes
// first, and a session that replaces a lost one comes last. The members of an
// ensemble number apart: the sessions that member 1 made come before those of
// member 2. With more than one client, ask [ClientLink.Sessions] for the sessions
// of one.
func (s *Server) Sessions() []Session {
	all := s.engine.Sessions()
	out := make([]Session, 0, len(all))
	for _, ses := range all {
		out = append(out, Session(ses))
	}
	return out
}

// Watch is a watch that a connection has left.
type Watch struct {
	Path    string
	Client  string
	Session int64
	// Children is true for a watch on the list of children, false for a watch on the
	// node.
	Children bool
	// Persistent and Recursive report how the watch was left. If both are false, the
	// first event removes it.
	Persistent, Recursive bool
}

// Watches returns the watches of all connections in the order of their paths.
func (s *Server) Watches() []Watch {
	var out []Watch
	for _, w := range s.engine.Watches() {
		out = append(out, Watch(w))
	}
	return out
}

// WatchCount returns how many watches connections have left. It counts pairs of a
// path and a connection; a watch on the children counts apart.
func (s *Server) WatchCount() int { return s.engine.WatchCount() }

// Zxid returns the zxid of the last transaction applied.
func (s *Server) Zxid() int64 { return s.engine.Zxid() }

// ConnCount returns how many connections are open.
func (s *Server) ConnCount() int { return s.engine.ConnCount() }

// Dump describes nodes, sessions and watches, for failed tests.
func (s *Server) Dump() string {
	var b strings.Builder
	for _, n := range s.Tree() {
		fmt.Fprintf(&b, "node %s %q owner=%#x counter=%d", n.Path, n.Data,
			uint64(n.Stat.EphemeralOwner), n.Counter)
		if n.Container {
			b.WriteString(" container")
		}
		b.WriteByte('\n')
	}
	for _, ses := range s.Sessions() {
		fmt.Fprintf(&b, "session %#x client=%q timeout=%v left=%v connected=%v\n",
			uint64(ses.ID), ses.Client, ses.Timeout, ses.ExpiresIn, ses.Connected)
	}
	for _, w := range s.Watches() {
		fmt.Fprintf(&b, "watch %s client=%q session=%#x children=%v\n",
			w.Path, w.Client, uint64(w.Session), w.Children)
	}
	return b.String()
}
