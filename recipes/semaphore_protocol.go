// The protocol of the semaphore (Curator: InterProcessSemaphoreV2). Two directories
// are below its path: "locks" is a queue like that of a mutex, and each child of
// "leases" is one permit that is held.
//
//  1. reenter gives nothing, and refuses more permits than there are.
//  2. join makes a node in the queue. The list of the leases comes with the answer.
//  3. turn waits until the node is the first in the queue, and then for room. No other
//     acquire adds leases meanwhile: only the first may.
//  4. One transaction makes one lease for each permit and deletes the node in the queue. If
//     another client has deleted that node, another acquire may be the first, and the
//     transaction fails as a whole.
//  5. take, in acquire.go, begins the hold. Release deletes the leases.
//
// If the number of permits is fixed, the waiters of a client have a book of its leases, in
// package book. It decides which of them a transaction grants, and which released leases
// that deletes. semaphore_group.go makes these transactions, and semaphore_room.go has the
// wait. A shared number may change at any time. So an acquire that reads it, and one that
// does not wait, counts the leases by itself: awaitRoom and claim are theirs.
//
// An acquire in the context of a lease of the same semaphore is nested. It may hold the very
// permits that the waiters ahead wait for. So it waits neither for room nor behind others: it
// fails with ErrWouldDeadlock.
//
// Locks of other kinds do not exclude a semaphore, so a path that has both is refused.
// refuseMixed looks for the other lock behind each transaction that makes leases. In
// constant use a watch does that, in semaphore_guard.go.
//
// # The short cut
//
// An acquire for which the permits are probably free does this in place of steps 2 to 4:
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

package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// mostAtOnce bounds the memory that a number out of a configuration can take.
// By default a server's limit is reached with some 8000.
const mostAtOnce = 1 << 16

func (p permits) part() part { return part{p, p.path, p.gate} }

func (m *InterProcessSemaphoreMutex) part() part { return m.semaphore.permits(1, false).part() }

// reenter gives nothing: each acquire takes permits of its own. It refuses an acquire
// that could never be granted, or not before a lease that ctx descends from is released.
func (p permits) reenter(ctx context.Context) (*Hold, bool, error) {
	if p.n < 1 {
		return nil, false, fmt.Errorf("%d permits; ask for at least one", p.n)
	}
	if !p.unmixed.Load() {
		if err := p.leases.refuseForeign(ctx, p.path); err != nil {
			return nil, false, err
		}
		p.unmixed.Store(true)
	}
	others, _, err := p.others(ctx, false)
	if err != nil {
		return nil, false, err
	}
	if p.n > mostAtOnce {
		return nil, false, fmt.Errorf("%w: asked for %d permits, and %d at the most are taken in one transaction", client.ErrTooLarge, p.n, mostAtOnce)
	}
	own, err := p.nested(ctx)
	if err == nil && own > others {
		err = fmt.Errorf("%w: the caller holds %d of the %d permits and asks for %d more; acquire all of them at once, or release the held ones first",
			ErrWouldDeadlock, own, others+p.n, p.n)
	}
	return nil, false, err
}

// free returns a BusyError if the permits could not be had now.
func (p permits) free(ctx context.Context) error {
	if err := waiterAhead(p.gate.free(ctx)); err != nil {
		return err
	}
	session, err := p.c.Session(ctx)
	if err != nil {
		return err
	}
	_, err = p.awaitRoom(ctx, session, nil, false)
	return err
}

// join makes a node in the queue of the semaphore, and lists the leases. If another acquire
// of this client waits, or the last one had to, this one is hardly the first, and the leases
// are not listed.
func (p permits) join(ctx context.Context) (*seqqueue.Member, error) {
	if err := met(ctx, p.c); err != nil {
		return nil, err
	}
	node := p.gate.node()
	if p.crowded.Load() || p.waiters() != nil {
		node.Other = ""
	}
	if p.try {
		return p.gate.queue.JoinPast(ctx, node)
	}
	if own, err := p.nested(ctx); own > 0 || err != nil { // those that wait in the process may wait for that
		if err != nil {
			return nil, err
		}
		return p.gate.queue.JoinPast(ctx, node)
	}
	m, err := p.gate.queue.Join(ctx, node)
	return m, waiterAhead(p.gate.waited(ctx, err))
}

// turn waits until m is the first in the queue, and then until there is room for
// the permits, and takes them.
func (p permits) turn(ctx context.Context, m *seqqueue.Member, wait bool) (place, error) {
	own := 0
	var err error
	if wait {
		own, err = p.nested(ctx)
	}
	switch {
	case err != nil:
	case own > 0:
		err = p.turnWithin(ctx, m)
	default:
		return p.turnAfter(ctx, m, wait)
	}
	if err != nil {
		return place{}, err
	}
	return p.claimAside(ctx, m)
}

