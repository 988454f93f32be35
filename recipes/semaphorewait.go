package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// await waits for the turn of member and then for room. On error it removes
// the member's node.
func (s *InterProcessSemaphore) await(ctx context.Context, m *seqqueue.Member, n int) (place, error) {
	err := m.Await(ctx, seqqueue.Everybody)
	for watch := false; err == nil; watch = true {
		var v view
		v, err = s.look(ctx, m.Session, n, m.Beside(), watch)
		switch {
		case err == nil && v.room:
			v.stop()
			return s.claim(ctx, m, n)
		case err == nil && watch:
			err = v.change(ctx)
		}
	}
	m.LeaveInBackground()
	return place{}, err
}

// try takes the turn of member if it has come and there is room, and removes
// its node otherwise.
func (s *InterProcessSemaphore) try(ctx context.Context, m *seqqueue.Member, n int) (place, error) {
	err := waiterAhead(s.gate.first(ctx, m))
	if err == nil {
		err = s.full(ctx, m.Session, n, m.Beside())
	}
	if err != nil {
		m.LeaveInBackground()
		return place{}, err
	}
	return s.claim(ctx, m, n)
}

// free returns a BusyError if n permits could not be had now.
func (s *InterProcessSemaphore) free(ctx context.Context, n int) error {
	if err := waiterAhead(s.gate.free(ctx)); err != nil {
		return err
	}
	session, err := s.c.Session(ctx)
	if err != nil {
		return err
	}
	return s.full(ctx, session, n, nil)
}

// waiterAhead says of who is ahead in the queue that it waits for permits.
func waiterAhead(err error) error {
	var busy *BusyError
	if errors.As(err, &busy) {
		busy.Holder = waiter(busy.Holder)
	}
	return err
}

// full returns a BusyError with a holder if there is no room; listed is as for
// look.
func (s *InterProcessSemaphore) full(ctx context.Context, session *client.Session, n int, listed []string) error {
	for ; ; listed = nil {
		v, err := s.look(ctx, session, n, listed, false)
		if err != nil || v.room {
			return err
		}
		holders, err := s.leases.contenders(ctx)
		if err != nil {
			return err
		}
		if len(holders) > 0 {
			return &BusyError{Holder: holders[0]}
		}
		// They have left meanwhile: look again.
	}
}

// view is what one look says.
type view struct {
	room    bool
	changed []*client.Watch // of what would change it; nil without a watch
}

// look says whether there is room for n more permits. For one who is first in
// the queue it stays so: only leases that go can change it, and the number of
// permits. So a list of the leases that was made since is as good as a new one;
// listed is that, or nil.
func (s *InterProcessSemaphore) look(ctx context.Context, session *client.Session, n int, listed []string, watch bool) (_ view, err error) {
	most, raised, err := s.permitsDuring(ctx, session, watch)
	v := view{changed: []*client.Watch{nil, raised}}
	defer func() {
		if err != nil {
			v.stop()
		}
	}()
	if err != nil {
		return view{}, err
	}
	if err = atMost(n, most); err != nil {
		return view{}, err
	}
	if err = s.beside(ctx, n, most); err != nil { // held since by another client, in a multi-lock
		return view{}, err
	}
	if listed == nil {
		if listed, v.changed[0], err = s.leases.list(ctx, session, watch); err != nil {
			return view{}, err
		}
	}
	v.room, err = s.leases.room(ctx, session, listed, most-n)
	return v, err
}

// permitsDuring is permits, no longer than session lasts: a count of another
// client may be out of reach for longer.
func (s *InterProcessSemaphore) permitsDuring(ctx context.Context, session *client.Session, watch bool) (int, *client.Watch, error) {
	if s.count == nil || inner.Root(s.count.c) == inner.Root(s.c) {
		return s.permits(ctx, watch)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := session.Context()
	defer context.AfterFunc(over, func() { end(context.Cause(over)) })()
	most, w, err := s.permits(ctx, watch)
	if err != nil {
		err = cmp.Or(session.Err(), err)
	}
	return most, w, err
}

// change waits until looking again may tell something else.
func (v view) change(ctx context.Context) error {
	done := make([]<-chan struct{}, len(v.changed)) // nil never is
	for i, w := range v.changed {
		if w != nil {
			done[i] = w.Done()
		}
	}
	defer v.stop()
	select {
	case <-done[0]:
		return nil
	case <-done[1]:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for leases to be released: %w", ctxerr.Ended(ctx))
	}
}

// stop gives up the watches; one of them may stand for the next look, too.
func (v view) stop() {
	for _, w := range v.changed {
		w.Stop()
	}
}

// claim makes the leases of a member that is first and found room. Its node
// goes in the same transaction, which therefore fails if somebody deleted it
// and another may have become first.
func (s *InterProcessSemaphore) claim(ctx context.Context, m *seqqueue.Member, n int) (place, error) {
	lease := newNode{Dir: s.leases.dir, Prefix: leaseTag, Data: s.nodeData(s.c), ACL: s.acl}
	made, err := inner.CreateGroup(ctx, m.Session, slices.Repeat([]newNode{lease}, n), client.DeleteOp(m.Path, client.AnyVersion))
	if err != nil {
		m.LeaveInBackground()
		var refused *client.MultiError
		if errors.As(err, &refused) && refused.Index >= 0 && errors.Is(err, zk.ErrNoNode) {
			err = ErrNodeDeleted
		}
		return place{}, takenAway(err)
	}
	out := leased{session: m.Session}
	for _, e := range made {
		out.nodes = append(out.nodes, e.Path)
	}
	return place{
		lock: s.path, key: s.key,
		c: s.c, session: m.Session, nodes: out.nodes, token: made[0].Czxid,
		remove: out.leave, drop: out.drop,
	}, nil
}
