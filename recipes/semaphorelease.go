package recipes

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Lease is one or several permits of an [InterProcessSemaphore] that are held.
// They were granted together and are released together, and the loss of one of
// their nodes ends the hold of all.
type Lease struct{ *Hold }

// Permits is how many permits are held.
func (l *Lease) Permits() int { return len(l.grant.nodes) }

// Paths are the paths of the leases' nodes, one for each permit.
func (l *Lease) Paths() []string { return slices.Clone(l.grant.nodes) }

// Data reads what the leases' nodes say, [WithNodeData] or the client's
// default, unless somebody has replaced it (Curator: Lease.getData). It asks
// the server, in the session of the lease.
func (l *Lease) Data(ctx context.Context) ([]byte, error) {
	data, _, err := l.grant.session.Get(ctx, l.Path())
	return data, err
}

// leased are the nodes of a lease.
type leased struct {
	session *client.Session
	nodes   []string
}

// leave deletes the nodes, as seqqueue.Member.Leave does one.
func (l leased) leave(ctx context.Context) error {
	err := l.session.Err()
	if err == nil {
		err = l.delete(ctx)
	}
	if err == nil {
		return nil
	}
	l.drop()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return ErrNodeDeleted
	case l.session.Err() != nil:
		return l.session.Err()
	default:
		return err
	}
}

// delete deletes all nodes in one transaction. If its answer is lost they are
// deleted one by one, and those that are gone went with it.
func (l leased) delete(ctx context.Context) error {
	if len(l.nodes) == 1 {
		return l.session.Delete(ctx, l.nodes[0], client.AnyVersion)
	}
	var all []client.Op
	for _, node := range l.nodes {
		all = append(all, client.DeleteOp(node, client.AnyVersion))
	}
	_, err := l.session.Multi(ctx, all...)
	if !client.UnknownOutcome(err) || ctx.Err() != nil {
		return err
	}
	for _, node := range l.nodes {
		if err := l.session.Delete(ctx, node, client.AnyVersion); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// drop deletes the nodes without waiting.
func (l leased) drop() {
	for _, node := range l.nodes {
		_ = inner.DeleteInBackground(l.session, node) // the path came from the server
	}
}
