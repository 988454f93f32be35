package client

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// comparedBytes is how many bytes of paths one request compares. A server refuses
// requests of more than 1 MiB (jute.maxbuffer).
const comparedBytes = 128 << 10

// errOtherConnection says that the connection is not the one that the reader of a feed
// knows.
var errOtherConnection = errors.New("client: the connection is another one")

// at returns the hub of the connection that the reader knows.
func (f *feed) at() (*hub, error) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.all.hub == nil || f.all.connection != f.connection || f.all.hub.over != nil {
		return nil, errOtherConnection
	}
	// While the client sets the persistent watch again for another reader, events are
	// lost. A FeedMissed follows.
	if f.changes != nil && !f.all.stands(f.all.paths[f.changes.full]) {
		return nil, errOtherConnection
	}
	return f.all.hub, nil
}

// exchange sends requests on the connection that the reader knows. No answer of
// another connection counts: hub.up runs before the first of its answers.
func (f *feed) exchange(ctx context.Context, h *hub, xs []*wire.Exchange) error {
	if err := h.s.link.Do(ctx, xs...); err != nil {
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
	x := asked(wire.OpSync, max(f.o.prefix, "/"))
	if err := f.exchange(ctx, h, []*wire.Exchange{x}); err != nil {
		return 0, err
	}
	return x.Reply.Zxid, h.s.answer(x)
}

func (f *feed) Read(ctx context.Context, asks []inside.Ask) ([]inside.Answer, error) {
	h, err := f.at()
	if err != nil {
		return nil, err
	}
	keys, err := f.keys(asks)
	if err != nil {
		return nil, err
	}
	xs := make([]*wire.Exchange, len(keys))
	for i, key := range keys {
		xs[i] = asked(key.op, key.path)
	}
	var tells []bool
	if f.changes != nil {
		err = f.exchange(ctx, h, xs)
	} else {
		tells, err = f.watched(ctx, h, keys, xs)
	}
	if err != nil {
		return nil, err
	}
	answers := make([]inside.Answer, len(xs))
	for i, x := range xs {
		if x.Err() != nil {
			return nil, x.Err()
		}
		answers[i] = inside.Answer{
			Zxid: x.Reply.Zxid, Err: h.s.answer(x), Data: x.Reply.Data, Names: x.Reply.Names, Stat: x.Reply.Stat,
			Unwatched: tells != nil && !tells[i],
		}
	}
	return answers, nil
}

// watched is exchange for reads that leave watches. It returns which of the watches
// stand, for all that is known.
func (f *feed) watched(ctx context.Context, h *hub, keys []watchKey, xs []*wire.Exchange) ([]bool, error) {
	e, err := h.enlist(ctx, f, keys, false)
	if err != nil {
		return nil, err
	}
	for i, x := range xs {
		x.Request.Watch = e.how[i] == toArm
	}
	err = f.exchange(ctx, h, xs)
	return e.done(ctx, func(i int) (*wire.Exchange, error) {
		x := xs[i]
		if !x.Answered() {
			return x, err
		}
		result := h.s.answer(x)
		if keys[i].op == wire.OpExists && errors.Is(result, zk.ErrNoNode) {
			result = nil // the watch stands
		}
		return x, result
	}), err
}

func (f *feed) keys(asks []inside.Ask) ([]watchKey, error) {
	keys := make([]watchKey, len(asks))
	for i, ask := range asks {
		full, err := f.o.full(ask.Path)
		if err != nil {
			return nil, err
		}
		keys[i] = watchKey{wire.OpGetData, full}
		switch {
		case ask.Children:
			keys[i].op = wire.OpGetChildren
		case ask.Missing:
			keys[i].op = wire.OpExists
		}
	}
	return keys, nil
}

func (f *feed) Compare(ctx context.Context, since int64, asks []inside.Ask) (unasked []inside.Ask, zxid int64, err error) {
	h, err := f.at()
	if err != nil {
		return nil, 0, err
	}
	if err := h.s.supports(ctx, watchTransfer); err != nil {
		return nil, 0, err
	}
	for len(asks) > 0 {
		n, size := 0, 0
		for ; n < len(asks) && size < comparedBytes; n++ {
			size += len(asks[n].Path)
		}
		left, at, err := f.compare(ctx, h, since, asks[:n])
		if err != nil {
			return nil, 0, err
		}
		unasked, zxid, asks = append(unasked, left...), max(zxid, at), asks[n:]
	}
	return unasked, zxid, nil
}

// compare is Compare by one request.
func (f *feed) compare(ctx context.Context, h *hub, since int64, asks []inside.Ask) (unasked []inside.Ask, zxid int64, err error) {
	keys, err := f.keys(asks)
	if err != nil {
		return nil, 0, err
	}
	e, err := h.enlist(ctx, f, keys, true)
	if err != nil {
		return nil, 0, err
	}
	request := &wire.Watches{Since: since}
	for i, ask := range asks {
		switch {
		case e.how[i] == stands: // and has not fired since it told the feed
		case e.how[i] == covered: // a request would take the place of the persistent watch
			unasked = append(unasked, ask)
		case ask.Children:
			request.Children = append(request.Children, keys[i].path)
		default:
			request.Data = append(request.Data, keys[i].path)
		}
	}
	if len(request.Data)+len(request.Children) == 0 {
		return unasked, 0, nil
	}
	x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetWatches, Watches: request}}
	err = f.exchange(ctx, h, []*wire.Exchange{x})
	e.done(ctx, func(int) (*wire.Exchange, error) {
		if x.Answered() {
			return x, h.s.answer(x)
		}
		return x, err
	})
	if err == nil {
		err = h.s.refused(watchTransfer, h.s.answer(x))
	}
	return unasked, x.Reply.Zxid, err
}
