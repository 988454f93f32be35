package client

import (
	"context"
	"sync"
	"time"

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
	all        *lastingWatches
	changes    *Changes // of the persistent watch; nil if there are one-shot watches only
	some       chan struct{}
	connection int // the connection of the last FeedMissed that was taken; of the reader alone

	alone   *listeners      // this feed; constant
	hearing map[string]side // the one-shot watches that tell it, by path; guarded by all.mu

	mu     sync.Mutex // guards the rest; a leaf
	events []inside.FeedEvent
	queued int // the connection of the FeedMissed at the head of events
	err    error
}

func openFeed(ctx context.Context, c *Client, path string, mode inside.FeedMode) (inside.Feed, error) {
	f := &feed{o: &c.ops, all: c.core.lasting, some: make(chan struct{}, 1), hearing: map[string]side{}}
	f.alone = &listeners{[]*feed{f}}
	w := &Changes{
		o: f.o, path: path, recursive: mode == inside.FeedDeep, feed: f,
		ready: make(chan struct{}), over: make(chan struct{}), some: make(chan struct{}, 1),
	}
	if mode == inside.FeedOneShot {
		return f, f.begin(ctx, path)
	}
	f.changes = w
	if err := w.begin(ctx); err != nil {
		w.Close()
		return nil, err
	}
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	f.all.feeds[f] = struct{}{}
	return f, nil
}

// begin waits for a connection, and lets the feed begin with a FeedMissed.
func (f *feed) begin(ctx context.Context, path string) error {
	if err := f.o.perform(ctx, nil, "watch", path, reads, func(context.Context, try) error { return nil }); err != nil {
		return err
	}
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.all.over != nil {
		return f.all.over
	}
	f.all.feeds[f] = struct{}{}
	f.missed()
	return nil
}

func (f *feed) Ready() <-chan struct{} { return f.some }

func (f *feed) Take() ([]inside.FeedEvent, error) {
	var over error
	if f.changes != nil {
		over = f.changes.ended()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	if len(events) > 0 && events[0].Kind == inside.FeedMissed {
		f.connection = f.queued
	}
	if over == nil {
		over = f.err
	}
	return events, over
}

// missed says that events before now may be missing. The caller holds all.mu.
func (f *feed) missed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missedLocked()
}

func (f *feed) missedLocked() {
	f.queued = f.all.connection
	f.events = []inside.FeedEvent{{Kind: inside.FeedMissed, Zxid: -1}}
	f.signal()
}

// put adds an event. The caller holds all.mu.
func (f *feed) put(kind ChangeKind, full string, ev wire.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) >= feedQueue {
		f.missedLocked()
		return
	}
	f.events = append(f.events, inside.FeedEvent{Kind: feedKinds[kind], Path: f.o.stripped(full), Zxid: ev.Zxid, After: ev.After})
	f.signal()
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

// end ends a feed of one-shot watches: the client is closed.
func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.signal()
}

// hear is called with an event that has ended a one-shot watch of the feed. The caller
// holds all.mu.
func (f *feed) hear(ev wire.Event) {
	if kind, known := kinds[ev.Type]; known {
		f.put(kind, ev.Path, ev)
	} else {
		f.missed()
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
	c.core.lasting.mu.Lock()
	connection := c.core.lasting.connection
	c.core.lasting.mu.Unlock()
	return inside.Contact{
		Connected: state == Connected, Closed: state == Closed, Connection: connection,
		Since: newest.change.At, Err: newest.change.Err, Changed: newest.ready,
	}
}

func (f *feed) Close() {
	if f.changes != nil {
		f.changes.Close()
	}
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	delete(f.all.feeds, f)
	if f.all.hub != nil {
		f.all.hub.leaveLocked(f)
	}
}
