package nodes

import (
	"context"

	"github.com/docent-go/docent/client"
)

// observe tells the hook of the client's observer of each status, until ctx ends, which is that of a
// life, or the node is removed for good. It has a goroutine of its own, as the hook may block.
func (n *PersistentNode) observe(ctx context.Context, hook func(client.NodeInfo) func(client.NodeUpdate)) {
	tell := hook(client.NodeInfo{Recipe: n.recipe, Path: n.base})
	if tell == nil {
		return
	}
	var last Status
	for last = range n.Changes(ctx) {
		if last.State != Removed && !n.isOver() {
			tell(client.NodeUpdate{State: observed(last.State), Err: last.Err})
		}
	}
	tell(client.NodeUpdate{State: client.NodeEnded, Err: last.Err})
}

// observed is what observers are told of a node that goes on.
func observed(s State) client.NodeState {
	switch s {
	case Ours:
		return client.NodeStands
	case Foreign:
		return client.NodeForeign
	case Refused:
		return client.NodeRefused
	default:
		return client.NodeAbsent
	}
}

func (n *PersistentNode) isOver() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.over
}
