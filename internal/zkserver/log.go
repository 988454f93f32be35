package zkserver

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zoodefs"
)

// record notes a request whose outcome is known. The mutex is held.
func (s *Server) record(r *request) {
	j := s.journal
	if len(j.observers) == 0 && j.size <= 0 {
		return
	}
	seen := r.public()
	if j.size > 0 {
		if len(j.log) >= 2*j.size {
			j.log = append(j.log[:0], j.log[j.size:]...)
		}
		j.log = append(j.log, seen)
	}
	if len(j.observers) > 0 {
		j.unseen = append(j.unseen, seen)
	}
}

// report calls the observers, without the mutex and for one request at a time.
func (s *Server) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal
	if j.reporting {
		return // another goroutine reports, and goes on until nothing is left
	}
	j.reporting = true
	for len(j.unseen)+len(j.unseenCommits) > 0 {
		batch, observers := j.unseen, j.observers
		commits, commitObservers := j.unseenCommits, j.commitObservers
		j.unseen, j.unseenCommits = nil, nil
		s.mu.Unlock()
		for _, c := range commits {
			for _, f := range commitObservers {
				f(c)
			}
		}
		for _, r := range batch {
			for _, f := range observers {
				f(r)
			}
		}
		s.mu.Lock()
	}
	j.reporting = false
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

// OnRequest calls f for every request from now on, when its outcome is known. Calls
// come one at a time and in the order of the server's decisions, without the mutex.
// In an ensemble f gets the requests to all members.
func (s *Server) OnRequest(f func(Request)) {
	s.mu.Lock()
	s.journal.observers = append(slices.Clip(s.journal.observers), f)
	s.mu.Unlock()
}

// Log returns the most recent requests, the oldest first. In an ensemble it returns
// the requests to all members.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.journal.log...)
}

// ResetCounts sets all counts to zero.
func (s *Server) ResetCounts() {
	s.mu.Lock()
	s.counts = newCounts()
	s.mu.Unlock()
}

// Counts returns what the server has counted since its start or since
// ResetCounts.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Ops = maps.Clone(c.Ops)
	return c
}

// OnCommit calls f for every transaction from now on that makes, removes or
// sets nodes, when the server or its leader commits it. f is called as [Server.OnRequest] says.
func (s *Server) OnCommit(f func(Commit)) {
	s.mu.Lock()
	s.journal.commitObservers = append(slices.Clip(s.journal.commitObservers), f)
	s.mu.Unlock()
}

// noteCommit tells observers of a transaction. The mutex is held.
func (j *journal) noteCommit(x *txn) {
	if len(j.commitObservers) == 0 {
		return
	}
	c := Commit{Time: time.Now(), Zxid: x.zxid, Session: x.session, Op: x.op}
	c.describe(x)
	if len(c.Created)+len(c.Deleted)+len(c.Changed) > 0 {
		j.unseenCommits = append(j.unseenCommits, c)
	}
}

// describe adds what a transaction does to the tree.
func (c *Commit) describe(x *txn) {
	switch x.op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		c.Created = append(c.Created, x.path)
	case zoodefs.OpDelete, zoodefs.OpDeleteContainer:
		c.Deleted = append(c.Deleted, x.path)
	case zoodefs.OpSetData, zoodefs.OpReconfig:
		c.Changed = append(c.Changed, x.path)
	case zoodefs.OpCloseSession:
		c.Deleted = append(c.Deleted, x.paths...)
	case zoodefs.OpMulti:
		if slices.ContainsFunc(x.parts, func(p *txn) bool { return p.op == zoodefs.OpError }) {
			return
		}
		for _, p := range x.parts {
			c.describe(p)
		}
	default:
	}
}
