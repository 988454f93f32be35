package watches

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// ErrReaderClosed is why the watch of a reader ends that has closed it.
var ErrReaderClosed = fmt.Errorf("%w: the watch was closed by its reader", fate.ErrClosed)

// feedQueue is how many events wait for the reader of a feed. When there are more, one
// FeedMissed takes the place of all.
const feedQueue = 1 << 14

// Names are how a namespace writes paths.
type Names struct {
	Top      string                       // the path of its root, as the servers know it
	Full     func(string) (string, error) // a path as the servers know it
	Stripped func(string) string          // such a path as the caller knows it
}

// feed is an [inside.Feed]: the reader of a persistent watch, or one whose reads leave one-shot
// watches.
type feed struct {
	names      Names
	all        *Watches
	full       string        // the path of the persistent watch
	oneShots   *listener     // nil if there is a persistent watch
	ready      chan struct{} // closed with the first FeedMissed
	some       chan struct{}
	connection int // the connection of the last FeedMissed that was taken; of the reader alone

	mu     sync.Mutex // guards the rest; a leaf
	begun  bool       // ready is closed
	events []inside.FeedEvent
	queued int // the connection of the FeedMissed at the head of events
	err    error
}

func (a *Watches) newFeed(names Names) *feed {
	return &feed{names: names, all: a, ready: make(chan struct{}), some: make(chan struct{}, 1)}
}

// Lone makes a feed whose reads leave one-shot watches. It hears of new connections. The error
// says that the client is closed.
func (a *Watches) Lone(names Names) (inside.Feed, error) {
	f := a.newFeed(names)
	f.oneShots = newListener(f)
	return f, a.follow(f.oneShots)
}

// Follow makes a feed that reads by a persistent watch on the node at full, and on all below if
// deep. It waits, within ctx, until the watch stands. After an error nothing is left.
func (a *Watches) Follow(ctx context.Context, names Names, full string, deep bool) (inside.Feed, error) {
	f := a.newFeed(names)
	f.full = full
	err := a.Add(full, f, deep)
	if err == nil {
		select {
		case <-f.ready:
			err = f.ended()
		case <-ctx.Done():
			err = ctxerr.Ended(ctx)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *feed) ended() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *feed) Ready() <-chan struct{} { return f.some }

func (f *feed) Take() ([]inside.FeedEvent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	if len(events) > 0 && events[0].Kind == inside.FeedMissed {
		f.connection = f.queued
	}
	return events, f.err
}

// Missed says that events before now may be missing. The caller holds all.mu.
func (f *feed) Missed(error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open()
	f.gap()
}

// open closes ready, once.
func (f *feed) open() {
	if !f.begun {
		f.begun = true
		close(f.ready)
	}
}

func (f *feed) gap() {
	f.queued = f.all.table.connection
	f.events = []inside.FeedEvent{{Kind: inside.FeedMissed, Zxid: -1}}
	f.signal()
}

// Tell adds an event. The caller holds all.mu.
func (f *feed) Tell(ev wire.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind, known := feedKinds[ev.Type]
	switch {
	case !f.begun || f.err != nil:
	case !known || len(f.events) >= feedQueue:
		f.gap()
	default:
		f.events = append(f.events, inside.FeedEvent{Kind: kind, Path: f.names.Stripped(ev.Path), Zxid: ev.Zxid, After: ev.After})
		f.signal()
	}
}

var feedKinds = map[zk.EventType]inside.FeedKind{ //nolint:gochecknoglobals // a constant table
	zk.EventNodeCreated: inside.FeedCreated, zk.EventNodeDeleted: inside.FeedDeleted,
	zk.EventNodeDataChanged: inside.FeedData, zk.EventNodeChildrenChanged: inside.FeedChildren,
}

func (f *feed) signal() {
	select {
	case f.some <- struct{}{}:
	default:
	}
}

// End ends the feed: the client is closed, or the servers do not know its watch.
func (f *feed) End(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.open()
		f.signal()
	}
}

func (f *feed) Connection() int { return f.connection }

func (f *feed) Session() (id int64, timeout time.Duration) {
	h, err := f.at()
	if err != nil {
		return 0, 0
	}
	return h.s.ID(), h.s.Link().Timeout()
}

func (f *feed) Close() {
	f.End(ErrReaderClosed)
	if f.oneShots != nil {
		f.all.unfollow(f.oneShots)
		return
	}
	f.all.Remove(f.full, f)
}

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
