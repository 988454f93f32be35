// The protocol of the semaphore (Curator: InterProcessSemaphoreV2). Two directories
// are below its path: "locks" is a queue like that of a mutex, and each child of
// "leases" is one permit that is held.
//
//  1. reenter gives nothing, and refuses more permits than there are.
//  2. join makes a node in the queue. The list of the leases comes with the answer.
//  3. turn waits until the node is the first in the queue. Then it counts the leases.
//     Until there is room it watches their directory, and the number of permits if
//     that is shared. No other acquire adds leases meanwhile: only the first may.
//  4. claim makes one lease for each permit and deletes the node in the queue, in one
//     transaction. If another client has deleted that node, so that another acquire
//     may be the first, the transaction fails as a whole.
//  5. take, in grant.go, begins the hold. Release deletes the leases, which wakes the
//     first in the queue.
//
// An acquire in the context of a lease of the same semaphore is nested. It waits neither
// for its turn nor for room: where others wait, it fails with ErrWouldDeadlock.

package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
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
// that could never be granted.
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
	if _, _, err := p.others(ctx, false); err != nil {
		return nil, false, err
	}
	if p.n > mostAtOnce {
		return nil, false, fmt.Errorf("%w: asked for %d permits, and %d at the most are taken in one transaction", client.ErrTooLarge, p.n, mostAtOnce)
	}
	nested, err := p.nested(ctx)
	if nested {
		err = insteadOfWaiting(p.free(ctx)) // before there is a node
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
	return p.room(ctx, session, nil, false)
}

// join makes a node in the queue of the semaphore.
func (p permits) join(ctx context.Context) (*seqqueue.Member, error) { return p.gate.join(ctx) }

// turn waits until m is the first in the queue, and then until there is room for
// the permits, and takes them.
func (p permits) turn(ctx context.Context, m *seqqueue.Member, wait bool) (place, error) {
	nested := false
	if wait {
		var err error
		if nested, err = p.nested(ctx); err != nil {
			return place{}, err
		}
		wait = !nested
	}
	_, err := p.gate.turn(ctx, m, wait)
	if err = waiterAhead(err); err == nil {
		err = p.room(ctx, m.Session, m.Beside(), wait)
	}
	if nested {
		err = insteadOfWaiting(err)
	}
	if err != nil {
		return place{}, err
	}
	return p.claim(ctx, m)
}

// nested reports whether ctx descends from a lease of the semaphore. A waiter ahead may
// wait for that lease, so the acquire must not wait for the waiter. The path of a lease
// of another client does not tell its ensemble. So that lease counts only if its node is
// seen here.
func (p permits) nested(ctx context.Context) (bool, error) {
	var others []string
	h, _ := ctx.Value(p.key.on).(*held)
	for ; h != nil; h = h.outer {
		switch g := h.grant; {
		case g.key.tag != p.key.tag || g.err() != nil:
		case g.key == p.key:
			return true, nil
		default:
			for _, node := range g.Paths {
				others = append(others, node[strings.LastIndexByte(node, '/')+1:])
			}
		}
	}
	if others == nil {
		return false, nil
	}
	children, _, err := p.c.Children(ctx, p.leases.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return slices.ContainsFunc(others, func(name string) bool { return slices.Contains(children, name) }), err
}

// insteadOfWaiting makes a BusyError the refusal of an acquire that must not wait.
func insteadOfWaiting(err error) error {
	var busy *BusyError
	if errors.As(err, &busy) { // which the refusal does not match: trying again is no way out
		return fmt.Errorf("%w: the caller holds permits of this semaphore and must not wait for more, and they are not free now: %v; acquire all of them at once, or release those first", ErrWouldDeadlock, busy.Holder)
	}
	return err
}

// room waits until there is room for the permits. Unless wait is set it does not wait,
// and returns a BusyError with a holder if there is no room. Room stays for the first in
// the queue: no other acquire makes leases, and only a lower number of permits takes it away. So
// a list of the leases that was made since the acquire became the first is as good as a
// new one. listed is that list, or nil.
func (p permits) room(ctx context.Context, session *client.Session, listed []string, wait bool) error {
	for watch := false; ; watch = wait {
		seen, changed, err := p.look(ctx, session, listed, watch)
		there := seen.room()
		if err == nil && !there {
			switch {
			case watch:
				if err = changed.wait(ctx); err != nil {
					err = p.waited(session, seen, err)
				}
			case !wait:
				err = p.busy(ctx)
			}
		}
		changed.stop()
		if err != nil || there {
			return err
		}
		listed = nil
	}
}

// busy returns a BusyError with a holder, nil if the holders have left meanwhile.
func (p permits) busy(ctx context.Context) error {
	holders, err := p.leases.contenders(ctx)
	if err == nil && len(holders) > 0 {
		err = &BusyError{Holder: holders[0]}
	}
	return err
}

// look says whether there is room and which leases take it, and with watch set when
// to look again.
func (p permits) look(ctx context.Context, session *client.Session, listed []string, watch bool) (seen occupied, changed changes, err error) {
	if seen.others, changed[1], err = p.othersDuring(ctx, session, watch); err != nil {
		return seen, changed, err
	}
	if listed == nil {
		if listed, changed[0], err = p.leases.list(ctx, session, watch); err != nil {
			return seen, changed, err
		}
	}
	seen.taken, err = p.leases.taken(ctx, session, listed, seen.others)
	return seen, changed, err
}

// others is how many permits others may hold beside these, with a watch on a
// shared count if watch is set.
func (p permits) others(ctx context.Context, watch bool) (int, *client.OneShotWatch, error) {
	most, w := p.max, (*client.OneShotWatch)(nil)
	if p.count != nil {
		now, changed, err := p.counted(ctx, watch)
		if err != nil {
			return 0, nil, err
		}
		most, w = int(now), changed
	}
	if p.n > most {
		return 0, w, fmt.Errorf("%w: asked for %d of %d", ErrTooManyPermits, p.n, most)
	}
	return most - p.n, w, nil
}

// counted is the number that the count says, with a watch if watch is set.
func (p permits) counted(ctx context.Context, watch bool) (int32, *client.OneShotWatch, error) {
	if watch {
		return p.count.ValueW(ctx)
	}
	now, err := p.count.Value(ctx)
	return now, nil, err
}

// othersDuring is others, but ends with session: the count may be of another client,
// whose servers may be out of reach for longer.
func (p permits) othersDuring(ctx context.Context, session *client.Session, watch bool) (int, *client.OneShotWatch, error) {
	if p.count == nil {
		return p.others(ctx, watch)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := session.Context()
	defer context.AfterFunc(over, func() { end(context.Cause(over)) })()
	n, w, err := p.others(ctx, watch)
	if err != nil {
		err = cmp.Or(session.Err(), err)
	}
	return n, w, err
}

// waiter is a contender of the queue as one for permits: its lock is not the
// semaphore.
func waiter(c Contender) Contender {
	c.Holder, c.HeldSince, c.Mode = false, time.Time{}, ModeLease
	return c
}
