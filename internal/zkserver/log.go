package zkserver

import (
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// journal keeps the requests whose outcome is known and tells observers. The
// servers of an ensemble share one. Their mutex guards it.
type journal struct {
	size      int
	observers []func(Request)
	log       []Request
	unseen    []Request // recorded, not yet given to observers
	reporting bool

	commitObservers []func(Commit)
	unseenCommits   []Commit
}

func newJournal(size int) *journal { return &journal{size: size} }

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
