// Members that join several queues in one transaction, and nodes that are deleted in one.

package seqqueue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// Entry is a node that [JoinTogether] makes in a queue. [Queue.Node] has returned it.
type Entry struct {
	Queue *Queue
	Node  inside.Node[client.Client]
}

// JoinTogether is [Queue.JoinPast] of several queues of one client, in one transaction. If
// that is lost with its session, it makes another in the next. On error no node remains, or
// the removal of all goes on in the background. at is the index of the queue that the error
// is about, or -1 if it is about all of them.
//
// Unless past is set, it stops before a queue in which an acquire would stand behind another
// one of this client, or past the window. So there may be fewer members than entries, or none.
func JoinTogether(ctx context.Context, root *client.Client, entries []Entry, past bool) (members []*Member, at int, err error) {
	for i, e := range entries {
		if err := e.Queue.MayJoin(ctx); err != nil {
			return nil, i, err
		}
	}
	for {
		s, err := root.Session(ctx)
		if err != nil {
			return nil, -1, err
		}
		members, at, err := joinOnce(ctx, s, entries, past)
		if !errors.Is(err, client.ErrSessionLost) || at >= 0 || ctx.Err() != nil {
			return members, at, err
		}
		// No place was lost with the session.
	}
}

// joinOnce is JoinTogether in the session s.
func joinOnce(ctx context.Context, s *client.Session, entries []Entry, past bool) (_ []*Member, at int, err error) {
	members := make([]*Member, 0, len(entries))
	nodes := make([]inside.Node[client.Client], 0, len(entries))
	guards := make([]inside.Guard, len(entries))
	var arming []int
	for i, e := range entries {
		own, err := inner.In(s, e.Node.In)
		if err != nil {
			cancel(members)()
			return nil, i, err
		}
		m, node, arm := e.Queue.prepare(own, e.Node, past)
		if m == nil {
			break
		}
		if members, nodes = append(members, m), append(nodes, node); arm {
			arming = append(arming, i)
		}
	}
	if len(members) == 0 {
		return nil, -1, nil
	}
	// The guards are set beside the transaction, so that nobody waits a round trip for them.
	// They serve the members that come later.
	var set sync.WaitGroup
	for _, i := range arming {
		set.Go(func() { guards[i] = inner.Guard(ctx, members[i].Session, entries[i].Queue.dir) })
	}
	var gone Gone
	gone.Of(&nodes[0])
	made, err := inner.CreateGroup(ctx, s, nodes)
	set.Wait()
	for _, i := range arming {
		members[i].chain.armed(guards[i])
	}
	if err != nil {
		gone.Then(cancel(members))
		return nil, -1, err
	}
	at = -1
	for i, m := range members {
		refused := m.q.adopt(m, nodes[i].Prefix, made[i])
		switch {
		case refused != nil && err == nil:
			at, err = i, refused
		case refused == nil && m.bound != nil:
			m.bound.note(m)
		}
		m.prepared()
	}
	if err != nil {
		for i, m := range members {
			if i != at {
				m.VacateInBackground()
			}
		}
		return nil, at, err
	}
	return members, -1, nil
}

// prepare makes a member that is about to get a node by a transaction, and completes the node.
// arm says that the caller is to set a guard, and to call [chain.armed]. The caller calls
// prepared, or cancel. Unless past is set, m is nil if it would stand behind another member, or
// behind an acquire that is about to become one.
func (q *Queue) prepare(s *client.Session, node inside.Node[client.Client], past bool) (m *Member, _ inside.Node[client.Client], arm bool) {
	m = q.member(s, node.Prefix)
	m.data = node.Data
	if q.chains == nil {
		return m, node, false
	}
	c := q.chains.use(q.key)
	if !c.joinUnlessBehind(m.shared, past, q.most) {
		q.chains.done(c)
		return nil, node, false
	}
	m.inWindow, m.usesChain = true, true
	if q.key.apart {
		m.bound = c
		return m, node, false
	}
	m.chain = c
	node.List, arm = c.ready()
	node.Made = m.made
	return m, node, arm
}

// prepared says that m has got its node, or gets none.
func (m *Member) prepared() {
	if c := cmp.Or(m.chain, m.bound); c != nil {
		c.join(-1)
	}
}

// cancel says that prepared members get no nodes. They leave the windows when left is called.
func cancel(members []*Member) (left func()) {
	var all []func()
	for _, m := range members {
		m.prepared()
		m.leave() // the create may still be answered
		if gone := m.quitLater(); gone != nil {
			all = append(all, gone)
		}
	}
	return func() {
		for _, gone := range all {
			gone()
		}
	}
}

// Placed are nodes in the namespace of a client.
type Placed struct {
	Own

	In *client.Client
}

// VacateTogether is [Own.Vacate] of nodes that one session has made. They are deleted in one
// transaction. If that is refused, each is deleted alone, so that the errors say which was
// missing. The errors are in the order of the nodes.
//
// The members leave in the opposite order. A waiter behind the first of them goes on to the
// other queues, and finds the members there over.
func VacateTogether(ctx context.Context, all []Placed) []error {
	errs, ops := make([]error, len(all)), deletions(all)
	for _, p := range slices.Backward(all) {
		p.member.leave() // and nothing else before the delete: it wakes others, who may send requests
	}
	outcome := errAlone
	if len(all) > 1 {
		_, outcome = all[0].Session.Multi(ctx, ops...)
	}
	var each sync.WaitGroup
	for i, p := range all {
		each.Go(func() { errs[i] = p.deleted(p.deleteAfter(ctx, outcome)) })
	}
	each.Wait()
	return errs
}

// deletions are the parts of a transaction that deletes nodes.
func deletions(all []Placed) (ops []client.Op) {
	for _, p := range all {
		for _, path := range p.Paths {
			ops = append(ops, client.DeleteOp(path, client.AnyVersion).In(p.In))
		}
	}
	return ops
}

// errAlone says that a node was not deleted in a transaction.
var errAlone = errors.New("deleted alone")

// deleteAfter deletes the nodes of o, unless a transaction with this outcome has done it. A
// node that is missing after a lost answer was deleted by the transaction.
func (o Own) deleteAfter(ctx context.Context, outcome error) error {
	switch {
	case outcome == nil:
		return nil
	case !client.UnknownOutcome(outcome):
		return o.delete(ctx)
	case ctx.Err() != nil:
		return outcome
	default:
		return o.deleteRest(ctx)
	}
}
