package recipes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// entering is one acquire of a multi-lock.
type entering struct {
	*InterProcessMultiLock

	turn func(entrance) turn
	hold *MultiHold // of what is held so far
	seen *sight
}

// enter re-enters what ctx holds; and, unless before objects, it enters the
// queues of the others and takes its turns in them.
func (m *InterProcessMultiLock) enter(ctx context.Context, op string, before func(context.Context, []int) error, take func(entrance) turn) (*MultiHold, error) {
	ctxerr.Require(ctx)
	e := &entering{InterProcessMultiLock: m, turn: take, hold: newMultiHold(ctx, m.path, len(m.entries))}
	ctx, e.seen = observe(ctx, m.entries[0].line.root, client.LockInfo{Recipe: "InterProcessMultiLock", Mode: "multi", Path: m.path, Try: op == trying})
	err := e.take(ctx, op, before)
	e.seen.givenAll(ctx, e.hold, err)
	if err != nil {
		return nil, err
	}
	return e.hold, nil
}

// take fills the hold, or discards it.
func (e *entering) take(ctx context.Context, op string, before func(context.Context, []int) error) error {
	err := e.all(ctx, before)
	// A lock that was held and is lost ends the waiting for the next ones, and
	// is the reason then.
	if lost := e.hold.lost(); lost != nil {
		err = lost
	}
	if err != nil {
		e.hold.discard()
		var failed *LockError
		if errors.As(err, &failed) {
			failed.Op = op
		}
	}
	return err
}

func (e *entering) all(ctx context.Context, before func(context.Context, []int) error) error {
	// What is waited for is waited for while the holds last, and in a context
	// that descends from them.
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := e.hold.ctx
	defer context.AfterFunc(over, func() { end(context.Cause(over)) })()

	for i, entry := range e.entries {
		one, err := entry.reenter(ctx)
		if err != nil {
			return &LockError{Path: entry.path, Err: err}
		}
		if one != nil {
			ctx = e.hold.add(ctx, i, one) //nolint:fatcontext // one within the other is what is wanted
		}
	}
	held := func(i int) bool { return e.hold.holds[i] != nil }
	var missing []int
	for _, group := range e.groups {
		missing = append(missing, slices.DeleteFunc(slices.Clone(group), held)...)
	}
	if err := before(ctx, missing); err != nil {
		return err
	}
	for _, group := range e.groups {
		var err error
		if ctx, err = e.group(ctx, slices.DeleteFunc(slices.Clone(group), held)); err != nil {
			return err
		}
	}
	return nil
}

// group enters the queues of one client's locks in one transaction and takes
// their turns one after the other. Whoever is ahead of us in one of them, and
// whoever holds a lease that we wait for, entered all of theirs before; nobody
// waits for those who came later, so nobody waits in a circle.
func (e *entering) group(ctx context.Context, group []int) (context.Context, error) {
	if len(group) == 0 {
		return ctx, nil
	}
	members, err := e.join(ctx, group)
	if err != nil {
		return ctx, err
	}
	entered := time.Now()
	for k, i := range group {
		entry, member := e.entries[i], members[k]
		if time.Since(entered) > watchAfter {
			member.Outdate() // the own node may have been deleted meanwhile
		}
		p, err := e.turn(entry)(ctx, member)
		var one *Hold
		if err == nil {
			// It is held, and watched, from now on: waiting for the next may
			// take long.
			one, err = take(ctx, p)
		}
		if err != nil {
			for _, rest := range members[k+1:] {
				rest.LeaveInBackground()
			}
			return ctx, &LockError{Path: entry.path, Err: err}
		}
		ctx = e.hold.add(ctx, i, one) //nolint:fatcontext // one within the other is what is wanted
	}
	return ctx, nil
}

// join enters the queues of one client's locks. On error no node remains, or
// its removal goes on in the background.
func (e *entering) join(ctx context.Context, group []int) ([]*seqqueue.Member, error) {
	nodes := make([]newNode, len(group))
	if err := met(ctx, e.entries[group[0]].line.root); err != nil {
		return nil, &LockError{Path: e.named(group), Err: err}
	}
	for k, i := range group {
		nodes[k] = e.entries[i].node
		nodes[k].Data = e.entries[i].data()
		if err := e.entries[i].queue.Room(ctx); err != nil {
			return nil, &LockError{Path: e.entries[i].path, Err: err}
		}
	}
	s, made, err := e.create(ctx, e.entries[group[0]].line.root, nodes)
	if err != nil {
		return nil, &LockError{Path: e.named(group), Err: err}
	}
	members := make([]*seqqueue.Member, 0, len(group))
	for k, i := range group {
		member, refused := e.adopt(s, i, nodes[k], made[k])
		if refused != nil {
			err = cmp.Or(err, error(&LockError{Path: e.entries[i].path, Err: refused}))
			continue
		}
		e.seen.queued(e.entries[i].path, member)
		members = append(members, member)
	}
	if err != nil {
		for _, member := range members {
			member.LeaveInBackground()
		}
		return nil, err
	}
	return members, nil
}

// adopt makes the node of entry i, made in s, a member of that entry's queue.
func (e *entering) adopt(s *client.Session, i int, node newNode, made inside.Entry) (*seqqueue.Member, error) {
	own, err := inner.In(s, node.In)
	if err != nil {
		return nil, err
	}
	return e.entries[i].queue.Adopt(own, node.Prefix, made)
}

// create makes the nodes in one session, in the next if that is lost: there was
// no place yet that could be lost with it.
func (e *entering) create(ctx context.Context, root *client.Client, nodes []newNode) (*client.Session, []inside.Entry, error) {
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
