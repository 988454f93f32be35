package zktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zkserver"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Request describes a request that a server has received, for hooks and the log.
type Request struct {
	// Time is when the server read the frame.
	Time time.Time
	// Client is the name of the link that the connection was dialed through. It is
	// empty for the server's own requests, and [TCPClient] for connections over TCP.
	Client string
	// Member is the number, from 1, of the [Member] of an ensemble that read the
	// request; zero for a server on its own.
	Member int
	// Conn is the number, from 1, of the connection to the server; 0 means the
	// server itself.
	Conn int
	// Session is the session's id. For OpConnect it is the session that the client
	// asked for, until the answer is known.
	Session int64
	Xid     int32
	Op      Op
	// Path is the path as the client wrote it: for a sequential create, without the
	// suffix. For a transaction it is the path of the first part, and Paths holds
	// the paths of all parts.
	Path  string
	Paths []string
	// Flags are the flags of a create.
	Flags int32
	// Watch reports whether a read asked to leave a watch.
	Watch bool
	// Step is the number, from 1, of the token of a login by SASL that the request
	// brings; the second of DIGEST-MD5 is the response to the server's challenge.
	Step int
	// Zxid and Err are those of the reply. Result is the path that a create made.
	// All three are zero in a hook that runs before the request is applied.
	Zxid   int64
	Err    Code
	Result string
	// Fault names the rules that struck the request, in order.
	Fault string
}

func publicRequest(r zkserver.Request) Request {
	return Request{
		Time: r.Time, Client: r.Client, Member: r.Member, Conn: r.Conn, Session: r.Session,
		Xid: r.Xid, Op: Op(r.Op), Path: r.Path, Paths: r.Paths, Flags: r.Flags, Watch: r.Watch, Step: r.Step,
		Zxid: r.Zxid, Err: Code(r.Err), Result: r.Result, Fault: r.Fault,
	}
}

// String returns one line about the request, for logs and failed tests.
func (r Request) String() string {
	var b strings.Builder
	b.WriteString(r.Time.Format("15:04:05.000000"))
	if r.Member != 0 {
		fmt.Fprintf(&b, " member=%d", r.Member)
	}
	fmt.Fprintf(&b, " client=%q conn=%d session=%#x xid=%d %v",
		r.Client, r.Conn, uint64(r.Session), r.Xid, r.Op)
	switch {
	case len(r.Paths) > 1:
		fmt.Fprintf(&b, " %s", strings.Join(r.Paths, " "))
	case r.Path != "":
		fmt.Fprintf(&b, " %s", r.Path)
	}
	if r.Result != "" && r.Result != r.Path {
		fmt.Fprintf(&b, " -> %s", r.Result)
	}
	if r.Zxid != 0 {
		fmt.Fprintf(&b, " zxid=%#x", r.Zxid)
	}
	if r.Err != CodeOK {
		fmt.Fprintf(&b, " err=%v", r.Err)
	}
	if r.Fault != "" {
		fmt.Fprintf(&b, " fault=%q", r.Fault)
	}
	return b.String()
}

// Commit is a transaction that a [Server] has applied, or that a quorum of an
// [Ensemble] has.
type Commit struct {
	Time    time.Time // when the server or its leader committed it
	Zxid    int64
	Session int64 // the session that asked for it, or whose end it is
	Op      Op
	// Created and Deleted are the nodes that it makes and removes.
	Created, Deleted []string
	// Changed are the nodes whose data it sets.
	Changed []string
}

// OnRequest calls f for every request from now on, when its outcome is known. Then
// the server has applied and answered it, or a rule has struck it. Calls come one at
// a time and in the order of the server's decisions, on the server's goroutines. f
// may call the server, but while f runs no other request is reported. On a member of
// an ensemble OnRequest reports the requests to all members.
func (s *Server) OnRequest(f func(Request)) {
	s.engine.OnRequest(func(r zkserver.Request) { f(publicRequest(r)) })
}

// OnCommit calls f, from now on, for every transaction that makes or removes nodes or sets
// their data. It calls f when the server applies the transaction, before any client is told.
// [Server.OnRequest] reports a request when it is answered; OnCommit also reports what a
// transaction of several parts made, and what was deleted with a session. f is called as
// [Server.OnRequest] says. On a member of an ensemble it is [Ensemble.OnCommit].
func (s *Server) OnCommit(f func(Commit)) {
	s.engine.OnCommit(func(c zkserver.Commit) {
		f(Commit{
			Time: c.Time, Zxid: c.Zxid, Session: c.Session, Op: Op(c.Op),
			Created: c.Created, Deleted: c.Deleted, Changed: c.Changed,
		})
	})
}

// Log returns the most recent requests, the oldest first: at least as many as
// [WithLogSize] says, if there were so many. On a member of an ensemble it returns
// the requests to all members.
func (s *Server) Log() []Request {
	log := s.engine.Log()
	if len(log) == 0 {
		return nil
	}
	out := make([]Request, 0, len(log))
	for _, r := range log {
		out = append(out, publicRequest(r))
	}
	return out
}

// ResetCounts sets the counts of requests, events and expired sessions to zero, so
// that a test can count what one of its steps does.
func (s *Server) ResetCounts() { s.engine.ResetCounts() }

// Count returns how many requests of the type have arrived, including requests that
// a rule has struck.
func (s *Server) Count(op Op) int { return s.engine.Counts().Ops[zoodefs.Op(op)] }

// Counts returns how many requests of each type have arrived.
func (s *Server) Counts() map[Op]int {
	out := map[Op]int{}
	for op, n := range s.engine.Counts().Ops {
		out[Op(op)] = n
	}
	return out
}

// EventCount returns how many watch events have been sent.
func (s *Server) EventCount() int { return s.engine.Counts().Events }

// ExpiredCount returns how many sessions the server has ended.
func (s *Server) ExpiredCount() int { return s.engine.Counts().Expired }