// turnAfter is turn of an acquire that is not nested. If it waits, and the number of permits
// is fixed, a transaction of this client serves it.
func (p permits) turnAfter(ctx context.Context, m *seqqueue.Member, wait bool) (got place, err error) {
	if wait && p.count == nil {
		h := p.newHeir(m)
		defer func() { h.leave(err == nil) }()
		return h.await(ctx)
	}
	if _, err = p.gate.turn(ctx, m, wait); err != nil {
		return place{}, waiterAhead(err)
	}
	listed := m.OtherChildren()
	waited, err := p.awaitRoom(ctx, m.Session, listed, wait)
	p.learn(listed != nil && !waited)
	if err != nil {
		return place{}, err
	}
	return p.claimAside(ctx, m)
}

// claimAside is claim of an acquire that no transaction of the waiters serves.
func (p permits) claimAside(ctx context.Context, m *seqqueue.Member) (place, error) {
	got, err := p.claim(ctx, m, nobody{})
	if err == nil {
		p.noted(got)
		m.Granted(nil)
		m.Unwatch()
	}
	return got, err
}

// noted tells the waiters of this client of leases that no transaction of theirs has made.
func (p permits) noted(leases place) {
	if w := p.waiters(); w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.book.Keep(namesAt(leases.Paths), statOfOwn(leases))
	}
}

// claim makes the leases of m, which is the first in the queue and has found room. The
// same transaction deletes m's node in the queue. If another client has deleted that
// node, another acquire may be the first, and the transaction fails.
//
// The transaction also fails if another client has written to the node. A request to
// release that was written there is written into the leases, where the hold reads it.
func (p permits) claim(ctx context.Context, m *seqqueue.Member, w witness) (place, error) {
	data, version := p.nodeData(p.c), int32(0)
	for {
		made, err := p.grantLeases(ctx, m, data, version, w)
		var refused *client.MultiError
		switch part := errors.As(err, &refused) && refused.Index >= 0; {
		case err == nil:
			return made, nil
		case part && errors.Is(err, zk.ErrNoNode):
			return place{}, ErrNodeDeleted
		case !part || !errors.Is(err, zk.ErrBadVersion):
			return place{}, takenAway(err)
		}
		if data, version, err = p.askedWaiting(ctx, m); err != nil {
			return place{}, err
		}
	}
}

// grantLeases makes the leases, with data, and deletes the node of m if the node has the
// version.
func (p permits) grantLeases(ctx context.Context, m *seqqueue.Member, data []byte, version int32, w witness) (place, error) {
	made, err := p.make(ctx, m.Session, p.nodes(data), []client.Op{client.DeleteOp(m.Path, version)}, w)
	if made == nil {
		return place{}, err
	}
	granted := p.granted(m.Session, made)
	if err != nil {
		return place{}, p.mixed(ctx, granted, err)
	}
	return granted, nil
}

// mixed deletes leases that were made although another lock is in use on the path. It
// returns err, which names that lock.
func (p permits) mixed(ctx context.Context, leases place, err error) error {
	p.unmixed.Store(false)
	_ = leases.Own.Vacate(ctx) // what fails goes on in the background
	return err
}

// nodes are the leases to be made, with data.
func (p permits) nodes(data []byte) []newNode {
	return slices.Repeat([]newNode{{Dir: p.leases.dir, Prefix: leaseTag, Data: data, ACL: p.acl, Persistent: p.stays}}, p.n)
}

// granted is the place that the leases made in session give.
func (p permits) granted(session *client.Session, made []inside.Entry) place {
	paths := make([]string, len(made))
	for i, e := range made {
		paths[i] = e.Path
	}
	return place{
		Own:  seqqueue.Own{Session: session, Paths: paths},
		lock: p.path, key: p.key, c: p.c, set: &p.settings, token: made[0].Czxid, shared: !p.alone,
		of: p.InterProcessSemaphoreV2,
	}
}

// refuseMixed refuses the path if another lock is in use there. The last of listed is the
// list of the path that came with the leases. If it did not come, the path is listed again.
func (p permits) refuseMixed(ctx context.Context, listed [][]string) error {
	if len(listed) == 0 || listed[len(listed)-1] == nil {
		return p.leases.refuseForeign(ctx, p.path)
	}
	return refuseForeignIn(p.path, listed[len(listed)-1])
}

