package shared

import (
	"context"
	"slices"

	"github.com/docent-go/docent/client"
)

// DistributedAtomicValue is a value of bytes that several processes change. It is
// Curator's DistributedAtomicValue: a persistent node at the path, whose data is the
// value. A missing node reads as nil. What is said of [DistributedAtomicLong] of lost
// answers, errors, marks and merged operations holds here.
//
// It keeps no slice that it is given once the operation has ended. Slices that it
// returns must not be changed: goroutines may share them.
type DistributedAtomicValue struct{ atom *atom[[]byte] }

// NewDistributedAtomicValue returns the value at path. It does no I/O.
func NewDistributedAtomicValue(c *client.Client, path string, opts ...AtomicOption) (*DistributedAtomicValue, error) {
	a, err := newAtom(c, path, "DistributedAtomicValue", bytesKind("atomic value"), opts)
	if err != nil {
		return nil, err
	}
	return &DistributedAtomicValue{a}, nil
}

// Path is the path of the node.
func (n *DistributedAtomicValue) Path() string { return n.atom.path }

// Get returns the value, as new as the server that this client is connected to knows
// it.
func (n *DistributedAtomicValue) Get(ctx context.Context) (AtomicValue[[]byte], error) {
	return n.atom.get(ctx)
}

// TrySet sets the value, whatever it was, and says what it was.
func (n *DistributedAtomicValue) TrySet(ctx context.Context, v []byte) (AtomicValue[[]byte], error) {
	return n.atom.trySet(ctx, slices.Clone(v))
}

// CompareAndSet sets the value to v if it equals old, as [DistributedAtomicLong.CompareAndSet].
func (n *DistributedAtomicValue) CompareAndSet(ctx context.Context, old, v []byte) (AtomicValue[[]byte], error) {
	return n.atom.compareAndSet(ctx, old, slices.Clone(v))
}

// Initialize is [DistributedAtomicLong.Initialize].
func (n *DistributedAtomicValue) Initialize(ctx context.Context, v []byte) (bool, error) {
	return n.atom.initialize(ctx, v)
}

// ForceSet is [DistributedAtomicLong.ForceSet].
func (n *DistributedAtomicValue) ForceSet(ctx context.Context, v []byte) error {
	return n.atom.set(ctx, v)
}
