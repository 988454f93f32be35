package client

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// feedQueue is how many events wait for the reader of a feed. When there are more, one
// FeedMissed takes the place of all.
const feedQueue = 1 << 14

// feed is an [inside.Feed]: the reader of a persistent watch, or one whose reads leave one-shot
// watches.
type feed struct {
	o          *ops
	all        *watches
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

func openFeed(ctx context.Context, c *Client, path string, mode inside.FeedMode) (inside.Feed, error) {
	f := &feed{o: &c.ops, all: c.core.watches, ready: make(chan struct{}), some: make(chan struct{}, 1)}
	if mode == inside.FeedOneShot {
		f.oneShots = newListener(f)
	}
	if err := f.begin(ctx, path, mode == inside.FeedDeep); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// begin waits, within ctx, for a connection, and until the persistent watch stands.
func (f *feed) begin(ctx context.Context, path string, deep bool) (err error) {
	if f.oneShots != nil {
		if err := f.o.perform(ctx, nil, "watch", path, reads, func(context.Context, try) error { return nil }); err != nil {
			return err
		}
		return f.all.follow(f.oneShots)
	}
	if err := ctxerr.Ended(ctx); err != nil {
		return err
	}
	if f.full, err = f.o.full(path); err != nil {
		return err
	}
	if err := f.o.follow(ctx, path, f.full, f, deep); err != nil {
		return err
	}
	select {
	case <-f.ready:
		return f.ended()
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	}
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

// missed says that events before now may be missing. The caller holds all.mu.
func (f *feed) missed(error) {
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

// tell adds an event. The caller holds all.mu.
func (f *feed) tell(ev wire.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind, known := kinds[ev.Type]
	switch {
	case !f.begun || f.err != nil:
	case !known || len(f.events) >= feedQueue:
		f.gap()
	default:
		f.events = append(f.events, inside.FeedEvent{Kind: feedKinds[kind], Path: f.o.stripped(ev.Path), Zxid: ev.Zxid, After: ev.After})
		f.signal()
	}
}

var feedKinds = [...]inside.FeedKind{ //nolint:gochecknoglobals // a constant table
	ChangeCreated: inside.FeedCreated, ChangeDeleted: inside.FeedDeleted, ChangeData: inside.FeedData, ChangeChildren: inside.FeedChildren,
}

func (f *feed) signal() {
	select {
	case f.some <- struct{}{}:
	default:
	}
}

// end ends the feed: the client is closed, or the servers do not know its watch.
func (f *feed) end(err error) {
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
	return h.s.link.SessionID(), h.s.link.Timeout()
}

// clientContact tells whether a client is connected.
func clientContact(c *Client) inside.Contact {
	state := c.core.state()
	newest := c.core.states.newest()
	c.core.watches.mu.Lock()
	connection := c.core.watches.table.connection
	c.core.watches.mu.Unlock()
	return inside.Contact{
		Connected: state == Connected, Closed: state == Closed, Connection: connection,
		Since: newest.change.At, Err: newest.change.Err, Changed: newest.ready,
	}
}

func (f *feed) Close() {
	if f.oneShots != nil {
		f.all.unfollow(f.oneShots)
		return
	}
	f.end(errWatchClosed)
	f.all.remove(f.full, f)
}
