package cache

import (
	"iter"

	"github.com/docent-go/docent/client"
)

// Tree follows a node and the nodes below it.
type Tree[V any] struct{ *follower[V] }

// NewTree returns a cache of the tree below path, the node at path included. It does
// no I/O before Start. The node need not exist. A tree of the servers' own root leaves
// out /zookeeper, where the servers keep their own nodes.
func NewTree[V any](c *client.Client, path string, codec Codec[V], opts ...Option) (*Tree[V], error) {
	f, err := newFollower(c, "Tree", path, codec, -1, opts)
	if err != nil {
		return nil, err
	}
	return &Tree[V]{f}, nil
}

// LooseTree follows a tree that changes too fast for a [Tree]. It shows each node as it was read
// last, as Curator's caches do. So its snapshots may be no states that the servers had: of two
// nodes that one transaction has set, one may be new and the other old. A snapshot with Zxid Z
// has at least all transactions up to Z. The state is Synced while no change waits for its
// reading for longer than that of a Tree may wait for its snapshot. If more changes in a round
// trip than one request can read, about 1 MiB of data, the tree is Stale as long as that lasts.
type LooseTree[V any] struct{ *follower[V] }

// NewLooseTree returns a cache like that of [NewTree], but for what its snapshots promise.
func NewLooseTree[V any](c *client.Client, path string, codec Codec[V], opts ...Option) (*LooseTree[V], error) {
	f, err := newFollower(c, "LooseTree", path, codec, -1, opts)
	if err != nil {
		return nil, err
	}
	f.loose = true
	return &LooseTree[V]{f}, nil
}

// Children follows a directory: the node at path and the nodes right below it.
type Children[V any] struct{ *follower[V] }

// NewChildren returns a cache of a directory. It does no I/O before Start. The
// directory need not exist. The cache has one-shot watches, so it hears nothing of nodes further
// below; a new child costs a list of all and a read. For a large directory without anything
// further below, [NewTree] with [WithDepth] of 1 is cheaper: a new child costs one read. The codec decodes the data of the directory too. A
// directory without data is therefore [Undecodable] to [JSON], which does not matter
// to a reader that looks at its children alone.
func NewChildren[V any](c *client.Client, path string, codec Codec[V], opts ...Option) (*Children[V], error) {
	f, err := newFollower(c, "Children", path, codec, 1, opts)
	if err != nil {
		return nil, err
	}
	f.narrow = true
	return &Children[V]{f}, nil
}

// All yields the names and nodes right below the path, in the order of the names, as
// the newest snapshot has them.
func (c *Children[V]) All() iter.Seq2[string, Node[V]] { return c.Snapshot().Children(c.path) }

// Value follows one node.
type Value[V any] struct{ *follower[V] }

// NewValue returns a cache of one node. It does no I/O before Start. The node need not
// exist.
func NewValue[V any](c *client.Client, path string, codec Codec[V], opts ...Option) (*Value[V], error) {
	f, err := newFollower(c, "Value", path, codec, 0, opts)
	if err != nil {
		return nil, err
	}
	return &Value[V]{f}, nil
}

// Get returns the node as the newest snapshot has it, and whether there is one.
func (v *Value[V]) Get() (Node[V], bool) { return v.Snapshot().Root() }
