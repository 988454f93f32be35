package shared

import (
	"context"

	"github.com/docent-go/docent/client"
)

// DistributedAtomicInteger is a number of 32 bits that several processes change. It is
// Curator's DistributedAtomicInteger: like a [DistributedAtomicLong], but of four
// bytes. What is said there holds here. A [SharedCount] has the same bytes, so both
// may be used on one path.
type DistributedAtomicInteger struct{ atom *atom[int32] }

// NewDistributedAtomicInteger returns the number at path. It does no I/O.
func NewDistributedAtomicInteger(c *client.Client, path string, opts ...AtomicOption) (*DistributedAtomicInteger, error) {
	a, err := newAtom(c, path, "DistributedAtomicInteger", integerKind(), opts)
	if err != nil {
		return nil, err
	}
	return &DistributedAtomicInteger{a}, nil
}

// Path is the path of the node.
func (n *DistributedAtomicInteger) Path() string { return n.atom.path }

// Get is [DistributedAtomicLong.Get]; the length is 0 or 4 bytes.
func (n *DistributedAtomicInteger) Get(ctx context.Context) (AtomicValue[int32], error) {
	return n.atom.get(ctx)
}

// Add is [DistributedAtomicLong.Add].
func (n *DistributedAtomicInteger) Add(ctx context.Context, delta int32) (AtomicValue[int32], error) {
	return add(ctx, n.atom, delta, nil)
}

// Subtract is [DistributedAtomicLong.Subtract].
func (n *DistributedAtomicInteger) Subtract(ctx context.Context, delta int32) (AtomicValue[int32], error) {
	return subtract(ctx, n.atom, delta)
}

// Increment adds 1.
func (n *DistributedAtomicInteger) Increment(ctx context.Context) (AtomicValue[int32], error) {
	return n.Add(ctx, 1)
}

// Decrement subtracts 1.
func (n *DistributedAtomicInteger) Decrement(ctx context.Context) (AtomicValue[int32], error) {
	return n.Subtract(ctx, 1)
}

// TrySet is [DistributedAtomicLong.TrySet].
func (n *DistributedAtomicInteger) TrySet(ctx context.Context, v int32) (AtomicValue[int32], error) {
	return n.atom.trySet(ctx, v)
}

// CompareAndSet is [DistributedAtomicLong.CompareAndSet].
func (n *DistributedAtomicInteger) CompareAndSet(ctx context.Context, old, v int32) (AtomicValue[int32], error) {
	return n.atom.compareAndSet(ctx, old, v)
}

// Initialize is [DistributedAtomicLong.Initialize].
func (n *DistributedAtomicInteger) Initialize(ctx context.Context, v int32) (bool, error) {
	return n.atom.initialize(ctx, v)
}

// ForceSet is [DistributedAtomicLong.ForceSet].
func (n *DistributedAtomicInteger) ForceSet(ctx context.Context, v int32) error {
	return n.atom.set(ctx, v)
}
