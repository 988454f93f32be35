package simulation

import (
	"slices"
	"time"
)

// Role is what a node says of its owner.
type Role int

// The roles.
const (
	RolePlace  Role = iota // it waits or, when its turn has come, holds
	RoleQueue              // it waits for permits, and goes when they are made
	RolePermit             // it holds one permit
)

// Node is a contender's node, as the server's log tells.
type Node struct {
	Path, Lock string
	Role       Role
	Session    int64 // 0 for one of an operator's
	Czxid      int64
	Made, Gone time.Duration // Never: it still stands
	Given      bool          // it was deleted by its own session
	Inherited  bool          // it was deleted by a later session of its client

	// Of a permit: how many there are, how many stood when it was made, itself
	// included, and the older places that stood before the one that it came from.
	Of, Beside int
	Ahead      []string
}

// NodeMade records a contender's node.
func (h *History) NodeMade(n Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made(&n)
}

func (h *History) made(n *Node) {
	n.Gone = Never
	h.Nodes = append(h.Nodes, n)
}

// PermitMade records a permit. The places in the queue that its transaction
// removes must still stand: the permit came from the first of them.
func (h *History) PermitMade(n Node, removed []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var older []string
	claimed := false
	n.Beside = 1
	for _, o := range h.Nodes {
		switch {
		case o.Lock != n.Lock || o.Gone != Never:
		case o.Role == RolePermit:
			n.Beside++
		case claimed:
		case slices.Contains(removed, o.Path):
			claimed = true
		default:
			older = append(older, o.Path)
		}
	}
	if n.Ahead = older; !claimed {
		n.Ahead = append(n.Ahead, "(without a place in the queue)")
	}
	h.made(&n)
}

// NodesGone records the end of all nodes that match, which a session has
// deleted; 0 stands for nobody, as when their own session has ended.
func (h *History) NodesGone(at time.Duration, by int64, match func(*Node) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.Nodes {
		if n.Gone == Never && match(n) {
			n.Gone, n.Given = at, by != 0 && by == n.Session
			n.Inherited = by != n.Session && h.Sessions[by] != "" && h.Sessions[by] == h.Sessions[n.Session]
		}
	}
}

// Standing returns the paths of the contenders of a lock that still stand, in
// the order in which they were made.
func (h *History) Standing(lock string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var paths []string
	for _, n := range h.Nodes {
		if n.Lock == lock && n.Gone == Never {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// First returns the session of the oldest contender that stands, 0 if none does.
func (h *History) First(lock string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.Nodes {
		if n.Lock == lock && n.Gone == Never {
			return n.Session
		}
	}
	return 0
}
