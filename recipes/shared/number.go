package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// integer are the types of atomic numbers.
type integer interface{ int32 | int64 }

// newAtom returns the atom at path.
func newAtom[T any](c *client.Client, path, recipe string, kind kind[T], opts []AtomicOption) (*atom[T], error) {
	n, err := newNode(c, path, kind, opts)
	if err != nil {
		return nil, err
	}
	return &atom[T]{node: n, recipe: recipe}, nil
}

// get reads the value; a missing node has the zero one.
func (a *atom[T]) get(ctx context.Context) (AtomicValue[T], error) {
	data, stat, err := a.c.Get(ctx, a.path)
	if errors.Is(err, zk.ErrNoNode) {
		return AtomicValue[T]{Succeeded: true}, nil
	}
	if err != nil {
		return AtomicValue[T]{}, err
	}
	now, err := a.parse(data, stat)
	if err != nil {
		return AtomicValue[T]{}, err
	}
	return AtomicValue[T]{Succeeded: true, PreValue: now.Value, PostValue: now.Value}, nil
}

// initialize makes the node with v. It reports false if there is one.
func (a *atom[T]) initialize(ctx context.Context, v T) (bool, error) {
	err := a.create(ctx, a.kind.encode(v))
	if errors.Is(err, zk.ErrNodeExists) && !client.UnknownOutcome(err) {
		return false, nil
	}
	return err == nil, err
}

// trySet sets the value to v, whatever it was.
func (a *atom[T]) trySet(ctx context.Context, v T) (AtomicValue[T], error) {
	return a.do(ctx, trySetOp, func(T, bool) (T, bool, error) { return v, true, nil })
}

// compareAndSet sets the value to v if there is a node and its value equals old.
func (a *atom[T]) compareAndSet(ctx context.Context, old, v T) (AtomicValue[T], error) {
	want := a.kind.encode(old)
	return a.do(ctx, "compare and set", func(prev T, exists bool) (T, bool, error) {
		return v, exists && bytes.Equal(a.kind.encode(prev), want), nil
	})
}

// add adds delta to the number of a. See doAside for aside.
func add[T integer](ctx context.Context, a *atom[T], delta T, aside func()) (AtomicValue[T], error) {
	return a.doAside(ctx, "add", func(prev T, _ bool) (T, bool, error) {
		sum := prev + delta
		if !a.wrapping && (sum > prev) != (delta > 0) && delta != 0 {
			return 0, false, a.overflow("add", prev, delta)
		}
		return sum, true, nil
	}, aside)
}

// subtract subtracts delta from the number of a. The least number has no negative.
func subtract[T integer](ctx context.Context, a *atom[T], delta T) (AtomicValue[T], error) {
	return a.do(ctx, "subtract", func(prev T, _ bool) (T, bool, error) {
		rest := prev - delta
		if !a.wrapping && (rest < prev) != (delta > 0) && delta != 0 {
			return 0, false, a.overflow("subtract", prev, delta)
		}
		return rest, true, nil
	})
}

func (a *atom[T]) overflow(op string, prev, delta T) error {
	return a.failed(op, client.OutcomeNeverSent, fmt.Errorf("%w: it is %v, too close to the limit to %s %v; set a new value, or pass WithWrapping", ErrOverflow, prev, op, delta))
}
