package zktest

import (
	"fmt"
	"strings"

	"github.com/docent-go/docent/internal/zoodefs"
)

// OpError is the error of the server's own operations when ZooKeeper would refuse
// them.
type OpError struct {
	Op   Op
	Path string
	Code Code
}

// Error returns the operation, the path and the code.
func (e *OpError) Error() string {
	return fmt.Sprintf("zktest: %v %s: %v", e.Op, e.Path, e.Code)
}

// opError returns the error for the code of an operation, nil for CodeOK.
func opError(op Op, path string, code zoodefs.Code) error {
	if code == zoodefs.CodeOK {
		return nil
	}
	return &OpError{Op: op, Path: path, Code: Code(code)}
}

// Create makes a persistent node, and its parents if they are missing, as if another
// client had done it. It takes a zxid and fires watches. The error is an [*OpError],
// with [CodeNodeExists] if the node exists already.
func (s *Server) Create(path string, data []byte) error {
	for i, c := range path {
		if c != '/' || i == 0 {
			continue
		}
		parent := path[:i]
		if code := s.engine.Create(parent, []byte{}); code != zoodefs.CodeNodeExists {
			if err := opError(OpCreate, parent, code); err != nil {
				return err
			}
		}
	}
	return opError(OpCreate, path, s.engine.Create(path, data))
}

// SetData sets a node's data whatever its version. The error is an [*OpError].
func (s *Server) SetData(path string, data []byte) error {
	return opError(OpSetData, path, s.engine.SetData(path, data))
}

// Delete deletes a node whatever its version. It deletes all nodes below it before.
// The error is an [*OpError], with [CodeNoNode] if there is no such node.
func (s *Server) Delete(path string) error {
	for _, name := range s.Children(path) {
		// If another client was faster there is no child any more. If the child
		// cannot be deleted, the parent cannot be deleted either.
		_ = s.Delete(strings.TrimSuffix(path, "/") + "/" + name)
	}
	return opError(OpDelete, path, s.engine.Delete(path))
}

// ExpireSession ends a session now, as its timeout would: its ephemeral nodes are
// deleted in one transaction, and its connection is closed. It reports whether
// there was such a session. On a member of an ensemble the leader ends the session,
// and ExpireSession reports false if the member does not reach its leader. Use
// [ClientLink.ExpireSession] to end the session of a client by the client's name.
func (s *Server) ExpireSession(id int64) bool { return s.engine.ExpireSession(id) }

// MoveSession makes the connection of a session an old one, as if the client had
// gone to another server. The next request on the connection finds that the session
// has moved, and the server closes the connection without an answer. It reports
// whether the session has a connection.
func (s *Server) MoveSession(id int64) bool { return s.engine.MoveSession(id) }

// SetCounter presets the counter from which sequential children of path get their
// suffix. The counter cannot pass 2147483647: see the package comment. The error is
// an [*OpError] if there is no such node.
func (s *Server) SetCounter(path string, n int32) error {
	return opError(OpSetData, path, s.engine.SetCounter(path, n))
}

// SetVersion presets the version of a node's data. The error is an [*OpError] if
// there is no such node.
func (s *Server) SetVersion(path string, n int32) error {
	return opError(OpSetData, path, s.engine.SetVersion(path, n))
}

// SetZxid makes the next transaction take the number after zxid. An error says that
// zxid is less than the last number given out, and nothing has changed then.
func (s *Server) SetZxid(zxid int64) error {
	last, code := s.engine.SetZxid(zxid)
	return zxidError(zxid, last, code)
}

func zxidError(zxid, last int64, code zoodefs.Code) error {
	if code == zoodefs.CodeBadArguments {
		return fmt.Errorf("zktest: zxid %#x is less than %#x, the last one given out", zxid, last)
	}
	return opError(OpSetData, "", code)
}

// Sweep deletes what the container manager deletes at its intervals. These are
// containers that have had children and have none now, and TTL nodes without
// children that were not written for their time to live. It returns how many
// deletions it asked for. If the log is slow the deletions follow later.
func (s *Server) Sweep() int { return s.engine.Sweep() }
