package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// collecting is one acquire of a multi-lock.
type collecting struct {
	parts []part
	hold  *MultiHold // of what is held so far
	outer []*grant   // that the acquire is within
	seen  *sight
	wait  bool
}

func (m *InterProcessMultiLock) acquire(ctx context.Context, wait bool) (*MultiHold, error) {
	ctxerr.Require(ctx)
	h, outer := newMultiHold(ctx, m.path, len(m.parts)), around(ctx)
	ctx, seen := observe(ctx, m.parts[0].gate.key.root, client.LockInfo{Recipe: "InterProcessMultiLock", Mode: "multi", Path: m.path, Try: !wait})
	c := &collecting{m.parts, h, outer, seen, wait}
	err := c.all(ctx)
	// The loss of a lock that was held ends the waiting for the next ones. It is the
	// reason of the error then.
	if lost := c.hold.lost(); lost != nil {
		err = lost
	}
	if err != nil {
		c.hold.abandon()
		var failed *LockError
		if errors.As(err, &failed) {
			failed.Op = opOf(!wait)
		}
	}
	seen.givenAll(ctx, c.hold, err)
	if err != nil {
		return nil, err
	}
	return c.hold, nil
}

// all takes all locks.
func (c *collecting) all(ctx context.Context) error {
	if err := ctxerr.Ended(ctx); err != nil {
		return &LockError{Path: c.hold.path, Err: endedBefore(err)}
	}
	// The acquire waits for the missing locks only while the holds that it has last,
	// in a context that descends from them.
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := c.hold.ctx
	defer context.AfterFunc(over, func() { end(context.Cause(over)) })()

	var missing []int
	for i, p := range c.parts {
		h, ok, err := p.reenter(ctx)
		switch {
		case err != nil:
			return &LockError{Path: p.path, Err: err}
		case ok:
			ctx = c.hold.add(ctx, i, h) //nolint:fatcontext // one within the other is what is wanted
		default:
			missing = append(missing, i)
		}
	}
	if !c.wait {
		if err := c.free(ctx, missing); err != nil {
			return err
		}
	}
	for waited := false; len(missing) > 0; {
		next := 1
		for !waited && next < len(missing) && c.root(missing[next]) == c.root(missing[0]) {
			next++
		}
		taken, within, err := c.take(ctx, missing[:next])
		if err != nil {
			return err
		}
		ctx, missing, waited = within, missing[taken:], waited || taken < next //nolint:fatcontext // as above
	}
	return nil
}

func (c *collecting) root(i int) *client.Client { return c.parts[i].gate.key.root }

// free returns a BusyError if another contender would be ahead in one of some
// locks.
func (c *collecting) free(ctx context.Context, some []int) error {
	errs := make([]error, len(some))
	var all sync.WaitGroup
	for k, i := range some {
		all.Go(func() {
			if err := c.parts[i].free(ctx); err != nil {
				errs[k] = &LockError{Path: c.parts[i].path, Err: err}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// take joins the queues of some locks of one client in one transaction, and takes their
// turns in order. At the first lock whose turn has not come it withdraws from the queues
// behind. While the acquire waits here, a place there would be a lock that is held out
// of order. It returns how many locks it has taken, and a context that descends from
// their holds.
func (c *collecting) take(ctx context.Context, some []int) (taken int, within context.Context, err error) {
	members, err := c.join(ctx, some)
	if err != nil {
		return 0, ctx, err
	}
	joined := time.Now()
	for k, i := range some {
		p, m := c.parts[i], members[k]
		if time.Since(joined) > watchAfter {
			m.Forget() // its node may have been deleted meanwhile
		}
		behind := members[k+1:]
		granted, err := p.turn(ctx, m, c.wait && len(behind) == 0)
		if c.wait && errors.Is(err, ErrBusy) {
			if err = withdraw(ctx, behind); err == nil {
				granted, err = p.turn(ctx, m, true)
			}
			behind = nil
		}
		var h *Hold
		if err == nil {
			h, err = take(ctx, granted, c.outer)
		} else {
			abandon(ctx, m, err)
		}
		if err != nil {
			for _, m := range behind {
				abandon(ctx, m, err)
			}
			return k, ctx, &LockError{Path: p.path, Err: err}
		}
		ctx = c.hold.add(ctx, i, h) //nolint:fatcontext // one within the other is what is wanted
		if len(behind) == 0 {
			return k + 1, ctx, nil
		}
	}
	return len(some), ctx, nil
}

// withdraw deletes the nodes of members, and waits for that. If a node may still
// stand, the acquire must not wait: withdraw returns why, and the node is deleted in
// the background.
func withdraw(ctx context.Context, members []*seqqueue.Member) error {
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			if err := m.Delete(ctx); err != nil && !errors.Is(err, seqqueue.ErrGone) {
				errs[i] = fmt.Errorf("its node %s could not be withdrawn before the wait, and is deleted in the background: %w", m.Paths[0], err)
			}
		})
	}
	all.Wait()
	return joined(errs...)
}

// join makes the nodes of some locks of one client. On error no node remains, or
// its removal goes on in the background.
func (c *collecting) join(ctx context.Context, some []int) ([]*seqqueue.Member, error) {
	parts := make([]part, len(some))
	for k, i := range some {
		parts[k] = c.parts[i]
	}
	fail := func(err error) ([]*seqqueue.Member, error) {
		return nil, &LockError{Path: pathOf(parts), Err: err}
	}
	root := parts[0].gate.key.root
	if err := met(ctx, root); err != nil {
		return fail(err)
	}
	nodes := make([]newNode, len(parts))
	for k, p := range parts {
		if err := p.gate.queue.MayJoin(ctx); err != nil {
			return nil, &LockError{Path: p.path, Err: err}
		}
		nodes[k] = p.gate.node()
	}
	s, made, err := create(ctx, root, nodes)
	if err != nil {
		return fail(err)
	}
	members := make([]*seqqueue.Member, 0, len(parts))
	for k, p := range parts {
		member, refused := adopt(s, p.gate.queue, nodes[k], made[k])
		if refused != nil {
			err = cmp.Or(err, error(&LockError{Path: p.path, Err: refused}))
			continue
		}
		c.seen.queued(p.path, member)
		members = append(members, member)
	}
	if err != nil {
		for _, member := range members {
			member.DeleteInBackground()
		}
		return nil, err
	}
	return members, nil
}

// adopt makes a node, made in s, a member of its queue.
func adopt(s *client.Session, q *seqqueue.Queue, node newNode, made inside.Entry) (*seqqueue.Member, error) {
	own, err := inner.In(s, node.In)
	if err != nil {
		return nil, err
	}
	return q.Adopt(own, node.Prefix, made)
}

// create makes the nodes in one session, in the next if that is lost: there was
// no place yet that could be lost with it.
func create(ctx context.Context, root *client.Client, nodes []newNode) (*client.Session, []inside.Entry, error) {
	for {
		s, err := root.Session(ctx)
		if err != nil {
			return nil, nil, err
		}
		made, err := inner.CreateGroup(ctx, s, nodes)
		if !errors.Is(err, client.ErrSessionLost) || ctx.Err() != nil {
			return s, made, takenAway(err)
		}
	}
}
