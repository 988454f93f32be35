package cache

import (
	"context"
	"errors"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// mostLeaves is how many nodes without children wait for their watches.
const mostLeaves = 4096

// mayHaveChildren reports whether children of n would belong to the cache. No server
// lets an ephemeral node have any.
func (k *keeper[V]) mayHaveChildren(n *Node[V]) bool {
	return n.EphemeralOwner <= 0 && k.lists(n.Path)
}

// leaf notes that a node that is new to the cache has no children, as the reading of
// its data says. With one-shot watches it needs a watch on them. A comparison sets
// that, with those of many other nodes, in place of a list of each.
func (k *keeper[V]) leaf(t task, a inside.Answer) {
	k.floor = max(k.floor, a.Stat.Pzxid)
	k.doubts[t] = &doubt{bounds: []int64{a.Stat.Czxid - 1}, bare: a.Zxid}
	k.leaves = append(k.leaves, t)
}

// compareLeaves asks the server which of the nodes without children have some since they
// were read. This sets the watches on the children of the others. They are read like
// other nodes if they are few, or if the server cannot compare.
func (k *keeper[V]) compareLeaves(ctx context.Context) error {
	var asks []inside.Ask
	since := k.head
	for _, t := range k.leaves {
		if m := k.doubts[t]; m != nil && m.bare > 0 {
			asks = append(asks, inside.Ask{Path: t.path, Children: true})
			since = min(since, m.bare)
		}
	}
	if len(asks) < leastBatch {
		k.readLeaves()
		return nil
	}
	defer k.readLeaves() // those that are bare still
	k.comparing, k.since = true, since
	defer func() { k.comparing = false }()
	unasked, zxid, err := k.feed.Compare(ctx, since, asks)
	if errors.Is(err, client.ErrUnsupported) {
		k.plain = true
		return nil
	}
	if err != nil {
		return err
	}
	k.head = max(k.head, zxid)
	if err := k.absorb(); err != nil {
		return err
	}
	for _, ask := range unasked {
		k.readNext(task{ask.Path, ofChildren})
	}
	for _, t := range k.leaves {
		if m := k.doubts[t]; m != nil && m.bare > 0 {
			delete(k.doubts, t)
		}
	}
	return nil
}

// readLeaves makes sure that the lists of nodes without children are read, unless a
// watch on them stands.
func (k *keeper[V]) readLeaves() {
	for _, t := range k.leaves {
		k.readNext(t)
	}
	k.leaves = nil
}

// shrink gives up the memory that the reading of many nodes has taken.
func (k *keeper[V]) shrink() {
	if k.large {
		k.large, k.queue = false, nil
		k.doubts, k.queued = map[task]*doubt{}, map[task]struct{}{}
	}
}
