package simulation

import (
	"slices"
	"time"
)

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

// PermitMade records a permit. The nodes that its transaction removes must still stand:
// the permit came from the first places in the queue, one or several.
func (h *History) PermitMade(n Node, removed []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var passed []string // since the newest place that is removed
	for _, o := range h.Nodes {
		switch gone := slices.Contains(removed, o.Path); {
		case o.Lock != n.Lock || o.Gone != Never:
		case o.Role == RolePermit:
			n.Handed = n.Handed || gone
		case gone:
			n.Placed, n.Together = true, n.Placed
			n.Ahead, passed = append(n.Ahead, passed...), nil
		default:
			passed = append(passed, o.Path)
		}
	}
	if !n.Placed {
		n.Ahead = passed
	}
	h.made(&n)
}

// NodesGone records the end of all nodes that match, which a session has deleted;
// 0 means none, as when their own session has ended.
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