// askedWaiting returns the data of the leases, and the version of the node of m. If a
// request to release was written into that node, the data has the request behind it. If
// this client may not read the node, any version will do, and no request is known.
func (p permits) askedWaiting(ctx context.Context, m *seqqueue.Member) (data []byte, version int32, err error) {
	data = p.nodeData(p.c)
	said, stat, err := m.Session.Get(ctx, m.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, 0, ErrNodeDeleted
	case errors.Is(err, zk.ErrNoAuth):
		return data, client.AnyVersion, nil
	case err != nil:
		return nil, 0, err
	}
	_, asked := cutRevocation(said)
	switch {
	case asked && len(data) == 0:
		data = []byte(revocation)
	case asked:
		data = append(bytes.Clone(data), answered...)
	}
	return data, stat.Version, nil
}

// turnWithin is turn in the context of a lease of the semaphore. It waits for nothing.
func (p permits) turnWithin(ctx context.Context, m *seqqueue.Member) error {
	_, err := p.gate.turn(ctx, m, false)
	if err == nil {
		_, err = p.awaitRoom(ctx, m.Session, m.OtherChildren(), false)
	} else {
		err = waiterAhead(err)
	}
	return insteadOfWaiting(err)
}

// nested returns how many permits the leases of this semaphore have that ctx descends from.
// A waiter ahead may wait for them, so the acquire must not wait for that waiter. Another
// client's lease may be of another ensemble, which its path does not tell. So such a lease
// counts only if this client's servers have its node.
func (p permits) nested(ctx context.Context) (own int, err error) {
	var others []string
	h, _ := ctx.Value(p.key.on).(*held)
	for ; h != nil; h = h.outer {
		switch g := h.grant; {
		case g.key.tag != p.key.tag || g.err() != nil:
		case g.key == p.key:
			own += len(g.Paths)
		default:
			for _, node := range g.Paths {
				others = append(others, nameOf(node))
			}
		}
	}
	if others == nil {
		return own, nil
	}
	children, _, err := p.c.Children(ctx, p.leases.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return own, nil
	}
	for _, name := range others {
		if slices.Contains(children, name) {
			own++
		}
	}
	return own, err
}

// insteadOfWaiting turns a BusyError into the refusal of an acquire that must not wait.
func insteadOfWaiting(err error) error {
	var busy *BusyError
	if errors.As(err, &busy) { // the refusal does not match it: a second try fails as well
		return fmt.Errorf("%w: the caller holds permits of this semaphore and must not wait for more, and they are not free now: %v; acquire all of them at once, or release the held ones first", ErrWouldDeadlock, busy.Holder)
	}
	return err
}

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
// acquires did not have to wait, if no acquire of this client waits, and in the window of the
// queue: a crowd that comes at one instant ends up there.
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
	seat := p.gate.queue.Seat(own > 0)
	if seat == nil {
		return place{}, false, nil, nil
	}
	defer seat.Leave()
	use := p.guard.borrow(session, p.path)
	defer func() { p.guard.giveBack(use) }()
	nodes := p.nodes(p.nodeData(p.c))
	// The queue is listed first: a contender that leaves it with leases is in the
	// second list.
	nodes[0].Other, nodes[0].More = p.gate.path, []string{p.leases.dir, p.path}
	if use.stands() {
		nodes[0].More = nodes[0].More[:1]
	}
	var gone seqqueue.Gone
	gone.Of(&nodes[0])
	made, err := inner.CreateGroup(ctx, session, nodes)
	if err != nil {
		seat.Until(&gone)
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
	m, err = p.withdraw(ctx, granted, seat)
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
func (p permits) withdraw(ctx context.Context, leases place, seat *seqqueue.Seat) (m *seqqueue.Member, err error) {
	if err = p.gate.queue.MayJoin(ctx); err != nil {
		leases.VacateInBackground()
		return nil, err
	}
	parts := make([]client.Op, len(leases.Paths))
	for i, path := range leases.Paths {
		parts[i] = client.DeleteOp(path, client.AnyVersion)
	}
	node := p.gate.node()
	var gone seqqueue.Gone
	gone.Of(&node)
	made, err := inner.CreateGroup(ctx, leases.Session, []newNode{node}, parts...)
	if err == nil {
		return seat.Adopt(leases.Session, node.Prefix, made[0])
	}
	seat.Until(&gone)
	leases.VacateInBackground()
	var refused *client.MultiError
	if errors.As(err, &refused) && refused.Index >= 0 || errors.Is(err, client.ErrSessionLost) && ctx.Err() == nil {
		return nil, nil //nolint:nilnil // the acquire has no place yet
	}
	return nil, takenAway(err)
}
