package zkserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/watch"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Create makes a persistent node as the super user. It takes a zxid and fires
// watches.
func (s *Server) Create(path string, data []byte) zoodefs.Code {
	e := &jute.Encoder{}
	e.Text(path)
	e.Buffer(data)
	e.ACLs(jute.OpenACL())
	e.Int(zoodefs.FlagPersistent)
	return s.perform(zoodefs.OpCreate, path, e.B)
}

// SetData sets the data of a node as the super user, whatever its version.
func (s *Server) SetData(path string, data []byte) zoodefs.Code {
	e := &jute.Encoder{}
	e.Text(path)
	e.Buffer(data)
	e.Int(-1)
	return s.perform(zoodefs.OpSetData, path, e.B)
}

// Delete deletes a node without children as the super user, whatever its version.
func (s *Server) Delete(path string) zoodefs.Code {
	e := &jute.Encoder{}
	e.Text(path)
	e.Int(-1)
	return s.perform(zoodefs.OpDelete, path, e.B)
}

// perform sends a request of the server's own through the log. It does not wait
// while the log is slow.
func (s *Server) perform(op zoodefs.Op, path string, body []byte) zoodefs.Code {
	r := &request{
		s: s, op: op, path: path, body: body, internal: true, ids: []access.ID{{Scheme: "super"}},
	}
	s.mu.Lock()
	s.submit(r)
	code := r.err
	s.mu.Unlock()
	s.report()
	return code
}

// ExpireSession ends a session now, as its timeout would, and reports whether there
// was such a session. In an ensemble the leader ends it; if the member does not reach
// its leader, ExpireSession reports false.
func (s *Server) ExpireSession(id int64) bool {
	s.mu.Lock()
	a := s.authority()
	if a == nil {
		s.mu.Unlock()
		return false
	}
	ses := a.sessions[id]
	live := ses != nil && !ses.closing
	a.expire(id)
	s.mu.Unlock()
	s.report()
	return live
}

// MoveSession makes the connection of a session an old one. The next request on it
// finds that the session has moved to another server, and the server closes the
// connection without an answer. It reports whether the session has a connection.
func (s *Server) MoveSession(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.sessions[id]
	if ses == nil || ses.conn == nil {
		return false
	}
	ses.conn.moved = true
	return true
}

// SetCounter presets the counter from which sequential children of path get their
// suffix.
func (s *Server) SetCounter(path string, n int32) zoodefs.Code {
	return s.preset(path, func(st *storedStat) { st.cversion = n })
}

// SetVersion presets the version of a node's data.
func (s *Server) SetVersion(path string, n int32) zoodefs.Code {
	return s.preset(path, func(st *storedStat) { st.version = n })
}

func (s *Server) preset(path string, set func(*storedStat)) zoodefs.Code {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.nodes[path]
	if n == nil {
		return zoodefs.CodeNoNode
	}
	set(&n.stat)
	if rec := s.prep.latest[path]; rec != nil && rec.stat != nil {
		set(rec.stat)
	}
	return zoodefs.CodeOK
}

// SetZxid makes the next transaction take the number after zxid. It returns the
// last number that has been given out; when zxid is less, the code is
// [zoodefs.CodeBadArguments] and nothing has changed.
func (s *Server) SetZxid(zxid int64) (last int64, code zoodefs.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last = s.prep.zxid
	if zxid < last {
		return last, zoodefs.CodeBadArguments
	}
	s.prep.zxid, s.tree.lastZxid = zxid, zxid
	return last, zoodefs.CodeOK
}

// Node is one node of the tree, as the server knows it.
type Node struct {
	Path string
	Data []byte
	Stat jute.Stat
	// Counter is the suffix of the next sequential child.
	Counter int32
	// Container reports a container node. TTL is positive for a node with a time
	// to live.
	Container bool
	TTL       time.Duration
}

// Tree returns all nodes in the order of their paths, without the nodes of the
// system.
func (s *Server) Tree() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Node
	for path, n := range s.tree.nodes {
		if path == "" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") ||
			s.cfg.has(QuirkKeeperNodes) && inKeeperFolder(path) {
			continue
		}
		out = append(out, s.tree.public(path, n))
	}
	slices.SortFunc(out, func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func (t *dataTree) public(path string, n *dataNode) Node {
	out := Node{Path: path, Data: slices.Clone(n.data), Stat: t.stat(n), Counter: n.stat.cversion}
	switch kindOf(n.stat.owner) {
	case ownerContainer:
		out.Container = true
	case ownerTTL:
		out.TTL = time.Duration(n.stat.owner&maxTTL) * time.Millisecond
	case ownerNone, ownerSession:
	}
	return out
}

// Node returns the node at path and whether there is one.
func (s *Server) Node(path string) (Node, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.nodes[path]
	if n == nil {
		return Node{}, false
	}
	return s.tree.public(path, n), true
}

// Children returns the names of the children of path in alphabetical order. It
// returns none if there is no such node.
func (s *Server) Children(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.nodes[path]
	if n == nil {
		return nil
	}
	return n.childNames()
}

// Sessions returns the live sessions in the order of their ids.
func (s *Server) Sessions() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Session, 0, len(s.sessions))
	for id, ses := range s.sessions {
		if ses.closing {
			continue
		}
		at := s.epoch.Add(time.Duration(s.expiryOf(ses)) * s.cfg.Tick)
		out = append(out, Session{
			ID: id, Client: ses.client, Timeout: ses.timeout, ExpiresIn: time.Until(at),
			Connected: ses.conn != nil, Ephemerals: s.tree.ephemeralsOf(id),
		})
	}
	slices.SortFunc(out, func(a, b Session) int {
		return int(min(max(a.ID-b.ID, -1), 1))
	})
	return out
}

// Watches returns the watches of all connections in the order of their paths.
func (s *Server) Watches() []Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Watch
	for k, t := range s.watches.Tables {
		for path, conns := range t.ByPath {
			for c, m := range conns {
				out = append(out, Watch{
					Path: path, Client: c.owner.name, Session: c.session,
					Children:   watch.TableKind(k) == watch.ChildTable,
					Persistent: m&watch.Persistent != 0, Recursive: m&watch.Recursive != 0,
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b Watch) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return out
}

// WatchCount returns how many watches connections have left. It counts pairs of a
// path and a connection; a watch on the children counts apart.
func (s *Server) WatchCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches.Size()
}

// Zxid returns the zxid of the last transaction applied.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.lastZxid
}

// ConnCount returns how many connections are open.
func (s *Server) ConnCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
