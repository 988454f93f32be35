package shared

import (
	"context"
	"iter"
	"slices"

	"github.com/docent-go/docent/client"
)

// SharedValue is a value of bytes that several processes share. It is Curator's
// SharedValue: a persistent node at the path, whose data is the value. Missing
// parents are made as containers. A [DistributedAtomicValue], here and in Curator,
// keeps its value in the same form.
//
// What is said of [SharedCount] holds for it: it keeps no copy, survives the
// deletion of its node, is safe for concurrent use and needs no Close. Slices that
// it returns are the caller's, and it keeps none that it is given.
type SharedValue struct { //nolint:revive // Curator's name, in its package
	node seeded[[]byte]
}

// VersionedValue is the value of a [SharedValue] at one moment.
type VersionedValue = Versioned[[]byte]

// NewSharedValue returns the value at path. It does no I/O: the first Get makes a
// missing node, with the value seed.
func NewSharedValue(c *client.Client, path string, seed []byte, opts ...Option) (*SharedValue, error) {
	n, err := newNode(c, path, bytesKind("value"), opts)
	if err != nil {
		return nil, err
	}
	return &SharedValue{seeded[[]byte]{node: n, seed: slices.Clone(seed)}}, nil
}

// Path is the path of the node.
func (s *SharedValue) Path() string { return s.node.path }

// Get returns the value, as new as the server that this client is connected to
// knows it. A missing node is made with the seed. The error is that of package
// client.
func (s *SharedValue) Get(ctx context.Context) (VersionedValue, error) {
	now, _, err := s.node.read(ctx, false)
	return now, err
}

// Set sets the value, whatever it was, and makes a missing node with it. After a
// lost answer and after errors the same holds as for [SharedCount.Set].
func (s *SharedValue) Set(ctx context.Context, v []byte) error { return s.node.set(ctx, v) }

// TrySet sets the value if nothing was written since Get or Changes read prev. It
// reports whether it set the value. What it is certain of, what its errors say, and
// which rights it takes is told at [SharedCount.TrySet].
func (s *SharedValue) TrySet(ctx context.Context, prev VersionedValue, v []byte) (bool, error) {
	return s.node.trySet(ctx, prev, v)
}

// Changes yields the value at once, and then every newer one that it sees, as
// [SharedCount.Changes] does.
func (s *SharedValue) Changes(ctx context.Context) iter.Seq2[VersionedValue, error] {
	return s.node.changes(ctx)
}

// Listen runs f with what [SharedValue.Changes] yields, as [SharedCount.Listen] does.
func (s *SharedValue) Listen(ctx context.Context, f func(VersionedValue)) (stop func()) {
	return s.node.listen(ctx, f)
}
