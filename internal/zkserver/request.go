package zkserver

import (
	"context"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Request describes a request that a server has received. The fields are those of
// the type of the same name in package zktest.
type Request struct {
	Time    time.Time // when the server read the frame
	Client  string    // the name of the link; empty for the server itself
	Member  int       // zero for a server on its own
	Conn    int       // zero for the server itself
	Session int64
	Xid     int32
	Op      zoodefs.Op
	Path    string
	Paths   []string // of a transaction
	Flags   int32    // of a create
	Watch   bool
	Step    int // of a login by SASL: the number of its token, from 1
	Zxid    int64
	Err     zoodefs.Code
	Result  string // the path that a create made
	Fault   string // Names of the verdict
}

// Commit is a transaction that a [Server] has applied, or that a quorum of an
// [Ensemble] has.
type Commit struct {
	Time    time.Time // when the server or its leader committed it
	Zxid    int64
	Session int64 // the session that asked for it, or whose end it is
	Op      zoodefs.Op
	// Created and Deleted are the nodes that it makes and removes.
	Created, Deleted []string
	// Changed are the nodes whose data it sets.
	Changed []string
}

// Outgoing is a reply or a watch event that is to leave a connection.
type Outgoing struct {
	Number  int // counted by the server
	Client  string
	Conn    int
	Session int64
	Event   zoodefs.EventType // zero for a reply
	Path    string            // of the event
	Request Request           // that is answered
}

// Session is a session, as the server knows it.
type Session struct {
	ID         int64
	Client     string        // the name of the link that made it
	Timeout    time.Duration // as negotiated when it was made
	ExpiresIn  time.Duration // without a further sign of life
	Connected  bool
	Ephemerals []string // in alphabetical order
}

// Watch is a watch that a connection has left.
type Watch struct {
	Path     string
	Client   string
	Session  int64
	Children bool // on the list of children, and not on the node
	// If neither is set, the first event removes the watch.
	Persistent, Recursive bool
}

// Verdict says what becomes of one request. The zero Verdict lets it pass.
type Verdict struct {
	Drop       bool         // close the connection and do not apply the request
	LoseReply  bool         // apply the request and close the connection without the reply
	CloseAfter bool         // apply, answer, then close the connection
	Ignore     bool         // neither apply nor answer the request
	Stall      bool         // apply the request, then deliver nothing more
	Fail       zoodefs.Code // answer with this code and do not apply the request
	WrongProof bool         // answer a login with a proof that is none
	NullToken  bool         // answer a token of a login without a token, and without an error
	Delay      time.Duration
	ReplyDelay time.Duration
	// Before runs when the request has arrived, After before its reply is sent.
	// The context ends when the server closes.
	Before, After []func(context.Context, Request)
	// Names are the names of the faults, for the log.
	Names string
}

// Judge decides about a request. The server calls it with its mutex held, so it
// must not call the server. draw returns the next number in [0,1) of the
// connection's own generator.
type Judge func(r Request, draw func() float64) Verdict

func isWrite(op zoodefs.Op) bool {
	switch op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL, zoodefs.OpDelete, zoodefs.OpDeleteContainer,
		zoodefs.OpSetData, zoodefs.OpSetACL, zoodefs.OpReconfig, zoodefs.OpMulti, zoodefs.OpCheck, zoodefs.OpSync:
		return true
	default:
		return false
	}
}
