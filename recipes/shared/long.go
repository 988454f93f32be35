package shared

import (
	"context"

	"github.com/docent-go/docent/client"
)

// DistributedAtomicLong is a number of 64 bits that several processes change. It is
// Curator's DistributedAtomicLong: a persistent node at the path, whose data is the
// number in eight bytes, the highest first. A missing node and one without data read
// as 0. The first change makes the node, and missing parents as containers.
//
// An addition counts once, also when its answer was lost; Curator's may count twice.
// If an error matches client.UnknownOutcome, the change may or may not have been
// applied. The session or the context ended before the answer came, or another client
// deleted the mark that would tell. After any other error nothing was applied; a
// missing node may have been made, with the zero value. With the default of
// [WithTries] an operation tries until its context ends.
//
// The mark is an ephemeral child of the node. It stands while operations go on and a
// second longer. Meanwhile the node cannot be deleted. It takes the rights to create
// and delete children; see [WithoutMark].
//
// Operations of one DistributedAtomicLong that come together go in one write, each
// with its own value before and after. So let the goroutines of a process share one.
// It is safe for concurrent use and needs no Close.
type DistributedAtomicLong struct{ atom *atom[int64] }

// NewDistributedAtomicLong returns the number at path. It does no I/O.
func NewDistributedAtomicLong(c *client.Client, path string, opts ...AtomicOption) (*DistributedAtomicLong, error) {
	a, err := newAtom(c, path, "DistributedAtomicLong", longKind(), opts)
	if err != nil {
		return nil, err
	}
	return &DistributedAtomicLong{a}, nil
}

// Path is the path of the node.
func (n *DistributedAtomicLong) Path() string { return n.atom.path }

// Get returns the number, as new as the server that this client is connected to knows
// it. A node of another length than 0 or 8 bytes is refused with a [*CountDataError],
// here and by all operations but Initialize.
func (n *DistributedAtomicLong) Get(ctx context.Context) (AtomicValue[int64], error) {
	return n.atom.get(ctx)
}

// Add adds delta. A sum that does not fit fails with [ErrOverflow].
func (n *DistributedAtomicLong) Add(ctx context.Context, delta int64) (AtomicValue[int64], error) {
	return add(ctx, n.atom, delta, nil)
}

// Subtract subtracts delta, as Add adds it.
func (n *DistributedAtomicLong) Subtract(ctx context.Context, delta int64) (AtomicValue[int64], error) {
	return subtract(ctx, n.atom, delta)
}

// Increment adds 1.
func (n *DistributedAtomicLong) Increment(ctx context.Context) (AtomicValue[int64], error) {
	return n.Add(ctx, 1)
}

// Decrement subtracts 1.
func (n *DistributedAtomicLong) Decrement(ctx context.Context) (AtomicValue[int64], error) {
	return n.Subtract(ctx, 1)
}

// TrySet sets the number, whatever it was, and says what it was.
func (n *DistributedAtomicLong) TrySet(ctx context.Context, v int64) (AtomicValue[int64], error) {
	return n.atom.trySet(ctx, v)
}

// CompareAndSet sets the number to v if it is old. If it is not, or there is no node,
// the result has not Succeeded, and PreValue is what was found.
func (n *DistributedAtomicLong) CompareAndSet(ctx context.Context, old, v int64) (AtomicValue[int64], error) {
	return n.atom.compareAndSet(ctx, old, v)
}

// Initialize makes the node with v. It reports false, and changes nothing, if there is
// a node. After an error that matches client.UnknownOutcome it may have made it.
func (n *DistributedAtomicLong) Initialize(ctx context.Context, v int64) (bool, error) {
	return n.atom.initialize(ctx, v)
}

// ForceSet sets the number. After a lost answer it is sent again, which may undo what
// another client did in between; TrySet does not.
func (n *DistributedAtomicLong) ForceSet(ctx context.Context, v int64) error {
	return n.atom.set(ctx, v)
}
