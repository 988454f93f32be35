// The protocol of the semaphore (Curator: InterProcessSemaphoreV2). Two directories
// are below its path: "locks" is a queue like that of a mutex, and each child of
// "leases" is one permit that is held.
//
//  1. reenter gives nothing, and refuses more permits than there are.
//  2. join makes a node in the queue. The list of the leases comes with the answer.
//  3. turn waits until the node is the first in the queue. Then awaitRoom counts the leases,
//     as semaphore_leases.go says. Until there is room it watches their directory, and the
//     number of permits if that is shared. No other acquire adds leases meanwhile: only the
//     first may.
//  4. claim makes one lease for each permit and deletes the node in the queue, in one
//     transaction. If another client has deleted that node, another acquire may be the
//     first, and the transaction fails as a whole.
//  5. take, in grant.go, begins the hold. Release deletes the leases, which wakes the
//     first in the queue.
//
// Two short cuts: atOnce, in semaphore_atonce.go, makes the leases before there is a node
// in the queue. A release may hand over to waiters, in semaphore_heir.go.
//
// An acquire in the context of a lease of the same semaphore is nested. It does not wait
// for room. Behind others it waits only as long as the queue moves. Otherwise it fails
// with ErrWouldDeadlock.
//
// Locks of other kinds do not exclude a semaphore, so a path that has both is refused.
// refuseMixed looks for the other lock behind each transaction that makes leases. In
// constant use a watch does that, in semaphore_atonce.go.

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

	n int
}

func (p permits) part() part { return part{p, p.path, p.gate} }

func (m *InterProcessSemaphoreMutex) part() part { return permits{m.semaphore, 1}.part() }

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
	_, _, _, err = p.awaitRoom(ctx, nil, session, nil, false)
	return err
}

// join makes a node in the queue of the semaphore, and lists the leases. If another acquire
// of this client waits, this one is hardly the first, and the leases are not listed.
func (p permits) join(ctx context.Context) (*seqqueue.Member, error) {
	if err := met(ctx, p.c); err != nil {
		return nil, err
	}
	node := p.gate.node()
	if p.waiters() != nil {
		node.Other = ""
	}
	return p.gate.queue.Join(ctx, node)
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
	return p.claim(ctx, m)
}

// turnAfter is turn of an acquire that is not nested. A release, or another acquire of this
// client, may serve it meanwhile.
func (p permits) turnAfter(ctx context.Context, m *seqqueue.Member, wait bool) (got place, err error) {
	var h *heir
	served := false
	if wait && p.count == nil {
		h = p.newHeir(m)
		defer func() { h.leave(err == nil) }()
		got, served, err = h.turn(ctx)
	} else {
		_, err = p.gate.turn(ctx, m, wait)
		err = waiterAhead(err)
	}
	if served || err != nil {
		return got, err
	}
	listed := m.OtherChildren()
	got, seen, waited, err := p.awaitRoom(ctx, h, m.Session, listed, wait)
	p.learn(listed != nil && !waited)
	switch {
	case err != nil || got.Session != nil:
		return got, err
	case h != nil:
		return h.claim(ctx, seen)
	default:
		return p.claim(ctx, m)
	}
}

// awaitRoom waits until there is room for the permits. Unless wait is set it does not wait,
// and returns a BusyError with a holder if there is no room. Room stays for the first in
// the queue: no other acquire makes leases, and only a lower number of permits takes the
// room away. So a list of the leases that was made since the acquire became the first is as
// good as a new one. listed is that list, or nil.
//
// Unless h is nil, a release of this client may hand its permits over to h. Then got is
// the place. Otherwise standing are the names of the leases that may be held.
func (p permits) awaitRoom(ctx context.Context, h *heir, session *client.Session, listed []string, wait bool) (got place, standing []string, waited bool, err error) {
	watch := false
	if standing, ok := h.calledFirst(); ok {
		watch = true
		if got, over, err := h.ended(ctx, len(standing) <= p.max-p.n); over || err != nil {
			return got, standing, true, err
		}
	}
	for ; ; watch = wait {
		seen, changed, err := p.seeLeases(ctx, session, listed, watch)
		there := seen.hasRoom()
		if err == nil && !there {
			switch {
			case watch:
				waited = true
				if err = changed.wait(ctx, h.offer(seen.held)); err != nil {
					err = p.waited(session, seen, err)
				}
			case !wait:
				err = p.busy(ctx)
			}
		}
		changed.stop()
		if err != nil {
			return place{}, nil, waited, err
		}
		if got, over, err := h.ended(ctx, there); over || err != nil {
			return got, seen.standing, waited, err
		}
		listed = nil
	}
}

// busy returns a BusyError with a holder, nil if all holders have released meanwhile.
func (p permits) busy(ctx context.Context) error {
	holders, err := p.leases.contenders(ctx)
	if err == nil && len(holders) > 0 {
		err = &BusyError{Holder: holders[0]}
	}
	return err
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
func (p permits) claim(ctx context.Context, m *seqqueue.Member) (place, error) {
	data, version := p.nodeData(p.c), int32(0)
	for {
		made, err := p.grantLeases(ctx, m, data, version)
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
// version. Behind that the path is listed. So if two locks of different kinds come in the
// same moment, at least one sees the other.
func (p permits) grantLeases(ctx context.Context, m *seqqueue.Member, data []byte, version int32) (place, error) {
	made, err := inner.CreateGroup(ctx, m.Session, p.nodes(data), client.DeleteOp(m.Path, version))
	if err != nil {
		return place{}, err
	}
	granted := p.granted(m.Session, made)
	if err := p.refuseMixed(ctx, made[0].More); err != nil {
		return place{}, p.mixed(ctx, granted, err)
	}
	return granted, nil
}

// mixed deletes leases that were made although another lock is in use on the path. It
// returns err, which names that lock.
func (p permits) mixed(ctx context.Context, leases place, err error) error {
	p.unmixed.Store(false)
	_ = leases.Delete(ctx) // what fails goes on in the background
	return err
}

// nodes are the leases to be made, with data. The path is listed with them.
func (p permits) nodes(data []byte) []newNode {
	all := slices.Repeat([]newNode{{Dir: p.leases.dir, Prefix: leaseTag, Data: data, ACL: p.acl, Persistent: p.stays}}, p.n)
	all[0].More = []string{p.path}
	return all
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
