package watches

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// errOtherConnection says that the connection is not the one that the reader of a feed
// knows.
var errOtherConnection = errors.New("client: the connection is another one")

// nodeRead is a read of one node.
type nodeRead struct {
	op   wire.Op
	path string
}

func (r nodeRead) spot() spot { return spot{r.path, sideOf(r.op)} }

// at returns the hub of the connection that the reader knows.
func (f *feed) at() (*Hub, error) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.all.hub == nil || f.all.table.connection != f.connection || f.all.hub.over != nil {
		return nil, errOtherConnection
	}
	// While the client sets the persistent watch again for another reader, events are
	// lost. A FeedMissed follows.
	if f.oneShots == nil && !f.all.table.stands(f.all.table.lasting(f.full)) {
		return nil, errOtherConnection
	}
	return f.all.hub, nil
}

// exchange sends requests on the connection that the reader knows. No answer of
// another connection counts: Hub.Up runs before the first of its answers.
func (f *feed) exchange(ctx context.Context, h *Hub, xs []*wire.Exchange) error {
	if err := h.s.Link().Do(ctx, xs...); err != nil {
		return err
	}
	now, err := f.at()
	if err == nil && now != h {
		err = errOtherConnection
	}
	return err
}

func (f *feed) Sync(ctx context.Context) (int64, error) {
	h, err := f.at()
	if err != nil {
		return 0, err
	}
	x := session.Ask(wire.OpSync, f.names.Top)
	if err := f.exchange(ctx, h, []*wire.Exchange{x}); err != nil {
		return 0, err
	}
	return x.Reply.Zxid, h.s.Answer(x)
}

func (f *feed) Read(ctx context.Context, asks []inside.Ask) (head int64, answers []inside.Answer, err error) {
	h, err := f.at()
	if err != nil {
		return 0, nil, err
	}
	keys, err := f.keys(asks)
	if err != nil {
		return 0, nil, err
	}
	if f.oneShots == nil {
		return f.readAtOnce(ctx, h, keys)
	}
	xs := make([]*wire.Exchange, len(keys))
	for i, key := range keys {
		xs[i] = session.Ask(key.op, key.path)
	}
	tells, err := f.watched(ctx, h, keys, xs)
	if err != nil {
		return 0, nil, err
	}
	answers = make([]inside.Answer, len(xs))
	for i, x := range xs {
		if x.Err() != nil {
			return 0, nil, x.Err()
		}
		head = max(head, x.Reply.Zxid)
		answers[i] = inside.Answer{
			Err: h.s.Answer(x), Data: x.Reply.Data, Names: x.Reply.Names, Stat: x.Reply.Stat, Unwatched: !tells[i],
		}
	}
	return head, answers, nil
}

// readAtOnce reads by one request, which leaves no watch.
func (f *feed) readAtOnce(ctx context.Context, h *Hub, keys []nodeRead) (head int64, answers []inside.Answer, err error) {
	if err := h.s.Supports(ctx, session.MultiReads); err != nil {
		return 0, nil, err
	}
	x := &wire.Exchange{Request: wire.Request{Op: wire.OpMultiRead, Parts: make([]wire.Request, len(keys))}}
	for i, key := range keys {
		x.Request.Parts[i] = wire.Request{Op: key.op, Path: key.path}
		if key.op == wire.OpGetChildren {
			x.Request.Parts[i].Op = wire.OpGetNames
		}
	}
	if err := f.exchange(ctx, h, []*wire.Exchange{x}); err != nil {
		return 0, nil, err
	}
	if err := h.s.Refused(session.MultiReads, h.s.Answer(x)); err != nil {
		return 0, nil, err
	}
	if len(x.Reply.Parts) != len(keys) {
		return 0, nil, fmt.Errorf("%w: %d answers to %d reads", wire.ErrProtocol, len(x.Reply.Parts), len(keys))
	}
	answers = make([]inside.Answer, len(keys))
	for i, part := range x.Reply.Parts {
		answers[i] = inside.Answer{Err: fate.OfCode(part.Code), Data: part.Data, Names: part.Names}
		if part.Stat != nil {
			answers[i].Stat = *part.Stat
		}
	}
	return x.Reply.Zxid, answers, nil
}

// watched is exchange for reads that leave watches. It returns which of the watches
// stand, for all that is known.
func (f *feed) watched(ctx context.Context, h *Hub, keys []nodeRead, xs []*wire.Exchange) (tells []bool, err error) {
	var connection int
	err = h.enter(ctx, len(keys), func(i int) string { return keys[i].path }, func() {
		connection = f.all.table.connection
		for i, key := range keys {
			xs[i].Request.Watch = f.all.table.listen(f.oneShots, key.spot())
		}
	})
	if err != nil {
		return nil, err
	}
	err = f.exchange(ctx, h, xs)
	tells = make([]bool, len(keys))
	h.change(func(t *table, now time.Time) {
		for i, key := range keys {
			if x := xs[i]; x.Request.Watch {
				t.listened(f.oneShots, key.spot(), outcomeOf(x, resultOf(h, key, x, err)), t.connection == connection, ctx.Err() != nil, now)
			}
			tells[i] = t.hears(f.oneShots, key.spot())
		}
	})
	return tells, err
}

// resultOf is the error of one read in an exchange that ended with err.
func resultOf(h *Hub, key nodeRead, x *wire.Exchange, err error) error {
	if !x.Answered() {
		return err
	}
	if err = h.s.Answer(x); fires(key.op, err) {
		return nil // the watch stands
	}
	return err
}

func (f *feed) keys(asks []inside.Ask) ([]nodeRead, error) {
	keys := make([]nodeRead, len(asks))
	for i, ask := range asks {
		full, err := f.names.Full(ask.Path)
		if err != nil {
			return nil, err
		}
		keys[i] = nodeRead{wire.OpGetData, full}
		switch {
		case ask.Children:
			keys[i].op = wire.OpGetChildren
		case ask.Missing:
			keys[i].op = wire.OpExists
		}
	}
	return keys, nil
}
