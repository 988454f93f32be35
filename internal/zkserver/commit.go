package zkserver

import (
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

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
	case zoodefs.OpSetData:
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
