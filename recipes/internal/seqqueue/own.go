package seqqueue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Own are nodes that one session has made for one waiter or one holder.
type Own struct {
	Session *client.Session // that made the nodes; they are deleted with it
	Paths   []string        // at least one
}

// Delete deletes the nodes, all in one transaction. It returns [ErrGone] if
// another client had deleted one, the session's end if the nodes are deleted with
// the session, and any other error when they may still stand. After an error
// what is left of them is deleted in the background, until that succeeds or the
// session is over.
func (o Own) Delete(ctx context.Context) error {
	err := o.Session.Err()
	if err == nil {
		err = o.delete(ctx)
	}
	if err == nil {
		return nil
	}
	gone := errors.Is(err, zk.ErrNoNode)
	if !gone || len(o.Paths) > 1 {
		o.DeleteInBackground() // without effect if the session is over
	}
	over := o.Session.Err()
	switch {
	case gone:
		return ErrGone
	case over != nil:
		return over
	default:
		return err
	}
}

// delete deletes the nodes once. If the answer to a transaction is lost, the nodes
// are deleted one by one, and a node that is missing was deleted by the transaction.
func (o Own) delete(ctx context.Context) error {
	if len(o.Paths) == 1 {
		return o.Session.Delete(ctx, o.Paths[0], client.AnyVersion)
	}
	ops := make([]client.Op, len(o.Paths))
	for i, path := range o.Paths {
		ops[i] = client.DeleteOp(path, client.AnyVersion)
	}
	_, err := o.Session.Multi(ctx, ops...)
	if !client.UnknownOutcome(err) || ctx.Err() != nil {
		return err
	}
	for _, path := range o.Paths {
		if err := o.Session.Delete(ctx, path, client.AnyVersion); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// DeleteInBackground deletes the nodes without waiting.
func (o Own) DeleteInBackground() {
	for _, path := range o.Paths {
		_ = inner.DeleteInBackground(o.Session, path) // the path came from the server
	}
}
