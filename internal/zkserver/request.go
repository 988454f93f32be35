package zkserver

import (
	"errors"
	"time"
)

// request is one request on its way through the server. It is guarded by the
// server's mutex once it has been submitted.
type request struct {
	s        *Server
	c        *conn // nil for what the server asks of itself
	client   string
	session  int64
	xid      int32
	op       Op
	logOp    Op // what the log calls it, where that differs
	body     []byte
	ids      []authID
	internal bool // not bound to a session

	// Of a request in an ensemble: the leader that prepared it, the timeout
	// of the session it opens, whether it has gone to the leader, and whether
	// a quorum has it.
	leader    *Server
	timeout   time.Duration
	sent      bool
	committed bool

	verdict Verdict
	path    string // for the log and for rules
	paths   []string
	flags   int32
	watch   bool
	// unknownPart is set for a transaction with a request of an unknown type.
	unknownPart bool
	at          time.Time

	txn *txn
	err Code
	// keepBody marks an error that is answered with the body as far as the
	// server had got.
	keepBody bool
	due      time.Time // when it may leave the log
	result   txnResult
}

// Request describes a request a server has received, for hooks and the log.
type Request struct {
	// Time is when the server read the frame.
	Time time.Time
	// Client is the name of the link the connection was dialed through; it
	// is empty for connections over TCP and for the server's own requests.
	Client string
	// Member is the number of the [Member] of an ensemble that read it, from
	// 1; zero for a server on its own.
	Member int
	// Conn numbers the server's connections from 1; 0 is the server itself.
	Conn int
	// Session is the session's id; for OpConnect the one asked for, until
	// the answer is known.
	Session int64
	Xid     int32
	Op      Op
	// Path is the path as requested: for a sequential create, without the
	// suffix. For a transaction it is the path of the first part, and Paths
	// holds those of all parts.
	Path  string
	Paths []string
	// Flags are the flags of a create.
	Flags int32
	// Watch reports whether a read asked to leave a watch.
	Watch bool
	// Zxid and Err are those of the reply. Result is the path a create made.
	// They are zero in a hook that runs before the request is applied.
	Zxid   int64
	Err    Code
	Result string
	// Fault names the rules that struck the request, in order.
	Fault string
}

// describe reads what hooks, rules and the log want to know of a request.
// Malformed bodies leave it empty: the server will say so in its answer.
func (r *request) describe() {
	d := decoder{b: r.body}
	switch r.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		r.path, _ = d.text()
		d.take(int(max(d.int(), 0))) // the data may be large: it is not copied
		d.acls()
		r.flags = d.int()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		w := d.watchedPath()
		r.path, r.watch = w.path, w.watch
	case OpDelete, OpSetData, OpGetACL, OpSetACL, OpSync, OpCheck, OpCheckWatches,
		OpRemoveWatches, OpGetEphemerals, OpGetAllChildrenNumber, OpAddWatch:
		r.path, _ = d.text()
	case OpMulti, OpMultiRead:
		for _, p := range d.multi(&r.s.cfg) {
			r.paths = append(r.paths, p.path)
		}
		r.unknownPart = errors.Is(d.err, errUnknownPart)
		if len(r.paths) > 0 {
			r.path = r.paths[0]
		}
	}
}

// public returns the exported view.
func (r *request) public() Request {
	op := r.op
	if r.logOp != 0 {
		op = r.logOp
	}
	out := Request{
		Time: r.at, Client: r.client, Session: r.session, Xid: r.xid, Op: op,
		Path: r.path, Paths: r.paths, Flags: r.flags, Watch: r.watch,
		Err: r.err, Fault: r.verdict.Names,
	}
	if r.c != nil {
		out.Conn = r.c.id
	}
	if r.s.member != nil {
		out.Member = r.s.member.id
	}
	if r.txn != nil {
		out.Zxid = r.txn.zxid
	}
	switch r.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		if r.err == CodeOK {
			out.Result = r.result.path
		}
	}
	return out
}

// knows reports whether the server has a processor for the type.
func (s *Server) knows(op Op) bool {
	switch op {
	case OpConnect, OpExpire:
		return false
	case OpCheck:
		return !s.cfg.traits.refusesCheck
	default:
		return opName(op) != "" && !s.cfg.lacks(op)
	}
}

func isWrite(op Op) bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer,
		OpSetData, OpSetACL, OpReconfig, OpMulti, OpCheck, OpSync:
		return true
	default:
		return false
	}
}
