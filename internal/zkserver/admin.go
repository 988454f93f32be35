package zkserver

import "github.com/docent-go/docent/internal/zoodefs"

// Create makes a persistent node as the super user. It takes a zxid and fires
// watches.
func (s *Server) Create(path string, data []byte) zoodefs.Code {
	e := &encoder{}
	e.text(path)
	e.buffer(data)
	e.acls(openACL())
	e.int(zoodefs.FlagPersistent)
	return s.perform(zoodefs.OpCreate, path, e.b)
}

// SetData sets the data of a node as the super user, whatever its version.
func (s *Server) SetData(path string, data []byte) zoodefs.Code {
	e := &encoder{}
	e.text(path)
	e.buffer(data)
	e.int(-1)
	return s.perform(zoodefs.OpSetData, path, e.b)
}

// Delete deletes a node without children as the super user, whatever its version.
func (s *Server) Delete(path string) zoodefs.Code {
	e := &encoder{}
	e.text(path)
	e.int(-1)
	return s.perform(zoodefs.OpDelete, path, e.b)
}

// perform sends a request of the server's own through the log. It does not wait
// while the log is slow.
func (s *Server) perform(op zoodefs.Op, path string, body []byte) zoodefs.Code {
	r := &request{
		s: s, op: op, path: path, body: body, internal: true, ids: []authID{{"super", ""}},
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
