package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/wire"
)

// DeleteAll deletes a node and everything below it, children first, whatever the
// versions are. A node that is deleted already counts as success, the one at path
// included, as with [os.RemoveAll].
//
// It is not a transaction: other clients see the nodes disappear one after the other.
// Nodes that other clients create below path meanwhile are deleted as well. A client
// that creates without end keeps the call going until ctx ends. Deletes leave in
// batches of up to 256. The children of a node are listed in one answer, see
// [WithMaxReply].
//
// After an unknown outcome the client lists and deletes again. If the call fails,
// some nodes may be deleted. The error matches [UnknownOutcome] if any node is
// deleted or may be, and it names the node that was refused. Another call goes on
// from there.
//
// "/" is refused. In a namespace, too, it would delete everything below: give the
// path of a node.
func (o *ops) DeleteAll(ctx context.Context, path string) error {
	begun := false // something was deleted
	err := o.do(ctx, "delete all", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if path == "/" {
			return misused("that would delete everything: give the path of a node")
		}
		if err := deletable(full); err != nil {
			return err
		}
		d := deleteAll{s: t.s, ops: o}
		err = d.tree(ctx, full)
		begun = begun || d.begun
		return err
	})
	var op *OpError
	if begun && errors.As(err, &op) {
		op.Outcome = OutcomeUnknown
	}
	return err
}

// deleteAll is one try of a [Client.DeleteAll].
type deleteAll struct {
	*ops
	s     *sessionState
	begun bool // a server has deleted something
}

// tree deletes the node at full and what is below it.
func (d *deleteAll) tree(ctx context.Context, full string) error {
	for {
		left, err := d.nodes(ctx, []string{full})
		if err != nil || len(left) == 0 {
			return err
		}
		if err := d.below(ctx, full); err != nil {
			return err
		}
	}
}

// below deletes the children of the node at full, as far as one list names them.
func (d *deleteAll) below(ctx context.Context, full string) error {
	list := session.Ask(wire.OpGetChildren, full)
	switch err := d.s.Call(ctx, list); {
	case errors.Is(err, ErrNoNode):
		return nil
	case err != nil:
		return d.unread(full, err)
	}
	for batch := range slices.Chunk(list.Reply.Names, duties.AtOnce) {
		children := make([]string, len(batch))
		for i, name := range batch {
			children[i] = join(full, name)
		}
		left, err := d.nodes(ctx, children)
		if err != nil {
			return err
		}
		for _, child := range left {
			if err := d.below(ctx, child); err != nil {
				return err
			}
			if err := d.tree(ctx, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodes deletes nodes, all in one write. It returns the nodes that have children.
func (d *deleteAll) nodes(ctx context.Context, full []string) (left []string, err error) {
	xs := make([]*wire.Exchange, len(full))
	for i, node := range full {
		xs[i] = deletion(node, AnyVersion)
	}
	ended := d.s.Do(ctx, xs...)
	var failed error
	for i, node := range full {
		err := d.s.Outcome(ctx, xs[i], ended)
		switch {
		case err == nil:
			d.begun = true
		case errors.Is(err, ErrNoNode):
		case errors.Is(err, ErrNotEmpty):
			left = append(left, node)
		case failed == nil:
			failed = d.at(node, err)
		}
	}
	return left, failed
}

// at adds the node to the error of its deletion.
func (d *deleteAll) at(full string, err error) error {
	return &fate.TryError{Err: fmt.Errorf("%s: %w", d.stripped(full), err), Outcome: fate.Of(err)}
}

// unread adds the node to the error of its list, which changes nothing.
func (d *deleteAll) unread(full string, err error) error {
	outcome := fate.Unchanged
	if fate.Is(err, fate.Refused) {
		outcome = fate.Refused
	}
	return &fate.TryError{Err: fmt.Errorf("list %s: %w", d.stripped(full), err), Outcome: outcome}
}
