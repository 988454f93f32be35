package recipes

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Guard applies ops in one transaction that is committed only while the lock is held:
// the transaction checks the hold's own nodes as well. Paths are as the client of the
// lock has them, within its namespace. Guard is the way to write to ZooKeeper under a
// lock. No pause and no partition can let a write of a hold that is over through.
//
// If the error matches [ErrLost] or [ErrReleased] the hold is over and nothing was
// written. If it matches client.UnknownOutcome all of the ops were applied or none.
// They may still be applied after the call, as long as the lock's node stands, and not
// once another contender holds the lock. Otherwise nothing was written. If one of ops
// was refused there is a [*client.MultiError] whose Index counts them.
func (h *Hold) Guard(ctx context.Context, ops ...client.Op) ([]client.OpResult, error) {
	results, err := guard(ctx, h.Err, ops, h.grant)
	if err != nil {
		return nil, &LockError{Op: "guard", Path: h.grant.lock, Err: err}
	}
	return results, nil
}

// Guard applies ops in one transaction that is committed only while all of the
// locks are held, as [Hold.Guard]. Paths are as the client of the first lock has
// them, within its namespace.
//
// Only locks of one client can be checked in one transaction. If the locks are of
// several clients, the error matches [ErrSeveralSessions] and nothing is sent. Use the
// Guard of one of [MultiHold.Holds], or fencing tokens.
func (h *MultiHold) Guard(ctx context.Context, ops ...client.Op) ([]client.OpResult, error) {
	grants := make([]*grant, len(h.holds))
	for i, one := range h.holds {
		grants[i] = one.grant
	}
	results, err := guard(ctx, h.Err, ops, grants...)
	if err != nil {
		return nil, &LockError{Op: "guard", Path: h.path, Err: err}
	}
	return results, nil
}

// guard applies ops in a transaction that checks the nodes of grants. over is
// not nil once they are not all held.
func guard(ctx context.Context, over func() error, ops []client.Op, grants ...*grant) (results []client.OpResult, err error) {
	for _, g := range grants { // before over is asked: a release that comes later sees the count
		g.guards.Add(1)
	}
	defer func() {
		if !client.UnknownOutcome(err) {
			for _, g := range grants {
				g.guards.Add(-1)
			}
		}
	}()
	if why := over(); why != nil {
		return nil, why
	}
	session := grants[0].Session
	var checks []client.Op
	var whose []*grant // of each check
	for _, g := range grants {
		if g.Session.Context() != session.Context() { // that of one session is one
			return nil, ErrSeveralSessions
		}
		for _, node := range g.Paths {
			checks, whose = append(checks, client.CheckOp(node, client.AnyVersion).In(g.c)), append(whose, g)
		}
	}
	results, err = session.Multi(ctx, append(checks, ops...)...)
	if err == nil {
		return results[len(whose):], nil
	}
	var refused *client.MultiError
	if errors.As(err, &refused) {
		if refused.Index >= len(whose) {
			refused.Index -= len(whose)
		} else {
			if errors.Is(refused, zk.ErrNoNode) {
				whose[refused.Index].lose(ErrNodeDeleted)
			}
			err = &client.OpError{Op: "check", Path: refused.Path, Outcome: client.OutcomeRefused, Err: refused.Err}
		}
	}
	if why := over(); why != nil && !client.UnknownOutcome(err) {
		return nil, why
	}
	return nil, notOver(err)
}
