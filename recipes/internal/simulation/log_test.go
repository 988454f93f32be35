package simulation_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

func (w *world) stateChanged(n *node, s client.StateChange) {
	at := s.At.Sub(w.start)
	w.h.Note(func() {
		switch s.State {
		case client.Lost:
			w.h.Losses = append(w.h.Losses, sim.Loss{Client: n.name, Session: s.Session, At: at})
			w.sum.SessionsLost++
			w.sum.PartitionsHit += w.plan.partitioned(n.name, at)
		case client.Suspended:
			w.sum.Suspensions++
			w.sum.PartitionsHit += w.plan.partitioned(n.name, at)
		case client.Connecting, client.Connected, client.Closed:
		}
	})
}

// observe reads the server's log.
func (w *world) observe(r zktest.Request) {
	w.trace.request(w.now(), r)
	if r.Op == zktest.OpConnect && r.Session != 0 {
		w.h.Note(func() { w.h.Sessions[r.Session] = r.Client })
	}
	w.reads(r)
	if strings.Contains(r.Fault, "lose reply") || strings.Contains(r.Fault, "stall reply") {
		w.h.Note(func() { w.sum.RepliesLost++ })
	}
	if strings.Contains(r.Fault, "drop") {
		w.h.Note(func() { w.sum.Dropped++ })
	}
}

// reads notes what a client asks about a lock. A new connection gives reason to ask again.
func (w *world) reads(r zktest.Request) {
	switch r.Op { //nolint:exhaustive // the others read no node
	case zktest.OpConnect:
		w.h.Stirred(r.Client, "")
	case zktest.OpGetData, zktest.OpExists, zktest.OpGetChildren, zktest.OpGetChildren2:
		if l := w.lockOf(r.Path); l != nil {
			w.h.Read(r.Client, l.path, w.now())
		}
	}
}

// committed reads the log of commits. The answers of an ensemble's members tell
// too little and too late. What each client then knows of its own contenders must be right.
func (w *world) committed(c zktest.Commit) {
	for _, n := range w.nodes {
		if of := n.c.Load(); of != nil {
			if err := seqqueue.Audit(of); err != nil {
				w.leave(sim.ResidueChain, fmt.Sprintf("%s at %v: %v", n.name, w.now(), err))
			}
		}
	}
	for _, path := range slices.Concat(c.Created, c.Deleted, c.Changed) {
		if l := w.lockOf(path); l != nil {
			w.h.Stirred("", l.path)
		}
	}
	for _, path := range c.Created {
		l, role, ok := w.locate(path)
		if !ok {
			continue
		}
		n := sim.Node{Path: path, Lock: l.path, Role: role, Session: c.Session, Czxid: c.Zxid, Made: w.now(), Of: l.of, Recipe: recipeOf(path)}
		switch {
		case role != sim.RolePermit:
			w.h.NodeMade(n)
		case c.Session != 0: // an operator's node takes no permit
			w.h.PermitMade(n, c.Deleted)
		}
	}
	if c.Op == zktest.OpMulti {
		w.sentBehind(c.Deleted)
	}
	by := c.Session
	if c.Op == zktest.OpCloseSession {
		by = 0
	}
	w.h.NodesGone(w.now(), by, func(n *sim.Node) bool { return slices.Contains(c.Deleted, n.Path) })
}
