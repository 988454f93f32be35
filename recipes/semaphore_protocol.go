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
//  5. take, in grant.go, begins the hold. Release deletes the leases.
//
// If the number of permits is fixed, the waiters of a client have a book of its leases, in
// semaphore_book.go. It decides which of them a transaction grants, and which released leases
// that deletes. semaphore_group.go makes these transactions, and semaphore_room.go has the
// wait. A shared number may change at any time. So an acquire that reads it, and one that
// does not wait, counts the leases by itself: awaitRoom and claim are theirs.
//
// A short cut: atOnce, in semaphore_atonce.go, makes the leases before there is a node in the
// queue.
//
// An acquire in the context of a lease of the same semaphore is nested. It waits neither for
// room nor behind others: it fails with ErrWouldDeadlock.
//
// Locks of other kinds do not exclude a semaphore, so a path that has both is refused.
// refuseMixed looks for the other lock behind each transaction that makes leases. In
// constant use a watch does that, in semaphore_guard.go.

package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// mostAtOnce bounds the memory that a number out of a configuration can take.
// By default a server's limit is reached with some 8000.
const mostAtOnce = 1 << 16

// permits is the protocol of the semaphore for n permits.
type permits struct {
	*InterProcessSemaphoreV2

	n   int
	try bool // the acquire waits for no other
}

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
		w.book.keep(namesAt(leases.Paths), statOfOwn(leases))
	}
}

// awaitRoom waits until there is room for the permits. Unless wait is set it does not wait,
// and returns a BusyError with a holder if there is no room. Room stays for the first in
// the queue: no other acquire makes leases, and only a lower number of permits takes the
// room away. So a list of the leases that was made since the acquire became the first is as
// good as a new one. listed is that list, or nil.
func (p permits) awaitRoom(ctx context.Context, session *client.Session, listed []string, wait bool) (waited bool, err error) {
	for watch := false; ; watch = wait {
		seen, changed, err := p.seeLeases(ctx, session, listed, watch)
		there := seen.hasRoom()
		if err == nil && !there {
			switch {
			case watch:
				waited = true
				if err = changed.wait(ctx); err != nil {
					err = p.waited(session, seen, err)
				}
			case !wait:
				err = p.busy(ctx, session)
			}
		}
		changed.stop()
		if err != nil || there {
			return waited, err
		}
		listed = nil
	}
}

// busy returns a BusyError with a holder, nil if all holders have released meanwhile. A
// caller knows its own leases, so a holder of another session is named if there is one.
func (p permits) busy(ctx context.Context, session *client.Session) error {
	holders, err := p.leases.contenders(ctx)
	if err != nil || len(holders) == 0 {
		return err
	}
	other := slices.IndexFunc(holders, func(c Contender) bool { return c.Session != session.ID() })
	return &BusyError{Holder: holders[max(0, other)]}
}

// seeLeases says whether there is room, and which leases take it. If watch is set, changed
// tells when to look again.
func (p permits) seeLeases(ctx context.Context, session *client.Session, listed []string, watch bool) (seen occupied, changed changes, err error) {
	if seen.others, changed[1], err = p.othersDuring(ctx, session, watch); err != nil {
		return seen, changed, err
	}
	if listed == nil {
		if listed, changed[0], err = p.leases.list(ctx, session, watch); err != nil {
			return seen, changed, err
		}
	}
	seen.standing = leaseNames(listed)
	if len(seen.standing) > seen.others {
		if seen.held, err = p.leases.owned(ctx, session, seen.standing); err == nil {
			seen.standing = namesOf(seen.held)
		}
	}
	return seen, changed, err
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
	_ = leases.Own.Delete(ctx) // what fails goes on in the background
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
