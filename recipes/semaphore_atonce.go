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

// calmAfter is how many acquires in a row that did not have to wait let the next one try
// atOnce. After a withdrawal it takes eight, for each costs a transaction.
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

// atOnce makes the leases before it looks, if the last acquires did not have to wait and
// none of this client stands in the queue.
// The lists leave with them. The permits are taken if no contender stands in the queue,
// all leases together are no more than there are permits, and no younger lease is gone.
// That takes no look at the owners of other nodes. Otherwise the leases are deleted in
// the transaction that joins the queue.
//
// So leases may stand without a holder. An acquire that counts them sees too many, never
// too few:
//   - Of two acquires that come at once, the one whose leases are younger lists both.
//   - The first in the queue lists the leases behind its own node in the queue. A younger
//     lease is one whose acquire sees that node, and withdraws.
//   - Curator makes its lease and counts all children of the directory, with a node in the
//     queue. It waits until the leases are withdrawn.
func (p permits) atOnce(ctx context.Context) (granted place, ok bool, m *seqqueue.Member, err error) {
	if p.count != nil || p.calm.Load() < calmAfter || p.line() != nil || ctxerr.Ended(ctx) != nil {
		return place{}, false, nil, nil // joining the queue says of an ended context
	}
	session, err := p.c.Session(ctx)
	if err != nil {
		return place{}, false, nil, err
	}
	site := p.site.take(ctx, session, p.path)
	defer func() { p.site.giveBack(site) }()
	nodes := p.nodes(p.nodeData(p.c))
	// The queue comes first: a contender that leaves it with leases is in the
	// second list.
	nodes[0].Beside, nodes[0].More = p.gate.path, []string{p.leases.dir, p.path}
	if site.stands() {
		nodes[0].More = nodes[0].More[:1]
	}
	made, err := inner.CreateGroup(ctx, session, nodes)
	if err != nil {
		if errors.Is(err, client.ErrSessionLost) && ctx.Err() == nil {
			err = nil // there was no place yet that could be lost with it
		}
		return place{}, false, nil, takenAway(err)
	}
	granted = p.granted(session, made)
	if err := p.refuseMixedAt(ctx, &site, made[0]); err != nil {
		return place{}, false, nil, p.mixed(ctx, granted, err)
	}
	if p.sole(made) {
		return granted, true, nil, nil
	}
	p.calm.Store(notCalm)
	m, err = p.withdraw(ctx, granted)
	return place{}, false, m, err
}

// refuseMixedAt is refuseMixed, but does not list the path if site tells that nothing has
// come there before the leases were made.
func (p permits) refuseMixedAt(ctx context.Context, site *siteUse, made inside.Entry) error {
	switch {
	case !site.stands():
		return p.refuseMixed(ctx, made.More)
	case site.guard.Holds(made.Connection):
		return nil
	default:
		site.failed = true
		return p.refuseMixed(ctx, nil)
	}
}

// sole reports whether the lists that came with leases show an empty queue, and room for
// all leases, the new ones included.
//
// It also wants every lease to stand that was made since. Otherwise a hold may have come
// and gone before the lists, and its token would be greater than that of these leases.
func (p permits) sole(made []inside.Entry) bool {
	queue, more := made[0].Beside, made[0].More
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
	if err = p.gate.queue.Room(ctx); err != nil {
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
		return nil, nil //nolint:nilnil // it has no place yet
	}
	return nil, takenAway(err)
}
