package zktest

import (
	"fmt"
	"strings"
)

// OpError is what the server's own operations return when ZooKeeper would
// refuse them.
type OpError struct {
	Op   Op
	Path string
	Code Code
}

// Error returns the operation, the path and the code.
func (e *OpError) Error() string {
	return fmt.Sprintf("zktest: %v %s: %v", e.Op, e.Path, e.Code)
}

// Create makes a persistent node, and its parents where they are missing, as
// if another client had done it: it takes a zxid and fires watches. The error
// is an [*OpError], with [CodeNodeExists] if the node is there already.
func (s *Server) Create(path string, data []byte) error {
	for i, c := range path {
		if c != '/' || i == 0 {
			continue
		}
		if err := s.create(path[:i], []byte{}); err != nil && err.Code != CodeNodeExists {
			return err
		}
	}
	if err := s.create(path, data); err != nil {
		return err
	}
	return nil
}

func (s *Server) create(path string, data []byte) *OpError {
	e := &encoder{}
	e.text(path)
	e.buffer(data)
	e.acls(openACL())
	e.int(flagPersistent)
	return s.perform(OpCreate, path, e.b)
}

// SetData sets a node's data whatever its version. The error is an [*OpError].
func (s *Server) SetData(path string, data []byte) error {
	e := &encoder{}
	e.text(path)
	e.buffer(data)
	e.int(-1)
	if err := s.perform(OpSetData, path, e.b); err != nil {
		return err
	}
	return nil
}

// Delete deletes a node whatever its version, and all nodes below it first. The
// error is an [*OpError], with [CodeNoNode] if there is no such node.
func (s *Server) Delete(path string) error {
	for _, name := range s.Children(path) {
		below := strings.TrimSuffix(path, "/") + "/" + name
		// Somebody else may be faster; the parent's deletion will tell.
		_ = s.Delete(below)
	}
	e := &encoder{}
	e.text(path)
	e.int(-1)
	if err := s.perform(OpDelete, path, e.b); err != nil {
		return err
	}
	return nil
}

// perform sends a request of the server's own through the log. It does not
// wait where the log is slow.
func (s *Server) perform(op Op, path string, body []byte) *OpError {
	r := &request{
		s: s, op: op, path: path, body: body, internal: true, ids: []authID{{"super", ""}},
	}
	s.mu.Lock()
	s.submit(r)
	code := r.err
	s.mu.Unlock()
	s.report()
	if code != CodeOK {
		return &OpError{Op: op, Path: path, Code: code}
	}
	return nil
}

// ExpireSession ends a session now, as its timeout would: its ephemerals go in
// one transaction and its connection is closed. It reports whether there was
// such a session.
func (s *Server) ExpireSession(id int64) bool {
	s.mu.Lock()
	ses := s.sessions[id]
	live := ses != nil && !ses.closing
	s.expire(id)
	s.mu.Unlock()
	s.report()
	return live
}

// MoveSession makes the connection of a session an old one: its next request
// finds that the session has moved to another server and is cut off without an
// answer. It reports whether the session has a connection.
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

// SetCounter presets the counter from which sequential children of path get
// their suffix. The counter cannot pass 2147483647: see the package comment.
// The error is an [*OpError] if there is no such node.
func (s *Server) SetCounter(path string, n int32) error {
	return s.preset(path, func(st *storedStat) { st.cversion = n })
}

// SetVersion presets the version of a node's data. The error is an [*OpError]
// if there is no such node.
func (s *Server) SetVersion(path string, n int32) error {
	return s.preset(path, func(st *storedStat) { st.version = n })
}

func (s *Server) preset(path string, set func(*storedStat)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.nodes[path]
	if n == nil {
		return &OpError{Op: OpSetData, Path: path, Code: CodeNoNode}
	}
	set(&n.stat)
	if rec := s.prep.latest[path]; rec != nil && rec.stat != nil {
		set(rec.stat)
	}
	return nil
}

// SetZxid makes the next transaction take the number after zxid. It must not
// be less than the last one given out.
func (s *Server) SetZxid(zxid int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if zxid < s.prep.zxid {
		return fmt.Errorf("zktest: zxid %#x is behind %#x", zxid, s.prep.zxid)
	}
	s.prep.zxid, s.tree.lastZxid = zxid, zxid
	return nil
}
