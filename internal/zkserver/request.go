package zkserver

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/internal/zkserver/jute"
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

// describe reads what hooks, rules and the log show of a request. It leaves a
// malformed body out; the answer of the server will say so.
func (r *request) describe() {
	d := jute.Decoder{B: r.body}
	switch r.op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		r.path, _ = d.Text()
		d.Take(int(max(d.Int(), 0))) // the data may be large: it is not copied
		d.ACLs()
		r.flags = d.Int()
	case zoodefs.OpExists, zoodefs.OpGetData, zoodefs.OpGetChildren, zoodefs.OpGetChildren2:
		w := d.WatchedPath()
		r.path, r.watch = w.Path, w.Watch
	case zoodefs.OpDelete, zoodefs.OpSetData, zoodefs.OpGetACL, zoodefs.OpSetACL, zoodefs.OpSync, zoodefs.OpCheck, zoodefs.OpCheckWatches,
		zoodefs.OpRemoveWatches, zoodefs.OpGetEphemerals, zoodefs.OpGetAllChildrenNumber, zoodefs.OpAddWatch:
		r.path, _ = d.Text()
	case zoodefs.OpMulti, zoodefs.OpMultiRead:
		for _, p := range d.Multi(r.s.cfg.lacks, r.s.cfg.traits.typedMulti) {
			r.paths = append(r.paths, p.Path)
		}
		r.unknownPart = errors.Is(d.Err, jute.ErrUnknownPart)
		if len(r.paths) > 0 {
			r.path = r.paths[0]
		}
	}
}

// public returns what observers and the judge see.
func (r *request) public() Request {
	op := r.op
	if r.logOp != 0 {
		op = r.logOp
	}
	out := Request{
		Time: r.at, Client: r.client, Session: r.session, Xid: r.xid, Op: op,
		Path: r.path, Paths: r.paths, Flags: r.flags, Watch: r.watch,
		Step: r.step, Err: r.err, Fault: r.verdict.Names,
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
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		if r.err == zoodefs.CodeOK {
			out.Result = r.result.path
		}
	}
	return out
}

// knows reports whether the server can process requests of the type.
func (s *Server) knows(op zoodefs.Op) bool {
	switch op {
	case zoodefs.OpConnect, zoodefs.OpExpire:
		return false
	case zoodefs.OpCheck:
		return !s.cfg.traits.refusesCheck
	default:
		return op.Known() && !s.cfg.lacks(op)
	}
}

func isWrite(op zoodefs.Op) bool {
	switch op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL, zoodefs.OpDelete, zoodefs.OpDeleteContainer,
		zoodefs.OpSetData, zoodefs.OpSetACL, zoodefs.OpReconfig, zoodefs.OpMulti, zoodefs.OpCheck, zoodefs.OpSync:
		return true
	default:
		return false
	}
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

// SetJudge makes judge decide about every request and every handshake from now
// on.
func (s *Server) SetJudge(judge Judge) {
	s.mu.Lock()
	s.judge = judge
	s.mu.Unlock()
}

// judged asks the judge about a request. The mutex is held.
func (s *Server) judged(r *request) Verdict {
	if s.judge == nil {
		return Verdict{}
	}
	return s.judge(r.public(), r.c.rng.Float64)
}
