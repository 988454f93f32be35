// The short cut of an acquire for which the permits are probably free. In place of steps 2 to
// 4 in semaphore_protocol.go:
//
//  1. atOnce makes the leases before it looks. The lists of the queue and of the leases
//     leave in the same write.
//  2. The permits are taken if no contender is in the queue and no younger lease is gone.
//     All leases together must be no more than there are permits. To know that, the
//     acquire reads no owner of another node.
//  3. Otherwise withdraw deletes the leases in the transaction that joins the queue. The
//     acquire goes on with turn.
//
// So leases may stand without a holder for a moment. An acquire that counts the leases sees
// too many then, never too few:
//   - Of two acquires that come at once, the one whose leases are younger lists both.
//   - The first in the queue lists the leases behind its own node in the queue. A younger
//     lease is one whose acquire sees that node, and withdraws.
//   - Curator makes its lease and counts all children of the directory, with a node in the
//     queue. It waits until the leases are withdrawn.
//
// A semaphore in constant use does not list its path to notice a lock of another kind. It
// has a watch on the children there, a pathGuard.

package recipes

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// calmAfter is how many acquires in a row did not have to wait before the next one tries
// atOnce. After a withdrawal that takes eight, since each withdrawal costs a transaction.
const (
	calmAfter = 2
	notCalm   = -6
)

// learn remembers whether an acquire that joined the queue was free to take its permits.
func (p permits) learn(free bool) {
	switch calm := p.calm.Load(); {
	case !free:
		p.calm.CompareAndSwap(calm, min(calm, 0))
	case calm < calmAfter:
		p.calm.CompareAndSwap(calm, calm+1)
	}
}

// atOnce takes the permits without a node in the queue, or joins the queue. If it has done
// neither, m is nil, and its leases are deleted or being deleted. It tries only if the last
// acquires did not have to wait, and if no acquire of this client waits.
func (p permits) atOnce(ctx context.Context) (granted place, ok bool, m *seqqueue.Member, err error) {
	own, err := p.nested(ctx)
	if err != nil {
		return place{}, false, nil, err
	}
	calm := own > 0 || p.calm.Load() >= calmAfter && p.waiters() == nil // a nested acquire cannot wait
	if p.count != nil || !calm || ctxerr.Ended(ctx) != nil {
		return place{}, false, nil, nil // with an ended context, to join the queue fails
	}
	session, err := p.c.Session(ctx)
	if err != nil {
		return place{}, false, nil, err
	}
	use := p.guard.borrow(session, p.path)
	defer func() { p.guard.giveBack(use) }()
	nodes := p.nodes(p.nodeData(p.c))
	// The queue is listed first: a contender that leaves it with leases is in the
	// second list.
	nodes[0].Other, nodes[0].More = p.gate.path, []string{p.leases.dir, p.path}
	if use.stands() {
		nodes[0].More = nodes[0].More[:1]
	}
	made, err := inner.CreateGroup(ctx, session, nodes)
	if err != nil {
		if errors.Is(err, client.ErrSessionLost) && ctx.Err() == nil {
			err = nil // no place was lost with the session
		}
		return place{}, false, nil, takenAway(err)
	}
	granted = p.granted(session, made)
	if err := p.refuseMixedAt(ctx, &use, made[0]); err != nil {
		return place{}, false, nil, p.mixed(ctx, granted, err)
	}
	if p.sole(made) {
		p.noted(granted)
		return granted, true, nil, nil
	}
	p.calm.Store(notCalm)
	m, err = p.withdraw(ctx, granted)
	return place{}, false, m, err
}

// refuseMixedAt is refuseMixed. But if the guard tells that no other lock had come before the
// leases were made, it does not list the path.
func (p permits) refuseMixedAt(ctx context.Context, use *pathGuardUse, made inside.Entry) error {
	switch {
	case !use.stands():
		return p.refuseMixed(ctx, made.More)
	case use.guard.Holds(made.Connection):
		return nil
	default:
		use.failed = true
		return p.refuseMixed(ctx, nil)
	}
}

// sole reports whether the lists that came with leases show an empty queue, and room for
// all leases, the new ones included.
//
// If a lease that was made after these is gone, sole is false too. A hold may have come and
// gone with that lease before the lists. Its token would be greater than that of these.
func (p permits) sole(made []inside.Entry) bool {
	queue, more := made[0].Other, made[0].More
	if queue == nil || len(more) == 0 || !p.gate.queue.Idle(queue) {
		return false
	}
	own := make(map[string]bool, len(made))
	var newest uint32 // number of these leases, which count up
	for _, e := range made {
		name := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
		own[name], newest = true, leaseCount(name)
	}
	stand, younger, all := 0, uint32(0), 0
	for _, name := range more[0] {
		if _, ok := leaseNumber(name); !ok {
			continue
		}
		all++
		switch {
		case own[name]:
			stand++
		case int32(leaseCount(name)-newest) > 0: //nolint:gosec // the counter may pass its end
			younger++
		}
	}
	return stand == p.n && all <= p.max && younger == (madeIn(made[0].Stats[0])-newest-1)&math.MaxInt32
}

// madeIn is how many children were made in a directory, of whatever name: servers show as
// cversion how many were made and deleted. Only 31 bits are known.
func madeIn(dir zk.Stat) uint32 {
	return (uint32(dir.Cversion) + uint32(dir.NumChildren)) / 2 //nolint:gosec // modulo 2^32 on purpose
}

// leaseCount is the number of a lease: how many children were made before it.
func leaseCount(name string) uint32 {
	number, _ := leaseNumber(name)
	n, _ := strconv.ParseInt(number, 10, 32)
	return uint32(n) //nolint:gosec // the counter may pass its end
}

// withdraw deletes leases that are not granted and joins the queue, in one transaction.
// If another client has deleted one of them, m is nil and all are being deleted.
func (p permits) withdraw(ctx context.Context, leases place) (m *seqqueue.Member, err error) {
	if err = p.gate.queue.MayJoin(ctx); err != nil {
		leases.DeleteInBackground()
		return nil, err
	}
	parts := make([]client.Op, len(leases.Paths))
	for i, path := range leases.Paths {
		parts[i] = client.DeleteOp(path, client.AnyVersion)
	}
	node := p.gate.node()
	made, err := inner.CreateGroup(ctx, leases.Session, []newNode{node}, parts...)
	if err == nil {
		return p.gate.queue.Adopt(leases.Session, node.Prefix, made[0])
	}
	leases.DeleteInBackground()
	var refused *client.MultiError
	if errors.As(err, &refused) && refused.Index >= 0 || errors.Is(err, client.ErrSessionLost) && ctx.Err() == nil {
		return nil, nil //nolint:nilnil // the acquire has no place yet
	}
	return nil, takenAway(err)
}
