package seqqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Break says that the hold of the nodes was lost, or that another node has taken their place.
// So the end of the hold is not the turn of the contender behind.
func (o Own) Break() {
	o.member.breakOff()
}

// Vacate lets the contender behind go on, and deletes the nodes in one transaction. If another
// client had deleted one, it returns [ErrGone]. If the nodes are deleted with the session, it
// returns the session's end. After any other error the nodes may still stand. After every
// error the remover deletes what is left, until that succeeds or the session is over.
func (o Own) Vacate(ctx context.Context) error {
	o.member.leave()
	return o.deleted(o.delete(ctx))
}

// deleted says what became of the nodes by a delete that has returned err, and quits. It leaves
// to the remover what may still stand.
func (o Own) deleted(err error) error {
	if err == nil {
		o.member.quit()
		return nil
	}
	gone := errors.Is(err, zk.ErrNoNode)
	if !gone || len(o.Paths) > 1 {
		o.deleteInBackground() // without effect if the session is over
	} else {
		o.member.quit()
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

// delete deletes the nodes once. If the answer to a transaction is lost, delete deletes
// the nodes one by one.
func (o Own) delete(ctx context.Context) error {
	if err := o.Session.Err(); err != nil {
		return err
	}
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
	return o.deleteRest(ctx)
}

// deleteRest deletes the nodes one by one, after a transaction whose answer was lost. A node
// that is missing was deleted by the transaction.
func (o Own) deleteRest(ctx context.Context) error {
	for _, path := range o.Paths {
		if err := o.Session.Delete(ctx, path, client.AnyVersion); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// VacateInBackground does so without waiting. As with Vacate, no hold may
// rely on them any more: the contender behind may be granted at once.
func (o Own) VacateInBackground() {
	o.member.leave()
	o.deleteInBackground()
}

// deleteInBackground leaves the nodes to the remover, and quits. A member counts in the window
// until its node is gone: a client whose acquires give up fast would make more nodes than it
// deletes.
func (o Own) deleteInBackground() {
	gone := o.member.quitLater()
	for _, path := range o.Paths {
		_ = inner.DeleteInBackground(o.Session, path, gone) // the path came from the server
	}
}

// Unwatched returns for how long the nodes need not be watched, as they were seen to stand
// a moment ago. It is at most WatchAfter.
func (o Own) Unwatched() time.Duration {
	if o.member == nil || o.member.watched() {
		return WatchAfter
	}
	return max(0, WatchAfter-time.Since(o.member.seen))
}
