package seqqueue

import (
	"cmp"
	"context"

	"github.com/docent-go/docent/internal/ctxerr"
)

// Ahead returns the nearest contender that blocks, nil if none does. The first call uses the
// list that came with the node. Later calls list the directory again. A member of the same
// session that is over blocks nobody, though its node may still stand.
func (m *Member) Ahead(ctx context.Context, blocks Blocks) (*Node, error) {
	for ev := (event{}); ; {
		a := m.look(m.now(ev), blocks)
		switch a.deed { //nolint:exhaustive // do has the others
		case take:
			return nil, m.atTurn(ctx)
		case watch:
			if m.behindOver(a) {
				return nil, m.atTurn(ctx)
			}
			m.tellAhead(a)
			nearest := a.nearest // not all of a, also when no contender blocks
			return &nearest, nil
		}
		var err error
		if ev, err = m.do(ctx, a); err != nil {
			return nil, err
		}
	}
}

// Await waits until no contender ahead blocks. It ends with an error if ctx ends, if the
// session is over, or if the member's own node is found to be gone. It leaves the node where
// it is: after an error the caller must delete the node.
func (m *Member) Await(ctx context.Context, blocks Blocks) error {
	defer m.unwatch()
	for ev := (event{}); ; {
		a := m.next(m.now(ev), blocks)
		if a.deed == take {
			m.calm(true)
			return m.atTurn(ctx)
		}
		var err error
		if ev, err = m.do(ctx, a); err != nil {
			m.calm(false)
			return err
		}
	}
}

// now adds to ev what is true now.
func (m *Member) now(ev event) event {
	ev.stands, ev.over = m.stands(), m.Session.Err() != nil
	return ev
}

// do does what next has returned, other than take.
func (m *Member) do(ctx context.Context, a action) (event, error) {
	switch a.deed {
	case list:
		err := m.listAgain(ctx)
		if a.early {
			err = m.waitedFor(m.nearest.Node, err)
		}
		return event{}, err
	case check:
		if err := m.q.mix(ctx, m.Session, *a.verdict); err != nil {
			m.chain.forgetAll()
			return event{}, err
		}
		return event{news: unmixed, verdict: a.verdict}, nil
	case park:
		m.hadToWait = true
		m.unwatch()
		return event{}, m.awaitFront(ctx, a)
	case watch:
		m.hadToWait = true
		m.tellAhead(a)
		if a.nearest.Tag == Bare && m.q.bare.CompareAndSwap(false, true) {
			inner.Logger(m.q.c).Warn("zookeeper: waiting for a contender that is named by a number alone; its program may not wait for this lock",
				"node", m.q.Path(a.nearest), "remedy", `let that program sort by the last ten digits of the names; see "A lock of your own" in docs/mixing.md`)
		}
		return m.awaitAhead(ctx, a)
	case stop:
		return event{}, ErrExhausted
	case fail, take:
	}
	return event{}, m.Session.Err()
}

// tellAhead calls Told with the nearest contender ahead.
func (m *Member) tellAhead(a action) {
	if m.Told != nil {
		m.Told(upTo(m.q.tags, a.nearest, a.list), a.nearest.Name)
	}
}

// atTurn takes the turn, if ctx has not ended.
func (m *Member) atTurn(ctx context.Context) error {
	if m.Told != nil {
		m.Told(0, "")
	}
	cmp.Or(m.chain, m.bound).leaveWindowIfShared(m)
	return ctxerr.Ended(ctx)
}
